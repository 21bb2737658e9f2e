"""Workers for a run: started here, on hosts by ssh, or by Slurm, or found at the address of a scheduler that others started."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import threading
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import proteoscope
from proteoscope import engine
from proteoscope.engine.errors import InputError, WorkersError
from proteoscope.engine.execution.cluster.certificates import (
    AUTHORITY,
    ROLES,
    Certificates,
    make_certificates,
    needs_cryptography,
    read_certificates,
    write_certificates,
)
from proteoscope.engine.execution.cluster.cluster import Cluster
from proteoscope.engine.execution.cluster.connection import SILENT, Connection, configure, no_check
from proteoscope.engine.execution.cluster.option import WorkersRequest, parse_workers
from proteoscope.engine.files import open_regular, storage_error, temporary_folder
from proteoscope.engine.jobs.progress import Cancelled, Progress

__all__ = ["Host", "open_cluster", "read_hosts", "read_slurm", "ssh_command"]

_LOCAL_SECONDS, _REMOTE_SECONDS, _QUEUE_SECONDS = 60.0, 120.0, 86400.0  # until the first workers are there
_END_SECONDS, _CANCEL_SECONDS = 5.0, 0.1
_DAYS = 30  # that the certificates of a run are valid
_MAXIMUM_BYTES = 1 << 20
_HOST_OPTIONS = ("workers", "threads", "device", "command")
_PROGRAM = "proteoscope"
_SLURM_OPTIONS = frozenset(
    {
        "jobs",
        "queue",
        "account",
        "cores",
        "memory",
        "walltime",
        "job_extra_directives",
        "job_script_prologue",
        "interface",
        "python",
        "shared_temp_directory",
        "workers_of_job",
        "device",
        "job_cpu",
        "log_directory",
    }
)


class Host(NamedTuple):
    """A line of a file of hosts: where, how many workers, with how many threads together, what they compute with, and the program there."""

    name: str
    workers: int | None = None
    threads: int | None = None
    device: str = "auto"
    command: str = _PROGRAM


@contextmanager
def open_cluster(
    wish: str,
    progress: Progress,
    *,
    device: str = "auto",
    threads: int | None = None,
    certificates: Path | None = None,
    spool: Path | None = None,
) -> Iterator[Cluster]:
    """Workers as a user wishes them, as long as the block lasts; the first of them are there when it begins.

    Parameters
    ----------
    wish : see `parse_workers`. device, threads : of local workers together. certificates : the folder, for the address of a scheduler.
    spool : see `Cluster`.

    Raises
    ------
    ParameterError, InputError : the wish cannot be. WorkersError : they do not come. Cancelled : the user asked to stop.
    """
    wished = parse_workers(wish)
    needs_cryptography()
    configure()
    progress.stage("Starting workers")
    with ExitStack() as stack:
        started = _start(wished, stack, device, threads, certificates)
        client = _client(started.address, started.security)
        _close_at_end(stack, client)
        connection = Connection(client, progress.message)
        stack.callback(connection.close)
        _await(connection, started, progress)
        cluster = Cluster(wish, connection, spool)
        stack.callback(cluster.close)
        yield cluster


class _Started(NamedTuple):
    """A scheduler with the workers that are on their way: how many must come, in what time, and what looks for those that failed."""

    address: str
    security: Any
    n: int
    seconds: float
    check: Callable[[], None] = no_check


def _await(connection: Connection, started: _Started, progress: Progress) -> None:
    if not connection.wait(started.n, started.seconds, progress, started.check):
        raise WorkersError(
            f"no worker came to {started.address} within {started.seconds:.0f} seconds; start some with: proteoscope workers start"
        )


def _start(wished: WorkersRequest, stack: ExitStack, device: str, threads: int | None, certificates: Path | None) -> _Started:
    if wished.sort == "address":
        security = None
        if wished.address.startswith("tls:"):
            if certificates is None:
                raise WorkersError(f"{wished.address}: give the folder of its certificates with --certificates DIR")
            security = read_certificates(certificates, "client").security()
        return _Started(wished.address, security, 1, _REMOTE_SECONDS)
    own = make_certificates(_DAYS)
    if wished.sort == "slurm":
        assert wished.file is not None
        return _slurm(read_slurm(wished.file), own, stack)
    if wished.sort == "local":
        address = _scheduler(stack, own, "127.0.0.1")
        options = ["--count", str(wished.count), "--device", device, *([] if threads is None else ["--threads", str(threads)])]
        # The path of this process, so that the same program is started, whatever the working directory holds.
        program = f"import sys; sys.path[:] = {sys.path!r}; from proteoscope.engine.command_line.main import main; main()"
        command = [sys.executable, "-P", "-c", program, "workers", "start", address, "--certificates", "-", *options]
        process = stack.enter_context(_process(command, own.bundle("worker"), "The local workers"))
        return _Started(address, own.security(), wished.count, _LOCAL_SECONDS, process)
    assert wished.file is not None
    hosts = read_hosts(wished.file)
    address = _scheduler(stack, own, _own_address(hosts[0].name))
    processes = [stack.enter_context(_process(ssh_command(host, address), own.bundle("worker"), host.name)) for host in hosts]

    def check() -> None:
        for process in processes:
            process()

    return _Started(address, own.security(), len(hosts), _REMOTE_SECONDS, check)


def _scheduler(stack: ExitStack, own: Certificates, host: str) -> str:
    """A scheduler in this process; its address."""
    from distributed import Scheduler  # optional: installed with the extra "workers"
    from distributed.deploy.spec import SpecCluster  # optional: installed with the extra "workers"

    options = {"host": host, "protocol": "tls", "security": own.security(), "dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with _without_warnings():
        cluster = SpecCluster(workers={}, scheduler={"cls": Scheduler, "options": options}, security=own.security(), silence_logs=SILENT)
    _close_at_end(stack, cluster)
    return str(cluster.scheduler_address)


def _client(address: str, security: Any) -> Any:
    from distributed import Client  # optional: installed with the extra "workers"

    try:
        with _without_warnings():
            return Client(address, security=security, set_as_default=False, direct_to_workers=True, timeout=20)
    except (OSError, TimeoutError) as error:
        raise WorkersError(f"the scheduler at {address} cannot be reached: {' '.join(str(error).split())[:200]}") from None


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Of `distributed`, which would be taken for ours: of versions that differ, and of ports."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _close_at_end(stack: ExitStack, closed: Any) -> None:
    """Close a client or a cluster with the block, on a thread of its own: that may take a while, and a cancel does not wait for it."""

    def close() -> None:
        with contextlib.suppress(Exception):
            closed.close()

    def leave(kind: type[BaseException] | None, *_: object) -> None:
        thread = threading.Thread(target=close, name="proteoscope-closing", daemon=True)
        thread.start()
        thread.join(_CANCEL_SECONDS if kind is not None and issubclass(kind, Cancelled) else _END_SECONDS)

    stack.push(leave)


@contextmanager
def _process(command: Sequence[str], bundle: str, name: str) -> Iterator[Callable[[], None]]:
    """A process that runs workers as long as the block lasts; what looks whether it has failed.

    It is given its certificates by standard input, and ends when that does: also when this process is killed.
    """
    with tempfile.TemporaryFile() as complaint:
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=complaint)
        except OSError as error:
            raise WorkersError(f"{name}: {command[0]} cannot be started: {error.strerror}") from None
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, and says why
            process.stdin.write(bundle.encode() + b"\n")
            process.stdin.flush()

        def check() -> None:
            if process.poll() is not None:
                raise WorkersError(f"{name}: the workers ended: {_last_line(complaint) or f'code {process.returncode}'}")

        try:
            yield check
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.terminate()
            threading.Thread(target=_reap, args=(process,), name="proteoscope-closing", daemon=True).start()


def _reap(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
        return
    process.kill()
    process.wait()


def _last_line(complaint: IO[bytes]) -> str:
    complaint.seek(0)
    lines = complaint.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def ssh_command(host: Host, address: str) -> list[str]:
    """What starts the workers of a host: the user's own OpenSSH, which asks for no password, and the program there."""
    options = [] if host.workers is None else ["--count", str(host.workers)]
    options += [] if host.threads is None else ["--threads", str(host.threads)]
    remote = f"{host.command} workers start {address} --certificates - --device {host.device} {' '.join(options)}".strip()
    return ["ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-T", "--", host.name, remote]


def read_hosts(path: Path) -> list[Host]:
    """The hosts of a file: one a line, ``[USER@]NAME [workers=N] [threads=N] [device=auto] [command=/path/to/proteoscope]``.

    Raises
    ------
    InputError : a line says something else, or there is none.
    """
    hosts = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, options = words[0], dict[str, Any]()
        for word in words[1:]:
            key, _, value = word.partition("=")
            is_number = key in ("workers", "threads")
            if key not in _HOST_OPTIONS or not value or (is_number and not (value.isdecimal() and 1 <= int(value[:6]) <= 1024)):
                raise InputError(
                    path,
                    f"'{word[:60]}' is no option of a host",
                    place=f"line {number}",
                    remedy=f"Expected {', '.join(_HOST_OPTIONS)}, as workers=2",
                )
            options[key] = int(value) if is_number else value
        if name.startswith("-") or not all(letter.isalnum() or letter in "@._-:[]" for letter in name):
            raise InputError(path, f"'{name[:60]}' is no name of a host", place=f"line {number}", remedy="Expected NAME or USER@NAME")
        if any(letter in str(value) for value in options.values() for letter in ";&|<>$`\\\"'()"):
            raise InputError(path, "an option holds letters of a shell", place=f"line {number}", remedy="Give a plain path")
        hosts.append(Host(name, **options))
    if not hosts:
        raise InputError(path, "names no host", remedy="Write one a line")
    return hosts


def read_slurm(path: Path) -> dict[str, Any]:
    """The options of a Slurm configuration, which `dask_jobqueue.SLURMCluster` takes, besides ``jobs``, ``workers_of_job`` and ``device``.

    Raises
    ------
    InputError : it is no TOML, or has something else in it.
    """
    try:
        found = tomllib.loads(_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(path, f"is no TOML: {error}", remedy="docs/cluster.md has an example") from None
    if unknown := sorted(set(found) - _SLURM_OPTIONS):
        raise InputError(path, f"'{unknown[0][:60]}' is no option of it", remedy=f"Expected {', '.join(sorted(_SLURM_OPTIONS))}")
    for name in ("jobs", "cores", "workers_of_job"):
        value = found.setdefault(name, 1)
        if type(value) is not int or not 1 <= value <= 10_000:
            raise InputError(path, f"{name} = {str(value)[:40]}: expected a whole number from 1 on")
    for name in ("memory",):
        if not isinstance(found.setdefault(name, "4GB"), str):
            raise InputError(path, f"{name}: expected a text, as 64GB")
    return found


def _text(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read(_MAXIMUM_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})") from None


def _own_address(host: str) -> str:
    """The address of this machine by which a host reaches it."""
    name = host.rpartition("@")[2]
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.connect((name, 9))  # nothing is sent
            return str(one.getsockname()[0])
    except OSError:
        return socket.gethostname()  # a name that only ssh knows


def _slurm(found: dict[str, Any], own: Certificates, stack: ExitStack) -> _Started:
    """Jobs that Slurm is asked for; the first that runs is enough to begin."""
    from dask_jobqueue import SLURMCluster  # optional: installed with the extra "workers"

    options = {**found}
    jobs, workers, device = options.pop("jobs"), options.pop("workers_of_job"), options.pop("device", "auto")
    prologue = [*options.pop("job_script_prologue", []), f"export PYTHONPATH={_program_folder()}"]
    folder = Path(options.pop("shared_temp_directory", Path.cwd()))
    # The command line is above this package: a job runs this module, and nothing of it is called here.
    worker = engine.command_line.worker_of_job.__name__
    security = _written(own, folder, stack)
    try:
        with _without_warnings():
            cluster = SLURMCluster(
                **options,
                processes=1,
                protocol="tls://",
                security=security,
                job_script_prologue=prologue,
                silence_logs=SILENT,
                worker_command=worker,
                worker_extra_args=["--count", str(workers), "--device", device],
                scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
            )
    except (TypeError, ValueError) as error:
        raise WorkersError(f"Slurm: {error}") from None
    _close_at_end(stack, cluster)
    cluster.scale(jobs=jobs)
    return _Started(str(cluster.scheduler_address), security, 1, _QUEUE_SECONDS)


def _program_folder() -> Path:
    """Where the packages of the program lie."""
    return Path(proteoscope.__file__).resolve().parents[1]


def _written(own: Certificates, folder: Path, stack: ExitStack) -> Any:
    """The certificates as files that the nodes see too; the script of a job names them, and holds none."""
    from distributed import Security  # optional: installed with the extra "workers"

    try:
        made = stack.enter_context(temporary_folder(folder / "certificates"))
    except OSError as error:
        raise storage_error(folder, error) from error
    write_certificates(own, made)
    fields = {f"tls_{role}_{part}": str(made / f"{role}{end}.pem") for role in ROLES for part, end in (("cert", ""), ("key", "-key"))}
    return Security(require_encryption=True, tls_ca_file=str(made / AUTHORITY), **fields)
