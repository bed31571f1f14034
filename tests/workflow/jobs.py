"""A study's jobs without the seconds that Python takes to import torch and pandas: a process that has them forks each.

Nothing of dpstudy is in that process: a job runs on the library of its own study. `python jobs.py SOCKET` is the
process; `python -S -E jobs.py SOCKET SCRIPT`, which Snakemake runs in place of `python SCRIPT`, has a job forked, and
ends as it ends. Where the environment is another one it is `python SCRIPT` itself.
"""

import array
import json
import os
import resource
import signal
import socket
import sys

SAME = ("PYTHONPATH", "OMP_NUM_THREADS")  # what Python, or a library that is there already, has read at its start
LIMITS = (resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_NOFILE)
IMPORTED = ("numpy", "scipy.linalg", "scipy.special", "scipy.optimize", "scipy.stats", "pandas", "PIL.Image", "psutil")
IMPORTED += ("pyarrow.parquet", "pyarrow.fs", "jsonschema", "yaml", "safetensors.torch", "torch", "torch.distributed")
IMPORTED += ("dp_accounting.pld.privacy_loss_distribution", "dp_accounting.rdp", "matplotlib.figure", "jinja2")
_LONGEST = 1 << 17  # bytes of a request: an environment


def can_be_minded() -> bool:
    """Whether this system tells when a process ends by a file, as Linux does, and nobody measures what processes run
    (`make coverage`); otherwise jobs are started as ever."""
    if any(name.startswith("COV") for name in os.environ):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def ask(path: str, script: str) -> None:
    """Have a script run as if this process did, and end as it ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as own:
        own.connect(path)
        told = {"script": script, "folder": os.getcwd(), "environment": dict(os.environ), "own": _own()}
        told["umask"] = os.umask(0)
        streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
        own.sendmsg([json.dumps(told).encode()], streams)
        answer = own.recv(100)
    if answer == b"another":
        os.execv(sys.executable, [sys.executable, script])
    status = int(answer or 1)
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


def _own() -> list:
    """What a job has of the process that starts it, and the one that has the libraries cannot give it."""
    return [[os.environ.get(name) for name in SAME], [list(resource.getrlimit(limit)) for limit in LIMITS]]


def serve(path: str) -> None:
    """Fork a job for each that asks, until nobody starts any more: standard input ends."""
    import importlib
    import selectors

    for name in IMPORTED:
        importlib.import_module(name)
    own = _own()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door, selectors.DefaultSelector() as waiting:
        door.bind(path)
        door.listen(64)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those who mind jobs are minded by nobody
        waiting.register(door, selectors.EVENT_READ)
        waiting.register(sys.stdin, selectors.EVENT_READ)
        while True:
            if any(key.fileobj is sys.stdin for key, _ in waiting.select()):
                return
            asking, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _mind(asking, own)
            asking.close()


def _mind(asking: socket.socket, own: list) -> None:
    """Run a job for one that asks, who is told how it ended; it does not outlive who asked."""
    import select

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, ancillary, *_ = asking.recvmsg(_LONGEST, socket.CMSG_SPACE(3 * 4))
    told, streams = json.loads(message), array.array("i", ancillary[0][2])
    if told["own"] != own:
        asking.send(b"another")
        os._exit(0)
    job = os.fork()
    if job == 0:
        asking.close()
        _run(told, streams)
    ended = os.pidfd_open(job)
    ready, _, _ = select.select([ended, asking], [], [])
    if ended not in ready:  # who asked is gone
        os.kill(job, signal.SIGKILL)
    _, status = os.waitpid(job, 0)
    if ended in ready:
        asking.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(told: dict, streams: array.array) -> None:
    """Be the process `python SCRIPT`."""
    import atexit
    import threading
    import traceback
    import types

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(told["environment"])
    os.chdir(told["folder"])
    os.umask(told["umask"])
    script = told["script"]
    sys.argv[:], sys.path[0] = [script], os.path.dirname(os.path.abspath(script))
    main = types.ModuleType("__main__")
    main.__file__, sys.modules["__main__"] = script, main
    status = 0
    try:
        with open(script, "rb") as file:
            exec(compile(file.read(), script, "exec"), main.__dict__)
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    (ask if len(sys.argv) > 2 else serve)(*sys.argv[1:])
