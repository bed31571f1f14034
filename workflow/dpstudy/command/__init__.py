"""The command `dpstudy`: accountants, bundles and ledgers from a terminal, and the workflow of a clone."""
