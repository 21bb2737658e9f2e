"""Workers in separate processes, with TLS: their results, and what happens when they end, join, or have to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed.core import ConnectionPool

from proteoscope.engine.errors import WorkersError
from proteoscope.engine.execution.cluster.certificates import make_certificates, write_certificates
from proteoscope.engine.execution.cluster.cluster import Cluster
from proteoscope.engine.execution.cluster.columns import ColumnFile, file_digest
from proteoscope.engine.execution.cluster.connection import RemoteDevice
from proteoscope.engine.execution.cluster.launchers import open_cluster
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.kinds import KINDS
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.scheduler import Scheduler
from proteoscope.engine.jobs.progress import Cancelled, Progress, RecordingProgress
from tests.engine.execution.cluster.processes import Workers, end, program, scheduler_with_workers, wait_for
from tests.engine.execution.cluster.slow_kinds import NAME, load, squares
from tests.forked_scripts import ForkServer, fork_server

X = np.arange(60)


@pytest.fixture(scope="module", autouse=True)
def slow_kind() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(KINDS, NAME, load)
        yield


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with scheduler_with_workers(tmp_path_factory.mktemp("workers"), 2) as started:
        yield started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Process that imports Dask once, which takes longer than most tests, and forks scripts that connect to a scheduler."""
    cluster_modules = [f"proteoscope.engine.execution.{name}" for name in ("cluster.launchers", "cluster.worker_process", "executor")]
    with fork_server(tmp_path_factory.mktemp("scripts"), "distributed", *cluster_modules) as forking:
        yield forking


@pytest.fixture
def cluster(workers: Workers) -> Iterator[Cluster]:
    with open_cluster(workers.address, Progress(), certificates=workers.certificates) as connected:
        yield connected


def on(cluster: Cluster, progress: Progress | None = None) -> Executor:
    return Executor(Resources(1, remote_workers=cluster, progress=progress or Progress()))


def kill(device: object) -> None:
    assert isinstance(device, RemoteDevice)
    os.kill(device.process, signal.SIGKILL)


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_cluster_session_computes_rounds_and_selected_items(cluster: Cluster) -> None:
    wait_for(lambda: len(cluster.devices()) == 2)
    with on(cluster).session(squares(X)) as session:
        assert len(session.devices) == 2
        for state in (0, 5):
            assert session.run(state)["found"].tolist() == (X**2 + state).tolist()
        assert session.run(1, items=X[7::9])["found"].tolist() == (X[7::9] ** 2 + 1).tolist()
        assert sum(share.fraction for share in session.shares()) == pytest.approx(1.0)


def test_workers_get_new_partitions_in_each_round(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is not assigned the partitions of the last round again, since they may have been too large for it."""
    previous_items = list[object]()

    class Recorded(Scheduler):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            previous_items.append(options["previous_items"])
            super().__init__(*arguments, **options)

    monkeypatch.setattr("proteoscope.engine.execution.executor.Scheduler", Recorded)
    wait_for(lambda: len(cluster.devices()) == 2)
    with on(cluster).session(squares(X)) as session:
        for state in (1, 2):
            assert session.run(state)["found"].tolist() == (X**2 + state).tolist()
    assert previous_items == [{}, {}]


def test_workers_open_large_columns_from_shared_files(cluster: Cluster, tmp_path: Path) -> None:
    large = np.arange(200_000)
    np.save(tmp_path / "x.npy", large)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for x in (mapped[100_000:], large[100_000:]):
        with on(cluster).session(squares(x)) as session:
            assert session.run(items=np.array([0, 99_999]))["found"].tolist() == [100_000**2, 199_999**2]


def test_workers_receive_each_column_once_without_shared_files(
    cluster: Cluster, tmp_path: Path, cache_of_tests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, seen = np.random.default_rng(4).integers(0, 1000, 1_500_000), ColumnFile.at
    # As if the workers' machine had another file of this name.
    monkeypatch.setattr(ColumnFile, "at", lambda path: seen(path)._replace(number=0))
    np.save(tmp_path / "x.npy", x)
    for _ in range(2):
        with on(cluster).session(squares(np.load(tmp_path / "x.npy", mmap_mode="r"))) as session:
            items = np.arange(0, len(x), 100_000)
            assert session.run(items=items)["found"].tolist() == (x[items] ** 2).tolist()
    assert [path.name for path in (cache_of_tests / "workers").iterdir()] == [file_digest(tmp_path / "x.npy")]


def test_items_of_killed_worker_are_repeated_by_a_new_worker(cluster: Cluster, tmp_path: Path) -> None:
    progress, trace = RecordingProgress(Progress()), tmp_path / "trace"

    def kills() -> None:
        for count in (5, 25):
            wait_for(lambda count=count: len(lines(trace)) >= count)
            kill(cluster.devices()[0])

    killing = threading.Thread(target=kills)
    killing.start()
    with on(cluster, progress).session(squares(X, seconds=0.05, trace=trace)) as session:
        numbers = session.run()["found"]
    killing.join()
    assert numbers.tolist() == (X**2).tolist()
    assert sum("repeated elsewhere" in text for text in progress.messages) == 2


def test_new_workers_join_a_running_cluster_session(workers: Workers, cluster: Cluster, tmp_path: Path) -> None:
    gate, process = tmp_path / "gate", workers.start("--count", "1", "--threads", "1")

    def open_gate() -> None:
        wait_for(lambda: len(cluster.devices()) == 3)
        gate.touch()

    opening = threading.Thread(target=open_gate)
    with on(cluster).session(squares(X, seconds=0.06, gate=gate)) as session:
        assert len(session.devices) == 2
        opening.start()
        numbers = session.run()["found"]
        shares = session.shares()
    opening.join()
    end(process)
    assert numbers.tolist() == (X**2).tolist()
    assert len(shares) == 3


def test_error_names_items_on_which_three_workers_ended(cluster: Cluster, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with on(cluster).session(squares(X, deadly=41, trace=trace)) as session, pytest.raises(WorkersError) as caught:
        session.run()
    assert "3 workers were lost on items 41 to 41" in str(caught.value)
    assert set(lines(trace)) >= {str(item) for item in X if item != 41}


def test_cancel_stops_the_cluster_session_and_its_workers(cluster: Cluster, tmp_path: Path) -> None:
    progress, trace = Progress(), tmp_path / "trace"

    def cancels() -> None:
        wait_for(lambda: len(lines(trace)) >= 4)
        progress.cancel()

    cancelling = threading.Thread(target=cancels)
    cancelling.start()
    with pytest.raises(Cancelled), on(cluster, progress).session(squares(np.arange(10_000), seconds=0.05, trace=trace)) as session:
        session.run()
    cancelling.join()

    def is_still() -> bool:
        before = len(lines(trace))
        time.sleep(0.3)
        return len(lines(trace)) == before

    wait_for(is_still)
    assert len(lines(trace)) < 1000


def test_scheduler_forwards_calls_when_workers_are_unreachable(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    connect, refused = ConnectionPool.connect, set[str]()

    async def refuse_workers(pool: ConnectionPool, address: str, *arguments: Any, **options: Any) -> Any:
        if address != workers.address:
            refused.add(address)
            raise OSError("no route to host")
        return await connect(pool, address, *arguments, **options)

    monkeypatch.setattr(ConnectionPool, "connect", refuse_workers)
    with open_cluster(workers.address, Progress(), certificates=workers.certificates) as cluster:
        wait_for(lambda: len(cluster.devices()) == 2)
        with on(cluster).session(squares(X)) as session:
            assert session.run(3)["found"].tolist() == (X**2 + 3).tolist()
        assert refused >= {device.address for device in cluster.devices() if isinstance(device, RemoteDevice)}


_FOREIGN = """
import asyncio, sys
from pathlib import Path
from distributed import Worker
from proteoscope.engine.execution.cluster.certificates import read_certificates
from proteoscope.engine.execution.cluster import worker_process
security = read_certificates(Path(sys.argv[2])).security()
if sys.argv[3] == "version":
    worker_process.VERSION = "0.0.1"
elif sys.argv[3] == "answer":
    worker_process.greet.__code__ = (lambda: "text").__code__
elif sys.argv[3] == "class":
    del worker_process.greet
else:
    for name in [name for name in sys.modules if name.startswith("proteoscope")]:
        sys.modules[name] = None
async def serve():
    async with Worker(sys.argv[1], security=security, dashboard=False) as worker:
        await worker.finished()
asyncio.run(serve())
"""


@pytest.mark.parametrize(
    ("lacks", "message"),
    [
        ("program", "expected a worker of this version"),
        ("class", "expected a worker of this version"),
        ("answer", "it does not answer like a worker of Proteoscope"),
        ("version", "has another Proteoscope: version 0.0.1 there"),
    ],
)
def test_worker_of_another_program_or_version_gets_no_items(workers: Workers, server: ForkServer, lacks: str, message: str) -> None:
    progress = RecordingProgress(Progress())
    with open_cluster(workers.address, progress, certificates=workers.certificates) as cluster:
        wait_for(lambda: len(cluster.devices()) == 2)
        with server.start(_FOREIGN, workers.address, workers.certificates, lacks):
            wait_for(lambda: any(message in text for text in progress.messages))
            with on(cluster).session(squares(X)) as session:
                assert session.run()["found"].tolist() == (X**2).tolist()
            assert len(cluster.devices()) == 2


def test_workers_close_workload_after_cancel(workers: Workers, tmp_path: Path) -> None:
    opened, closed = Path(f"{tmp_path / 'trace'}.opened"), Path(f"{tmp_path / 'trace'}.closed")
    for number in range(4):
        progress = Progress()
        with open_cluster(workers.address, Progress(), certificates=workers.certificates) as cluster:
            wait_for(lambda: len(cluster.devices()) == 2)
            cancelling = threading.Thread(
                target=lambda n=number, p=progress: (wait_for(lambda: len(lines(opened)) == 2 * n + 2), p.cancel())
            )
            cancelling.start()
            with pytest.raises(Cancelled), on(cluster, progress).session(squares(X, seconds=0.2, trace=tmp_path / "trace")) as session:
                session.run()
            cancelling.join()
    wait_for(lambda: len(lines(closed)) == 8, 10.0)


_RUN = """
import sys
from pathlib import Path
import numpy as np
from proteoscope.engine.execution.cluster.launchers import open_cluster
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.kinds import register_kinds
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from tests.engine.execution.cluster.slow_kinds import NAME, load, squares
register_kinds([(NAME, load)])
with open_cluster(sys.argv[1], Progress(), certificates=Path(sys.argv[2])) as cluster:
    workload = squares(np.arange(10_000), seconds=0.05, trace=Path(sys.argv[3]))
    with Executor(Resources(1, remote_workers=cluster)).session(workload) as session:
        session.run()
"""


def test_workers_close_workload_after_the_run_is_killed(workers: Workers, server: ForkServer, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with server.start(_RUN, workers.address, workers.certificates, trace):
        wait_for(lambda: len(lines(trace)) >= 10)
    wait_for(lambda: len(lines(Path(f"{trace}.closed"))) == len(lines(Path(f"{trace}.opened"))))


def test_cluster_session_fails_when_the_scheduler_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proteoscope.engine.execution.cluster.cluster._WAIT_SECONDS", 1.0)
    monkeypatch.setattr("proteoscope.engine.execution.cluster.launchers._END_SECONDS", 0.5)
    trace = tmp_path / "trace"

    def kills(workers: Workers, cluster: Cluster) -> None:
        wait_for(lambda: len(lines(trace)) >= 3)
        workers.scheduler.kill()
        kill(cluster.devices()[0])

    with (
        scheduler_with_workers(tmp_path, 1) as workers,
        open_cluster(workers.address, Progress(), certificates=workers.certificates) as cluster,
    ):
        killing = threading.Thread(target=kills, args=(workers, cluster))
        killing.start()
        with on(cluster).session(squares(X, seconds=0.1, trace=trace)) as session, pytest.raises(WorkersError) as caught:
            session.run()
        killing.join()
    assert "the connection to the scheduler of the workers is lost" in str(caught.value)


def test_certificates_of_another_authority_are_rejected(workers: Workers, tmp_path: Path) -> None:
    others = tmp_path / "others"
    write_certificates(make_certificates(), others)
    with pytest.raises(WorkersError, match="cannot be reached"), open_cluster(workers.address, Progress(), certificates=others):
        raise AssertionError("certificates of another authority were accepted")
    process = program("workers", "start", workers.address, "--certificates", str(others), "--count", "1", "--device", "cpu")
    with open_cluster(workers.address, Progress(), certificates=workers.certificates) as cluster:
        _, errors = process.communicate(timeout=60.0)
        assert process.returncode != 0 and "cannot be reached" in errors and "Traceback" not in errors
        assert len(cluster.devices()) == 2


def test_local_workers_end_when_the_cluster_is_closed() -> None:
    with open_cluster("local:1", Progress(), device="cpu", threads=1) as cluster:
        (device,) = cluster.devices()
        assert isinstance(device, RemoteDevice)
        with on(cluster).session(squares(X)) as session:
            assert session.run()["found"].tolist() == (X**2).tolist()
    wait_for(lambda: not Path(f"/proc/{device.process}").exists())
