"""The one exception that a user's mistakes raise."""

import contextlib
from collections.abc import Iterator

_LONGEST = 300  # characters that are repeated of what a library says
_MOST = 20  # mistakes that are told at once


class StudyError(Exception):
    """A mistake that the user can mend: what is wrong, where, and what would be right, in one sentence; or several, an
    argument each.

    >>> print(StudyError("seeds: must not be empty", "stduy: unknown key"))
    2 mistakes:
      seeds: must not be empty
      stduy: unknown key
    """

    def __str__(self) -> str:
        if len(self.args) < 2:
            return super().__str__()
        more = [f"and {len(self.args) - _MOST} more"] if len(self.args) > _MOST else []
        return f"{len(self.args)} mistakes:\n" + "\n".join(f"  {line}" for line in (*self.args[:_MOST], *more))


class Mistakes:
    """Those of several checks, told at once."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the mistake that ends the block, if one does."""
        try:
            yield
        except StudyError as error:
            self._said |= dict.fromkeys(error.args)

    def tell(self) -> None:
        """Raise what was kept.

        Raises:
            StudyError: all mistakes, in the order in which they were met.
        """
        if self._said:
            raise StudyError(*self._said)


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
