"""Optional dependencies: which extra of dpstudy installs each package."""

import contextlib
from collections.abc import Iterator

from dpstudy.core.errors import StudyError

EXTRAS = {  # module -> extra of pyproject.toml, the smallest that has it
    "torch": "networks",
    "torchvision": "networks",
    "timm": "networks",
    "openvino": "openvino",
    "kymatio": "scatternet",
    "sklearn": "sklearn",
    "pydicom": "dicom",
    "snakemake": "workflow",
    "optuna": "workflow",
    "pandas": "workflow",
    "faiss": "workflow",
    "imagehash": "workflow",
    "matplotlib": "workflow",
    "tqdm": "workflow",
    "rich": "workflow",
    "psutil": "workflow",
    "jinja2": "workflow",
}


@contextlib.contextmanager
def named(what: str) -> Iterator[None]:
    """A context that turns a missing package into a StudyError naming the extra that installs it.

    Args:
        what: needs it.

    Raises:
        StudyError: a module of EXTRAS cannot be found inside.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        module = (missing.name or "").partition(".")[0]
        if module not in EXTRAS:
            raise
        raise StudyError(
            f"{what}: needs {module}, which is not installed; run pip install 'dpstudy[{EXTRAS[module]}]'"
        ) from None
