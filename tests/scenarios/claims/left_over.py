"""Functions that judge a claim, and those that look as if they did."""

import inspect

from dpstudy.tables.claims.judge import PAPERS, judges


def found_in(paper: str) -> set:
    """What in a paper's modules takes evidence alone and gives a finding, unless its name begins with an underscore."""
    return {
        one
        for module in PAPERS[paper]
        for name, one in vars(module).items()
        if inspect.isfunction(one)
        and one.__module__ == module.__name__
        and not name.startswith("_")
        and [*inspect.signature(one).parameters] == ["evidence"]
        and getattr(inspect.signature(one).return_annotation, "__name__", "") == "Finding"
    }


def judging(paper: str) -> set:
    """The functions that judge a paper's claims; others are judged as their entries say."""
    return {one for one in judges(paper).values() if inspect.isfunction(one)}
