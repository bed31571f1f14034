"""What rules and scripts ask of a study: paths, inputs, resources, and what ledgers must name."""
