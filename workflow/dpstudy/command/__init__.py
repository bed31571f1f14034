"""The command line `dpstudy`: accounting, bundles and ledgers, and the workflow of a cloned repository."""
