"""The one exception that a user's mistake raises."""


class StudyError(Exception):
    """A mistake that the user can mend: what is wrong, where, and what would be right, in one sentence."""
