"""Verdicts on the papers' claims, by the numbers they print and by a study's cells."""
