"""Nothing that a user hands over is run: pickles, arrays of objects, tables, tags of YAML, images that are programs."""

import base64
import builtins
import os
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from snakemake.common.configfile import load_configfile
from snakemake.exceptions import WorkflowError

from dpstudy.config.loading import load
from dpstudy.core.errors import StudyError
from dpstudy.data import download
from dpstudy.data.images import decode
from dpstudy.data.pickles import read_batch
from dpstudy.data.readers import open_reader
from dpstudy.features.precomputed import read_rows
from dpstudy.features.weights import check_file, fitting
from dpstudy.schema.reading import safe_loader

from . import sources
from .bad_input import examples, refusal


class _Call:
    """Pickles as a call."""

    def __init__(self, function, *arguments):
        self._call = function, arguments

    def __reduce__(self):
        return self._call


@pytest.fixture
def canary(tmp_path):
    """A folder that exists as soon as anything of a file was run."""
    return tmp_path / "canary"


def calls(canary):
    """Calls that make the canary, by functions of their own or by those that run others."""
    make = f"__import__('os').mkdir({str(canary)!r})"
    return {
        "posix.mkdir": _Call(os.mkdir, str(canary)),
        "posix.system": _Call(os.system, f"mkdir '{canary}'"),
        "subprocess": _Call(subprocess.call, ["mkdir", str(canary)]),
        "builtins.eval": _Call(eval, make),
        "builtins.exec": _Call(exec, make),
        "builtins.getattr": _Call(builtins.getattr, _Call(__import__, "os"), "mkdir"),
        "numpy": _Call(np.fromfile, "/dev/null"),
        "__import__": _Call(__import__, "os"),
    }


@pytest.mark.parametrize("named", sorted(calls("x")))
@pytest.mark.parametrize("place", ["value", "key", "row", "argument of an array"])
def test_a_batch_that_names_anything_else_is_refused_and_nothing_runs(tmp_path, canary, named, place):
    call = calls(canary)[named]
    batch = {b"data": sources.noise(2, 3072), b"fine_labels": [0, 1]}
    if place == "value":
        batch[b"data"] = call
    elif place == "row":
        batch[b"fine_labels"] = [0, call]
    else:
        batch[b"more"] = (call,) if place == "key" else _Call(np.dtype, call)
    (tmp_path / "train").write_bytes(pickle.dumps(batch, protocol=2))
    said = refusal(lambda: read_batch(tmp_path / "train"), "train")
    assert said and "refused" in said and not canary.exists()


GLOBALS = ["os\nsystem", "builtins\neval", "numpy\nload", "numpy\nmemmap", "numpy\nfrombuffer", "numpy\nrecarray",
           "numpy.core.multiarray\nfrombuffer", "numpy.core.multiarray\nscalar", "_codecs\ndecode", "codecs\nencode",
           "copyreg\n_reconstructor", "functools\npartial", "operator\nattrgetter", "types\nFunctionType",
           "collections\nOrderedDict", "numpy\nndarray.__class__", "importlib\nimport_module"]  # fmt: skip


@examples(60)
@given(
    names=st.lists(st.sampled_from(GLOBALS), min_size=1, max_size=3),
    arguments=st.lists(st.sampled_from([b"I1\n", b"S'x'\n", b"N", b")", b"]", b"}", b"cnumpy\nndarray\n"]), max_size=3),
    steps=st.lists(st.sampled_from([b"R", b"b", b"\x81", b"o", b"tR", b"\x85R", b"0", b"2"]), max_size=4),
)
def test_chains_of_calls_are_refused(tmp_path_factory, names, arguments, steps):
    path = tmp_path_factory.mktemp("pickles") / "train"
    content = b"\x80\x02" + b"".join(b"c" + name.encode() + b"\n(" + b"".join(arguments) for name in names)
    path.write_bytes(content + b"".join(steps) + b".")
    assert refusal(lambda: read_batch(path), "train")


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02}r\x00\x00\x00\x7f.",  # a place of its memory: 2,130,706,432 of them, 17 GB
        b"}p2130706432\n.",
        b"\x80\x02})" + b"\x85" * 300_000 + b"K\x01s.",  # a key 300,000 tuples deep, which ends the process
        b"\x80\x02})" + b"2\x86" * 60 + b"K\x01s.",  # a key of 2^60 tuples, which takes for ever
        b"\x80\x02})" + b"".join(b"q%ch%c\x86" % (i, i) for i in range(60)) + b"K\x01s.",
        b"\x80\x02})" + b"".join(b"q%ch%cq%ch%c\x86" % (i, i, 99 + i, 99 + i) for i in range(60)) + b"K\x01s.",
        b"\x80\x02})" + b"".join(b"N0q%ch%c\x86" % (i, i) for i in range(60)) + b"K\x01s.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nJ\x00\x00\x00\x7f\x85U\x01b\x87R.",
        b"\x80\x02cnumpy\nndarray\nJ\x00\x00\x00\x7f\x85R.",
        b"\x80\x05\x96\x00\x00\x00\x00\x00\x01\x00\x00.",  # a bytearray of 2^40 bytes
    ],
    ids=lambda content: repr(content[:24]),
)
def test_a_pickle_cannot_exhaust_memory_time_or_stack(tmp_path, content):
    # in a process of its own: a fault of the stack would end this one
    (tmp_path / "train").write_bytes(content)
    code = (
        "import pathlib, resource, sys\n"
        "from dpstudy.data.pickles import read_batch\n"
        "from dpstudy.core.errors import StudyError\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"  # where it goes wrong, others go on
        "try: read_batch(pathlib.Path(sys.argv[1]))\n"
        "except StudyError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "train")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and "train: " in done.stdout and "MemoryError" not in done.stdout, done


@pytest.mark.parametrize("objects", [np.array([{"a": 1}] * 4, dtype=object), np.array([(1, {})] * 4, "i4,O")])
def test_arrays_of_objects_are_refused(tmp_path, canary, objects):
    objects.flat[0] = (1, calls(canary)["posix.mkdir"]) if objects.dtype.names else calls(canary)["posix.mkdir"]
    for write, name in ((sources.labels_npy, "all_labels.npy"), (sources.arrays, "all_images.npy")):
        options = write(tmp_path)
        np.save(tmp_path / name, objects, allow_pickle=True)
        assert "pickled" in refusal(lambda options=options: sources.read_all(options, tmp_path), name)
    np.save(tmp_path / "train.npy", objects, allow_pickle=True)
    assert refusal(lambda: read_rows(tmp_path, "train", list("abcd"), 0, 4), "train.npy")
    options = sources.imagenet32(tmp_path)
    np.savez(tmp_path / "val_data.npz", data=objects, labels=objects)
    assert refusal(lambda: sources.read_all(options, tmp_path), "val_data.npz")
    (tmp_path / "val_data.npz").write_bytes(pickle.dumps(calls(canary)["posix.mkdir"]))
    assert refusal(lambda: sources.read_all(options, tmp_path), "val_data.npz")
    assert not canary.exists()


def test_a_table_whose_schema_holds_a_pickle_runs_nothing(tmp_path, canary):
    # Arrow up to 14.0 unpickled the types of Python that a file's schema named (CVE-2023-47248)
    kind = {b"ARROW:extension:name": b"arrow.py_extension_type"}
    kind[b"ARROW:extension:metadata"] = pickle.dumps(calls(canary)["posix.mkdir"])
    options = sources.table_parquet(tmp_path)
    fields = [pa.field(name, pa.string(), metadata=kind) for name in sources.TABLE]
    table = pa.table(list(map(pa.array, sources.TABLE.values())), schema=pa.schema(fields))
    written = base64.b64encode(table.schema.serialize().to_pybytes())
    parquet.write_table(table.replace_schema_metadata({"ARROW:schema": written}), tmp_path / "table.parquet")
    refusal(lambda: sources.read_all(options, tmp_path), "table.parquet")
    assert not canary.exists()


@pytest.mark.parametrize("tag", ["object/apply:os.mkdir [{}]", "object/new:os.mkdir [{}]", "name:os.mkdir ''"])
def test_a_config_with_tags_of_python_is_refused(tmp_path, canary, tag):
    path = tmp_path / "config.yaml"
    path.write_text(f"study: !!python/{tag.format(canary)}\n")
    with pytest.raises(
        (WorkflowError, StudyError),
    ):
        load(load_configfile(str(path)))  # as Snakemake reads it: what is a name alone, it looks up
    with pytest.raises(yaml.YAMLError):
        yaml.load(path.read_text(), Loader=safe_loader())
    assert not canary.exists()


def test_a_program_that_is_called_an_image_is_not_run(tmp_path, monkeypatch):
    from PIL import EpsImagePlugin

    ran = []
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *arguments, **options: ran.append(arguments))
    Image.fromarray(sources.noise(5, 6, 3)).save(tmp_path / "scan.eps")
    (tmp_path / "scan.eps").rename(tmp_path / "scan.png")
    assert "is not an image" in refusal(lambda: decode(tmp_path / "scan.png", "row 1", None, None), "scan.png")
    assert not ran


def test_weights_are_never_unpickled(tmp_path, canary):
    import torch

    network = torch.nn.Linear(3, 2)
    for name in ("weights.safetensors", "weights.pt"):
        path = tmp_path / name
        path.write_bytes(pickle.dumps(calls(canary)["posix.mkdir"]))
        read = check_file if name.endswith(".pt") else lambda path: fitting(network, path)
        assert refusal(lambda read=read, path=path: read(path), name)
    assert not canary.exists()


CLIMBING = ["../x", "/etc/passwd", "a/../../x", "..\\x", "C:/x", "C:\\x", "..", "", "a\0b"]


@pytest.mark.parametrize("path", CLIMBING)
def test_paths_of_a_table_cannot_leave_its_folder(tmp_path, path):
    (tmp_path / "x").write_bytes(b"outside")
    inner = tmp_path / "inner"
    inner.mkdir()
    options = sources.table_parquet(inner)
    columns = sources.TABLE | {"path": [path, *sources.TABLE["path"][1:]]}
    parquet.write_table(pa.table(columns), inner / "table.parquet")
    said = refusal(lambda: sources.read_all(options, inner), "table.parquet: row 0")
    assert said and ("leaves" in said or not path)
    assert refusal(lambda: open_reader("image_table", options | {"table": path}, inner))


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "..", ".", "", "a\0b"])
def test_a_download_cannot_be_written_elsewhere(tmp_path, name):
    remote = tmp_path / "remote"
    remote.write_bytes(b"content")
    folder = tmp_path / "a" / "b"
    source = {"url": remote.as_uri(), "sha256": "0" * 64}
    assert "plain file name" in refusal(lambda: download.fetch(folder, {name: source}))
    assert not (tmp_path / "a").exists()
