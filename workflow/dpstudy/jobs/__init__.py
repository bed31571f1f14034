"""The jobs of a study, from files to files: training, scoring, audits, certificates, totals."""
