"""Tags among what a cell's inputs are made from: those that nothing uses are data, as a table's other columns are."""

import functools
from collections.abc import Iterator, Mapping
from itertools import combinations

from dpstudy.core.text import heading
from dpstudy.privacy.spending import BOOK, Spending

_FEW = 6  # tags whose 64 choices are all tried; of more none or all


def without_unused(reading: Mapping) -> Iterator[dict]:
    """The options of reading without the tags that no label, subject or group is read from; then with some of them.

    Cells of earlier versions have all tags of their time in their hash.
    """
    tags = reading.get("tags", {})
    entries = [reading.get("subject_column"), reading.get("label_column"), *(reading.get("label_columns") or [])]
    groups = [each if isinstance(each, str) else each["column"] for each in reading.get("group_columns") or []]
    used = {heading(str(name)) for name in (*entries, *groups) if name is not None}
    unused = [name for name in tags if heading(name) not in used]
    for count in range(len(unused) + 1) if len(unused) <= _FEW else (0, len(unused)):
        for some in combinations(unused, count):
            kept = {name: tag for name, tag in tags.items() if name in some or name not in unused}
            yield {key: value for key, value in reading.items() if key != "tags"} | ({"tags": kept} if kept else {})


@functools.cache
def paid_configs() -> dict[str, set[str]]:
    """The config hashes of each cell's trainings in the budget log, which is read once.

    Raises:
        StudyError: the log is damaged.
    """
    configs: dict[str, set[str]] = {}
    for line in Spending(BOOK).entries():
        configs.setdefault(line["cell"], set()).update({line["config"]} if "config" in line else ())
    return configs
