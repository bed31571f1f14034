"""What tests share."""

import os

# Workers share the cores: two that each take all of them stall each other. Read when the libraries are loaded.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
