"""Settings that do not work, told from files that cannot be read."""

import contextlib
from collections.abc import Iterator

from dpstudy.cell.inputs import UnreadableError
from dpstudy.core.errors import StudyError


class TrialError(Exception):
    """A setting does not work: it diverges, its system is singular, its budget cannot be met."""


@contextlib.contextmanager
def failures_of_the_trial() -> Iterator[None]:
    """What a setting is to blame for, as a TrialError."""
    try:
        yield
    except UnreadableError:
        raise
    except (StudyError, ValueError, ArithmeticError) as error:  # LinAlgError is a ValueError
        raise TrialError(str(error)) from error
