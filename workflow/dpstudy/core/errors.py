"""The exception for a user's mistakes."""

import contextlib
from collections.abc import Iterator

_LONGEST = 300  # characters that are repeated of what a library says
_MOST = 20  # mistakes that are told at once
_KEYS = 4  # of one mistake that are named


class StudyError(Exception):
    """A mistake that the user can correct: what is wrong, where, and what would be right, in one sentence.

    Several mistakes are an argument each.

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
    """Collects the mistakes of several checks, to be raised together."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """A context that collects the StudyError raised in it, if any."""
        try:
            yield
        except StudyError as error:
            self._said |= dict.fromkeys(error.args)

    def tell(self) -> None:
        """Raise all collected mistakes as one StudyError, if there are any.

        Raises:
            StudyError: all mistakes, in the order in which they were met; one at several keys is one, as of rows that
                tables share.
        """
        keys: dict[str, list[str]] = {}
        for sentence in self._said:
            key, _, wrong = sentence.partition(": ")
            at_key = wrong and " " not in key
            keys.setdefault(wrong if at_key else sentence, []).extend([key] if at_key else [])
        if keys:
            raise StudyError(*(_at(places, wrong) for wrong, places in keys.items()))


def _at(keys: list[str], wrong: str) -> str:
    more = [f"and {len(keys) - _KEYS} more"] if len(keys) > _KEYS else []
    return f"{', '.join((*keys[:_KEYS], *more))}: {wrong}" if keys else wrong


@contextlib.contextmanager
def in_a_sentence(what: str) -> Iterator[None]:
    """A context that turns any exception raised in it into a StudyError: `what` and a reason.

    It is for files that users bring: every name and number in them may be wrong, and each library has exceptions of its
    own.

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
