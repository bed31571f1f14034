"""Distinguishes settings that fail from input files that cannot be read."""

import contextlib
from collections.abc import Iterator

from dpstudy.cell.inputs import UnreadableError
from dpstudy.core.errors import StudyError


class TrialError(Exception):
    """A setting fails: it diverges, its system is singular, or its budget cannot be met."""


@contextlib.contextmanager
def failures_of_the_trial() -> Iterator[None]:
    """A context that turns errors caused by a setting into a TrialError."""
    try:
        yield
    except UnreadableError:
        raise
    except (StudyError, ValueError, ArithmeticError) as error:  # LinAlgError is a ValueError
        raise TrialError(str(error)) from error
