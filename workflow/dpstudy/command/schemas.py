"""The schemas of the methods here, and their table in docs/methods.md, made of the modules' dataclasses."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import yaml

from dpstudy import methods
from dpstudy.core.files import atomic
from dpstudy.schema.hyperparameters import schema_of, told
from dpstudy.schema.reading import FOLDER

PAGE = "docs/methods.md"
_BOTH = ("`first_order`", "`network_dpsgd`")  # whose common hyper-parameters have a row of their own
_TABLE = re.compile(r"(?<=<!-- hyper-parameters -->\n).*?(?=<!-- end -->)", re.DOTALL)


def modules() -> dict[str, ModuleType]:
    """Name -> module of each method here: those that say what rules ask of their entries."""
    files = sorted(Path(methods.__path__[0]).glob("*.py"))
    names = [path.stem for path in files if re.search("^ENTRIES = ", path.read_text(encoding="utf-8"), re.MULTILINE)]
    return {name: importlib.import_module(f"{methods.__name__}.{name}") for name in names}


def made(page: str) -> dict[Path, str]:
    """Path -> text of each schema, and of the page (its text as it is) with the table as it shall be."""
    found = modules()
    lists = {f"`{name}`": told(module.Parameters) for name, module in found.items()}
    shared = [text for text in lists[_BOTH[0]] if text in lists[_BOTH[1]]]
    lists |= {name: [text for text in lists[name] if text not in shared] for name in _BOTH}
    lists[" and ".join(_BOTH)] = shared
    rows = [f"| {names} | {'; '.join(texts)} |\n" for names, texts in sorted(lists.items())]
    table = "| method | hyper-parameter, default (and what else it may be) |\n|---|---|\n" + "".join(rows)
    schemas = {
        FOLDER / f"methods/{name}.schema.yaml": f"# Made by `make schemas` of workflow/dpstudy/methods/{name}.py.\n"
        + yaml.safe_dump(
            schema_of(name, module.Parameters, module.ENTRIES), sort_keys=False, allow_unicode=True, width=120
        )
        for name, module in found.items()
    }
    return schemas | {Path(PAGE): _TABLE.sub(lambda _: table, page)}


def write(root: Path) -> list[str]:
    """Write what has changed.

    Args:
        root: of the clone.

    Returns:
        The names of the files.
    """
    changed = []
    for path, text in made((root / PAGE).read_text(encoding="utf-8")).items():
        whole = root / path
        if not whole.is_file() or whole.read_text(encoding="utf-8") != text:
            with atomic(whole) as temporary:
                temporary.write_text(text, encoding="utf-8")
            changed.append(path.name)
    return changed
