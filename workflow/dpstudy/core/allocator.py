"""Tuning of the C library's memory allocator."""

import ctypes
import logging

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt
_ONE_BY_ONE = 1 << 30  # bytes from which a piece of memory is taken from the system by itself
_NEVER = 2**31 - 1
_log = logging.getLogger("dpstudy")


def keep_freed_memory() -> bool:
    """Have the allocator keep freed memory for reuse; returns whether the C library supports it.

    Training takes and frees the same large tensors in every step. As a rule glibc gives them back to the system, which
    clears each page anew when it is touched: a fifth of the time of a Wide ResNet's step on a CPU. For processes of our
    own alone (jobs, benchmarks): it holds for all of a process.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    done = bool(mallopt(_MMAP_THRESHOLD, _ONE_BY_ONE)) and bool(mallopt(_TRIM_THRESHOLD, _NEVER))
    if not done:
        _log.info("the C library keeps its own way with freed memory")
    return done
