"""A SLURM of one node on this machine, without systemd, for tests: its daemons are children of the tests.

It needs root, and the packages slurmctld, slurmd, slurm-client and munge (`make test-slurm` installs Debian's). A
machine whose /etc/slurm has a cluster of its own is left alone.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd", "sinfo")
ETC = Path("/etc/slurm")  # the job step of Snakemake's plugin drops $SLURM_CONF, so that it must stand here
MUNGE = Path("/run/munge")
PATIENCE_SECONDS = 30
MEMORY_MB = 8000  # pretended: jobs declare more than they take
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
MinJobAge=600
KillWait=5
SlurmdTimeout=10
AccountingStorageType=accounting_storage/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:1 State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes={host} MaxTime=INFINITE State=UP
"""


def missing() -> str | None:
    """Why no cluster can be started here, or None."""
    absent = [name for name in DAEMONS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed"
    if os.geteuid():
        return "not root"
    own = ETC / "slurm.conf"
    if own.exists() and not own.is_symlink():
        return f"{own} is of a cluster of this machine"
    return None


def forget_killed() -> None:
    """Take away the configuration that a killed test left: each start of Snakemake would wait for its controller."""
    configuration = ETC / "slurm.conf"
    if not configuration.is_symlink():
        return
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((configuration.readlink().parent / "slurmctld.pid").read_text()), 0)
        return  # it is at work
    for name in ("slurm.conf", "gres.conf"):
        (ETC / name).unlink(missing_ok=True)


class Cluster:
    """The daemons, and what a test does to them.

    Args:
        folder: for configuration, state and logs.
    """

    def __init__(self, folder: Path):
        self.folder, self.host = folder, socket.gethostname()
        self._daemons: dict[str, subprocess.Popen] = {}

    def start(self) -> None:
        """Bring everything up, and wait until the node is idle."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        settings = {"folder": self.folder, "host": self.host, "cpus": os.cpu_count(), "memory": MEMORY_MB}
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(**settings))
        (self.folder / "gpu").touch()
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/gpu\n")  # a pretended one
        ETC.mkdir(exist_ok=True)
        for name in ("slurm.conf", "gres.conf"):
            (ETC / name).unlink(missing_ok=True)
            (ETC / name).symlink_to(self.folder / name)
        MUNGE.mkdir(exist_ok=True)
        shutil.chown(MUNGE, "munge", "munge")
        as_munge = ("setpriv", "--reuid", "munge", "--regid", "munge", "--init-groups")
        self._run("munged", *as_munge, "munged", "--foreground")
        self.start_controller()
        self.start_node()
        self.wait("idle")

    def start_controller(self) -> None:
        """slurmctld, which goes on from its saved state."""
        self._run("slurmctld", "slurmctld", "-D")

    def start_node(self) -> None:
        """slurmd."""
        self._run("slurmd", "slurmd", "-D", "-N", self.host)

    def kill(self, daemon: str) -> None:
        """SIGKILL a daemon."""
        process = self._daemons.pop(daemon)
        process.kill()
        process.wait()

    def wait(self, state: str) -> None:
        """Wait until the node is in a state that begins so."""
        deadline, found = time.monotonic() + PATIENCE_SECONDS, ""
        while time.monotonic() < deadline:
            found = self.ask("sinfo", "--noheader", "--format=%T").split("\n")[0]
            if found.startswith(state):
                return
            time.sleep(0.2)
        raise TimeoutError(f"the node is {found!r} and not {state!r}; see {self.folder}/*.log")

    def queue(self) -> list[tuple[str, str, str]]:
        """(job, state, rule) of every job that SLURM knows, the finished ones included."""
        lines = self.ask("squeue", "--noheader", "--states=all", "--format=%i|%T|%k").splitlines()
        return [tuple(line.split("|", 2)) for line in lines]

    def ask(self, *command: str) -> str:
        """What a command of SLURM prints; "" where it fails (the controller may be down)."""
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS).stdout.strip()

    def stop(self) -> None:
        """Cancel all jobs, end the daemons, and take the configuration away."""
        self.ask("scancel", "--user=root")
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self._daemons:
                self._daemons[name].send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._daemons[name].wait(10)
                if self._daemons[name].poll() is None:
                    self._daemons[name].kill()
                    self._daemons[name].wait()
        for name in ("slurm.conf", "gres.conf"):
            (ETC / name).unlink(missing_ok=True)

    def _run(self, name: str, *command: str) -> None:
        with open(self.folder / f"{name}.out", "a") as out:
            self._daemons[name] = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)


@contextlib.contextmanager
def running(folder: Path, starting: Callable[[Callable[[], None]], None] | None = None) -> Iterator[Cluster]:
    """A cluster that is taken down again.

    Args:
        starting: calls what starts it, and may give up.
    """
    cluster = Cluster(folder)
    try:
        (starting or (lambda start: start()))(cluster.start)
        yield cluster
    finally:
        cluster.stop()
