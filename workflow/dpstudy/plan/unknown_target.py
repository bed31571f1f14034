"""Explanations of requested targets that no rule makes, naming what the study lacks."""

from collections.abc import Collection, Mapping

from dpstudy.core.suggest import suggestion

_OF_A_CELL = ("cells", "release", "runs", "audit")
_LISTED = 8  # names that are listed


def no_such_target(target: str, study: str, names: Mapping[str, Collection[str]], known: Collection[str]) -> str:
    """A sentence about a requested file or folder that no rule makes.

    Args:
        target: as it was asked for.
        study: the file, or the name, of the study that is run.
        names: "data set", "feature set", "entry", "epsilon" -> what the study has, in the order of a cell's path.
        known: everything that the study makes for its own sake.

    >>> names = {"data set": ["own"], "feature set": ["pixels"], "entry": ["default"], "epsilon": ["1", "2"]}
    >>> no_such_target("results/release/own/pixels/defaul/eps=2", "mine.yaml", names, [])
    "results/release/own/pixels/defaul/eps=2: mine.yaml has no entry 'defaul' (did you mean 'default'?); it has default"
    """
    parts = target.strip("/").split("/")
    if parts[0] == "results" and parts[1:2] and parts[1] in _OF_A_CELL:
        for (kind, of_kind), part in zip(names.items(), parts[2:], strict=False):
            name = part.removeprefix("eps=")
            if name not in of_kind:
                more = ", ..." if len(of_kind) > _LISTED else ""
                listed = ", ".join(list(of_kind)[:_LISTED])
                return f"{target}: {study} has no {kind} {name!r}{suggestion(name, of_kind)}; it has {listed}{more}"
        form = f"results/{parts[1]}/DATASET/FEATURES/ENTRY/eps=E"
        return f"{target}: {study} has no such cell, or no such file of it; a cell's folder is {form}"
    return (
        f"{target}: nothing that {study} makes is called so{suggestion(target, known)}; another study's results need "
        "that study: --configfile FILE, with make STUDY=FILE"
    )
