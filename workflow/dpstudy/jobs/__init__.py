"""The jobs of a study, on files: training, scoring, audits, certificates, totals."""
