"""Speed measurements: `make bench`, or `python -m benchmarks NAME ...`. Each prints a table; none is a test."""
