"""Attacks on the methods' own releases: lower bounds on epsilon."""
