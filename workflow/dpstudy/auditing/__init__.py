"""Privacy audits: attacks on what a method releases, and the lower bounds on epsilon that they prove."""
