"""Why Snakemake runs a job again, in one line, naming only the parameters that changed."""

import ast
import re
from collections.abc import Iterator, Mapping

PARAMS = re.compile(r"Params have changed since last execution: .*? before: (.*) now: (.*)$")
UPDATED = "Input files updated by another job: "
WIDTH = 100
_ABSENT = object()


def shorten(reason: str) -> str:
    """A reason of Snakemake's as one line of at most `WIDTH` characters; of parameters only the differences.

    >>> text = "Params have changed since last execution: Union of ...: before: {'a': {'b': 2}} now: {'a': {'b': 3}}"
    >>> shorten(text)
    'parameters changed: b: 2 -> 3'
    """
    if match := PARAMS.match(reason):
        try:
            before, now = (ast.literal_eval(f"[{side}]") for side in match.groups())
        except (ValueError, SyntaxError):  # not all values are literals
            reason = "parameters changed"
        else:
            reason = "parameters changed: " + ", ".join(_differences(before, now))
    return reason if len(reason) <= WIDTH else reason[: WIDTH - 3] + "..."


def first_cause(reason: str, makers: Mapping[str, tuple[str, str]]) -> str:
    """The first job in a chain of updated inputs that has a reason besides updated inputs, and that reason.

    `makers` maps each file that a job is to make to the rule and the reason of that job.

    >>> makers = {"b": ("extract", "Input files updated by another job: a"), "a": ("prepare", "Code has changed")}
    >>> first_cause("Input files updated by another job: b, c", makers)
    'prepare: Code has changed'
    """
    rule = ""
    while reason.startswith(UPDATED):
        remade = (makers[name] for name in reason.removeprefix(UPDATED).split(", ") if name in makers)
        rule, reason = next(remade, ("", "Inputs are made again"))
    return f"{rule}: {shorten(reason)}" if rule else reason


def _differences(before: list, now: list) -> list[str]:
    """`key: old -> new` for each changed value of the mappings, and the items other than mappings on either side."""
    old, new = (
        {key: value for one in side if isinstance(one, dict) for key, value in one.items()} for side in (before, now)
    )
    differences = list(_changed_keys(old, new))
    others = [", ".join(str(one) for one in side if not isinstance(one, dict)) for side in (before, now)]
    return differences + ([" -> ".join(text or "nothing" for text in others)] if any(others) else [])


def _changed_keys(old: dict, new: dict) -> Iterator[str]:
    """`key: old -> new` for each value that differs, in nested mappings too."""
    for key in old | new:
        before, now = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if isinstance(before, dict) and isinstance(now, dict):
            yield from _changed_keys(before, now)
        elif before != now:
            yield f"{key}: {_shown(old, key)} -> {_shown(new, key)}"


def _shown(values: dict, key: str) -> str:
    return str(values[key]) if key in values else "nothing"
