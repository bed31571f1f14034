"""Loading a public network's weights from a safetensors file that the user supplies; nothing is unpickled.

Other formats are converted once, where their origin is trusted (docs/features.md has the lines).
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from dpstudy.core.errors import StudyError
from dpstudy.core.files import present, sha256

_SHA256 = re.compile("[0-9a-f]{64}")
_NAMED = 3  # tensors that a message names
_WRAPPERS = ("module.", "_orig_mod.")
_COUNTER = "num_batches_tracked"  # of batch normalisation: old checkpoints lack it, and evaluation does not read it


def check_file(path: str | os.PathLike, expected: str | None = None) -> str:
    """The SHA-256 of a file of weights, after checking it.

    Args:
        expected: what it must be, or None.

    Raises:
        StudyError: the file is missing, is no safetensors file by its name, or has another hash.
    """
    if Path(path).suffix != ".safetensors":
        raise StudyError(f"{path}: weights are read from a .safetensors file; docs/features.md says how to convert one")
    digest = sha256(path)
    if expected is not None and digest != expected:
        raise StudyError(f"{path}: its SHA-256 is {digest}, but the config's `sha256` is {expected}: another file")
    return digest


def fetched(model: str, facts: dict) -> Path:
    """The path of a timm network's weights, downloaded from the hub unless they are in its cache.

    Args:
        facts: timm's about the network, with `hf_hub_id`.

    Raises:
        StudyError: they are not published there, or cannot be fetched; the sentence says which file to place where.
    """
    from huggingface_hub import hf_hub_download

    published = facts.get("hf_hub_id")
    if not published:
        raise StudyError(f"model {model!r}: timm names no weights for it on the hub; give a file in `weights`")
    try:
        return Path(hf_hub_download(published, "model.safetensors"))
    except Exception as error:  # no network, no such file, no room: each library below has its own
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise StudyError(
            f"model {model!r}: its weights cannot be fetched ({reason}); on a machine with a network fetch"
            f" https://huggingface.co/{published}/resolve/main/model.safetensors, place it under data_root as"
            f" weights/{model}.safetensors, and write `weights: weights/{model}.safetensors`"
        ) from None


def check_fetched(path: str | os.PathLike, expected: str | None = None) -> str:
    """The SHA-256 of a file downloaded from the hub, after checking it; the hub's client checks its size alone.

    The client keeps a large file under the SHA-256 that the hub tells of it, and gives a link to that.

    Args:
        expected: what it must be, or None: what the hub tells.

    Raises:
        StudyError: it has another hash, or there is none to hold it against.
    """
    path = os.fspath(path)
    link = Path(os.readlink(path)).name if os.path.islink(path) else ""  # of the first link: others have other hashes
    hub_digest = link if _SHA256.fullmatch(link) else None
    if expected is None and hub_digest is None:
        raise StudyError(f"{path}: the hub tells no SHA-256 to check this file by; give it in the config's `sha256`")
    digest = check_file(path, expected)
    if hub_digest not in (None, digest):
        raise StudyError(
            f"{path}: its SHA-256 is {digest}, but the hub tells {hub_digest}: damaged, or another file; delete what "
            "the link leads to, so that it is fetched again"
        )
    return digest


def fitting(network, path: str | os.PathLike, ignored: Iterable[str] = ()) -> dict:
    """The tensors of a file that must match a torch network's parameters and buffers exactly.

    Args:
        ignored: names of layers that the file may have and the network has not: its classifier.

    Raises:
        StudyError: the file is damaged, or lacks a tensor, has one too many, or one of another shape.
    """
    layers = tuple(f"{layer}." for layer in ignored)
    given = {name: value for name, value in read_weights(path).items() if not f"{name}.".startswith(layers)}
    expected, given = (
        {name: value for name, value in tensors.items() if not name.endswith(_COUNTER)}
        for tensors in (network.state_dict(), given)
    )
    both = expected.keys() & given.keys()
    reshaped = [name for name in both if expected[name].shape != given[name].shape]
    kinds = [name for name in both if expected[name].dtype.is_floating_point != given[name].dtype.is_floating_point]
    wrong = [
        f"{len(names)} {what} ({', '.join(sorted(names)[:_NAMED])}{', ...' if len(names) > _NAMED else ''})"
        for names, what in (
            (expected.keys() - given.keys(), "missing"),
            (given.keys() - expected.keys(), "unexpected"),
            (reshaped, "of another shape"),
            (kinds, "of another kind of number"),
        )
        if names
    ]
    if wrong:
        raise StudyError(f"{path}: its tensors are not those of this network: {', '.join(wrong)}; mend `model`")
    return given


def read_shapes(path: str | os.PathLike) -> dict[str, tuple[int, ...]]:
    """Name -> shape of the tensors in a safetensors file, from its header; names and errors as `read_weights`."""
    from safetensors import safe_open

    with _readable(path), safe_open(path, framework="numpy") as file:
        return _unwrapped({name: tuple(file.get_slice(name).get_shape()) for name in file.keys()})  # noqa: SIM118


def read_weights(path: str | os.PathLike) -> dict:
    """Name -> torch tensor in a safetensors file.

    The prefix that torch's wrappers (DataParallel, compile) put before every name is removed.

    Raises:
        StudyError: the file is missing or damaged.
    """
    from safetensors.torch import load_file  # not numpy's: checkpoints may be bfloat16

    with _readable(path):
        return _unwrapped(load_file(path))


def _unwrapped(found: dict) -> dict:
    for wrapper in _WRAPPERS:
        if found and all(name.startswith(wrapper) for name in found):
            return _unwrapped({name.removeprefix(wrapper): value for name, value in found.items()})
    return found


@contextlib.contextmanager
def _readable(path: str | os.PathLike) -> Iterator[None]:
    from safetensors import SafetensorError

    try:
        with present(path):
            yield
    except (SafetensorError, OSError) as error:
        raise StudyError(f"{path}: not a readable safetensors file ({error}); fetch it again") from None
