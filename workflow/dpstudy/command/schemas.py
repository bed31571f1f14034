"""`make schemas`: writes the methods' schemas, their table in docs/methods.md, and the config schema's reader keys.

All of it comes from the dataclasses and declarations of the modules.
"""

import importlib
import re
from pathlib import Path
from types import ModuleType

import yaml

from dpstudy import methods
from dpstudy.core.files import atomic
from dpstudy.data import readers
from dpstudy.schema.hyperparameters import schema_of, told
from dpstudy.schema.reading import FOLDER

PAGE = "docs/methods.md"
_BOTH = ("`first_order`", "`network_dpsgd`")  # whose common hyper-parameters have a row of their own
_ABOUT = {
    "x-readers": "each reader, with the keys that it takes besides those that every data set has",
    "x-shapes": "[height, width, channels] where a config gives no others; null: the files know",
    "x-own-data": "people bring their own records with these",
    "x-numbered": "rows may have no names but numbers",
    "x-drawn": "a program draws their images, and saw none",
    "x-crops": "images are cropped where `resize` is absent",
}
_READERS = re.compile(r"(?<=what follows of their modules\n).*?(?=    # readers: end)", re.DOTALL)
_TABLE = re.compile(r"(?<=<!-- hyper-parameters -->\n).*?(?=<!-- end -->)", re.DOTALL)


def modules() -> dict[str, ModuleType]:
    """Name -> module of each built-in method that has a schema of entries."""
    files = sorted(Path(methods.__path__[0]).glob("*.py"))
    names = [path.stem for path in files if re.search("^ENTRIES = ", path.read_text(encoding="utf-8"), re.MULTILINE)]
    return {name: importlib.import_module(f"{methods.__name__}.{name}") for name in names}


def made(page: str) -> dict[Path, str]:
    """Path -> current text of each generated file: the schemas, and the page with its table replaced."""
    method_modules = modules()
    lists = {f"`{name}`": told(module.Parameters) for name, module in method_modules.items()}
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
        for name, module in method_modules.items()
    }
    config = FOLDER / "config.schema.yaml"
    schemas[config] = _READERS.sub(lambda _: _of_readers(), config.read_text(encoding="utf-8"))
    return schemas | {Path(PAGE): _TABLE.sub(lambda _: table, page)}


def _of_readers() -> str:
    """The lists of readers in the config's schema."""
    names = sorted(path.stem for path in Path(readers.__path__[0]).glob("*.py") if path.stem != "__init__")
    found = {name: importlib.import_module(f"{readers.__name__}.{name}") for name in names}
    of = {name: module.READER for name, module in found.items() if hasattr(module, "READER")}
    lists = {
        "x-readers": {name: list(reader.keys) for name, reader in of.items()},
        "x-shapes": {name: list(reader.shape) for name, reader in of.items() if any(reader.shape)},
        "x-own-data": [name for name, reader in of.items() if reader.own],
        "x-numbered": [name for name, reader in of.items() if reader.numbered],
        "x-drawn": [name for name, reader in of.items() if reader.drawn],
        "x-crops": [name for name, reader in of.items() if reader.crops],
    }
    lines = []
    for key, content in lists.items():
        lines.append(f"# {_ABOUT[key]}")
        text = yaml.safe_dump({key: content}, sort_keys=False, default_flow_style=None, width=110)
        lines += text.splitlines()
    return "".join(f"    {line}\n" for line in lines)


def write(root: Path) -> list[str]:
    """Write the generated files that have changed.

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
