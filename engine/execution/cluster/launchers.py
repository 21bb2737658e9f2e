"""Start of the workers of a run (on this machine, on hosts by ssh, or by Slurm), or connection to a running scheduler."""

import contextlib
import socket
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import proteoscope
from proteoscope import engine
from proteoscope.engine.errors import WorkersError, shortened
from proteoscope.engine.execution.cluster.certificates import (
    Certificates,
    make_certificates,
    write_certificates,
)
from proteoscope.engine.execution.cluster.cluster import Cluster
from proteoscope.engine.execution.cluster.connection import SILENT, Connection, configure
from proteoscope.engine.execution.cluster.requests import (
    Host,
    SlurmConfiguration,
    WorkersRequest,
    connection_security,
    parse_workers,
    read_hosts,
    read_slurm,
)
from proteoscope.engine.execution.devices import own_program, printed_lines
from proteoscope.engine.files import scratch_folder, storage_errors, temporary_folder
from proteoscope.engine.jobs.progress import Cancelled, Progress

__all__ = ["open_cluster", "ssh_command"]

_LOCAL_SECONDS, _REMOTE_SECONDS, _QUEUE_SECONDS = 60.0, 120.0, 86400.0  # seconds until the first workers must have joined
_END_SECONDS, _CANCEL_SECONDS = 5.0, 0.1
_MAXIMUM_CHARACTERS = 300  # maximum characters of an error
_DAYS = 30  # validity of the certificates of a run
_NO_PAGES = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}


@contextmanager
def open_cluster(
    requested: str,
    progress: Progress,
    *,
    device: str = "auto",
    threads: int | None = None,
    certificates: Path | None = None,
    spool: Path | None = None,
) -> Iterator[Cluster]:
    """Start workers or connect to them, wait until the first have joined, and yield the cluster; the workers are released after the block.

    Parameters
    ----------
    requested : str
        See `parse_workers`.
    progress : Progress
        Progress, which shows the start, and workers that join and leave.
    device, threads : str, int, optional
        Device and total number of threads of local workers.
    certificates : Path, optional
        Folder of certificates, for a scheduler that is given by its address.
    spool : Path, optional
        Folder for columns in memory (see `Cluster`); by default the folder for temporary files.

    Raises
    ------
    ParameterError, InputError
        If the request is not valid.
    WorkersError
        If no worker joins.
    Cancelled
        If the user cancelled.
    """
    request = parse_workers(requested)
    configure()
    progress.stage("Starting workers")
    with ExitStack() as stack:
        started = _start(request, stack, device, threads, certificates)
        client = _client(started)
        _close_at_end(stack, client)
        connection = Connection(client, progress.message)
        stack.callback(connection.close)
        if not connection.wait(started.n, started.seconds, progress, started.checks):
            text = f"no worker joined {started.address} within {started.seconds:.0f} seconds"
            raise WorkersError(f"{text}; start some with: proteoscope workers start")
        yield Cluster(requested, connection, stack.enter_context(scratch_folder()) if spool is None else _folder(spool, "workers", stack))


class _Started(NamedTuple):
    """Started scheduler, to which `n` workers are expected to join within `seconds` seconds.

    The functions `checks` raise an exception if the workers can no longer join.
    """

    address: str
    security: Any
    n: int
    seconds: float
    checks: Sequence[Callable[[], None]] = ()


def _start(request: WorkersRequest, stack: ExitStack, device: str, threads: int | None, certificates: Path | None) -> _Started:
    if request.sort == "address":
        return _Started(request.address, connection_security(request.address, certificates), 1, _REMOTE_SECONDS)
    made = make_certificates(_DAYS)
    if request.sort == "local":
        return _start_local(request.count, made, stack, device, threads)
    return (_start_slurm if request.sort == "slurm" else _start_hosts)(request.file, made, stack)


def _start_local(n: int, made: Certificates, stack: ExitStack, device: str, threads: int | None) -> _Started:
    address = _scheduler(stack, made, "127.0.0.1")
    options = ["--count", str(n), "--device", device, *([] if threads is None else ["--threads", str(threads)])]
    program = own_program("from proteoscope.engine.command_line.main import main; main()")
    command = [*program, "workers", "start", address, "--certificates", "-", *options]
    check = stack.enter_context(_process(command, made, "The local workers"))
    return _Started(address, made.security(), n, _LOCAL_SECONDS, [check])


def _start_hosts(path: Path, made: Certificates, stack: ExitStack) -> _Started:
    hosts = read_hosts(path)
    address = _scheduler(stack, made, _own_address(hosts[0].name))
    checks = [stack.enter_context(_process(ssh_command(host, address), made, host.name)) for host in hosts]
    return _Started(address, made.security(), len(hosts), _REMOTE_SECONDS, checks)


def ssh_command(host: Host, address: str) -> list[str]:
    """Return the command that starts the workers of a host with the user's OpenSSH, without a password prompt."""
    options = [] if host.workers is None else ["--count", str(host.workers)]
    options += [] if host.threads is None else ["--threads", str(host.threads)]
    remote = f"{host.command} workers start {address} --certificates - --device {host.device} {' '.join(options)}".strip()
    return ["ssh", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-T", "--", host.name, remote]


def _own_address(host: str) -> str:
    """Return the address of this machine that `host` can connect to."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host.rpartition("@")[2], 9))  # nothing is sent
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()  # a host name that only ssh knows


def _start_slurm(path: Path, made: Certificates, stack: ExitStack) -> _Started:
    """Submit the Slurm jobs; the run can begin when the first job runs."""
    from dask_jobqueue import SLURMCluster  # optional: installed with the extra "workers"

    configuration = read_slurm(path)
    options = configuration.model_dump(exclude_none=True, exclude=set(SlurmConfiguration.OF_THE_PROGRAM))
    options["job_script_prologue"] = [
        *configuration.job_script_prologue,
        f"export PYTHONPATH={Path(proteoscope.__file__).resolve().parents[1]}",
    ]
    # Files that the nodes can also read, so that the script of a job names the certificates and does not contain them.
    folder = _folder(Path(configuration.shared_temp_directory or Path.cwd()), "certificates", stack)
    security = Certificates(*map(str, write_certificates(made, folder))).security()
    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about different versions, and about ports
            cluster = SLURMCluster(
                **options,
                processes=1,
                protocol="tls://",
                security=security,
                silence_logs=SILENT,
                # The command line is above this package; the job runs this module, which is not called here.
                worker_command=engine.command_line.worker_of_job.__name__,
                worker_extra_args=["--count", str(configuration.workers_of_job), "--device", configuration.device],
                scheduler_options=_NO_PAGES,
            )
    except (TypeError, ValueError) as error:
        raise WorkersError(f"Slurm: {error}") from None
    _close_at_end(stack, cluster)
    cluster.scale(jobs=configuration.jobs)
    return _Started(str(cluster.scheduler_address), security, 1, _QUEUE_SECONDS)


def _folder(parent: Path, name: str, stack: ExitStack) -> Path:
    """Create a temporary folder, which is removed when the block ends."""
    with storage_errors(parent):
        return stack.enter_context(temporary_folder(parent / name))


def _scheduler(stack: ExitStack, made: Certificates, host: str) -> str:
    """Start a scheduler in this process, and return its address."""
    from distributed import Scheduler  # optional: installed with the extra "workers"
    from distributed.deploy.spec import SpecCluster  # optional: installed with the extra "workers"

    security = made.security()
    options = {"host": host, "protocol": "tls", "security": security, **_NO_PAGES}
    with warnings.catch_warnings(action="ignore"):  # warnings about different versions, and about ports
        cluster = SpecCluster(workers={}, scheduler={"cls": Scheduler, "options": options}, security=security, silence_logs=SILENT)
    _close_at_end(stack, cluster)
    return str(cluster.scheduler_address)


def _client(started: _Started) -> Any:
    from distributed import Client  # optional: installed with the extra "workers"

    try:
        with warnings.catch_warnings(action="ignore"):  # warnings about different versions, and about ports
            return Client(started.address, security=started.security, set_as_default=False, direct_to_workers=True, timeout=20)
    except (OSError, TimeoutError) as error:
        raise WorkersError(f"the scheduler at {started.address} cannot be reached: {shortened(str(error))}") from None


def _close_at_end(stack: ExitStack, resource: Any) -> None:
    """Close a client or cluster when the block ends, on another thread, since closing takes a while and cancellation must not wait."""

    def close() -> None:
        with contextlib.suppress(Exception):
            resource.close()

    def leave(kind: type[BaseException] | None, *_: object) -> None:
        thread = threading.Thread(target=close, name="proteoscope-closing", daemon=True)
        thread.start()
        thread.join(_CANCEL_SECONDS if kind is not None and issubclass(kind, Cancelled) else _END_SECONDS)

    stack.push(leave)


@contextmanager
def _process(command: Sequence[str], made: Certificates, name: str) -> Iterator[Callable[[], None]]:
    """Run workers in a process until the block ends; yield a function that raises an error if the process has ended.

    The process reads its certificates from standard input, and ends when the input ends, also if this process is killed.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
        except OSError as error:
            raise WorkersError(f"{name}: {command[0]} cannot be started: {error.strerror}") from None
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended; the check reports this
            process.stdin.write(made.to_line().encode() + b"\n")
            process.stdin.flush()

        def check() -> None:
            if process.poll() is not None:
                reason = "".join(printed_lines(errors)[-1:])[:_MAXIMUM_CHARACTERS]
                raise WorkersError(f"{name}: the workers ended: {reason or f'code {process.returncode}'}")

        try:
            yield check
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.terminate()
            threading.Thread(target=_reap, args=(process,), name="proteoscope-closing", daemon=True).start()


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
