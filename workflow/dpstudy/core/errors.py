"""The one exception that a user's mistake raises."""

import contextlib
from collections.abc import Iterator

_LONGEST = 300  # characters that are repeated of what a library says


class StudyError(Exception):
    """A mistake that the user can mend: what is wrong, where, and what would be right, in one sentence."""


@contextlib.contextmanager
def in_a_sentence(what: str) -> Iterator[None]:
    """Make a StudyError, `what` and a reason, of anything else that is raised: where files of somebody else are read
    whose every name and number may be wrong, each library below has errors of its own.

    >>> with in_a_sentence("model.safetensors is damaged"):
    ...     {}["kind"]
    Traceback (most recent call last):
    dpstudy.core.errors.StudyError: model.safetensors is damaged (KeyError: 'kind')
    """
    try:
        yield
    except StudyError:
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:_LONGEST]
        raise StudyError(f"{what} ({type(error).__name__}{reason and ': '}{reason})") from None
