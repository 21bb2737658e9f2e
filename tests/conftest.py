"""Fixtures of all test folders."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from xdist.remote import Producer

    from tests.distribution import FileScheduling

# No time limits: a busy machine is not an error.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

REPOSITORY = Path(__file__).resolve().parents[1]

LONGEST_FILES = (
    "tests/fuzz/test_readers.py",
    "tests/fuzz/test_kills_and_disks.py",
    "tests/fuzz/test_result_tables.py",
    "tests/engine/formats/test_hostile_files.py",
    "tests/gui/results/test_results.py",
    "tests/gui/results/test_hits.py",
    "tests/engine/execution/cluster/test_cluster.py",
    "tests/kernels/test_alignment.py",
    "tests/engine/command_line/test_main.py",
    "tests/engine/command_line/test_loaded_modules.py",
    "tests/engine/identification/test_entrapment.py",
    "tests/gui/structure/test_structure_panel.py",
    "tests/gui/test_random_windows.py",
    "tests/gui/results/test_random_use.py",
    "tests/gui/test_window.py",
    "tests/gui/results/test_one_unit.py",
    "tests/gui/test_journeys.py",
    "tests/gui/test_twenty_tasks.py",
    "tests/fuzz/test_structure_databases.py",
    "tests/kernels/test_cuda_gapsmis.py",
    "tests/kernels/test_k_means.py",
    "tests/test_new_score.py",
    "tests/test_from_python.py",
    "tests/test_extending.py",
    "tests/installer/test_manual.py",
    "tests/test_examples.py",
    "tests/test_worked_examples.py",
    "tests/test_house.py",
)
"""The longest files, and long ones that would be last: several processes start with them, so that none is still busy when the others have
no tests left."""


_YOUNG_OBJECTS = 20_000
"""Number of new objects after which Python collects garbage in tests; with its 700, collecting takes a twentieth of their time."""


def import_tests_in_turn(config: pytest.Config) -> None:
    """Import all test files, in each process of pytest-xdist from another file on.

    Without this, all processes of a new checkout would rewrite the assertions of the same file at the same time, instead of reading what
    another process has stored. This takes longer than all imports.
    """
    process = getattr(config, "workerinput", None)
    if process is None or config.args != config.getini("testpaths"):
        return
    files = sorted((REPOSITORY / "tests").rglob("test_*.py"))
    start = len(files) * int(process["workerid"].removeprefix("gw")) // process["workercount"]
    for path in [*files[start:], *files[:start]]:
        # pytest imports a file that fails, or is skipped, again, and reports the reason.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(path.relative_to(REPOSITORY).with_suffix("").parts))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Exclude modules and tests, which live to the end, from garbage collection."""
    gc.disable()
    try:
        import_tests_in_turn(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_YOUNG_OBJECTS)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; the others retain their order."""
    places = {REPOSITORY / name: place for place, name in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling | None:
    """Distribute whole files over processes, and run the tests of a crashed process in others."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.distribution import FileScheduling

    return FileScheduling(config, log)


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    """Folder with one subfolder for each shared case (``PROTEOSCOPE_SHARED_CASES``); tests are skipped without it."""
    folder = Path(os.environ.get("PROTEOSCOPE_SHARED_CASES", REPOSITORY.parent / "shared" / "cases"))
    if not folder.is_dir():
        pytest.skip(f"the shared cases are not there ({folder}); set PROTEOSCOPE_SHARED_CASES to their folder")
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Unpacked real data: spectra, proteomes and more that may not ship with the program.

    The data are unpacked once into a cache (``PROTEOSCOPE_TEST_DATA``, else the user's cache folder). Tests are skipped without them.
    """
    archive = Path(os.environ.get("PROTEOSCOPE_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    unpack = archive / "unpack.py"
    if not unpack.exists():
        pytest.skip(f"the shared test data is not there ({archive}); set PROTEOSCOPE_SHARED_DATA to its folder")
    cache = Path(os.environ.get("PROTEOSCOPE_TEST_DATA", Path.home() / ".cache" / "proteoscope-test-data"))
    complete = cache / ".complete"
    if not complete.exists():
        subprocess.run([sys.executable, str(unpack), str(cache)], check=True, capture_output=True)
        complete.touch()
    return cache


@pytest.fixture(scope="module", autouse=True)
def old_objects() -> Iterator[None]:
    """Exclude objects created before a test file, mostly imported modules, from garbage collection, which would visit more and more.

    Garbage of earlier files is collected first. Tests of windows have their own fixture of this name.
    """
    gc.collect()
    gc.freeze()
    yield


@pytest.fixture(scope="session", autouse=True)
def no_bare_packages() -> Iterator[None]:
    """Fail the last test of a process if a module of the program was imported without the prefix `proteoscope`, as a second copy."""
    yield
    assert not {"engine", "gui", "kernels", "resources"} & sys.modules.keys()


@pytest.fixture(scope="session", autouse=True)
def cache_of_tests(tmp_path_factory) -> Iterator[Path]:
    """Cache of all tests of a process, so that they neither use nor fill the user's cache."""
    folder = tmp_path_factory.mktemp("cache-of-tests")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROTEOSCOPE_CACHE", str(folder))
        yield folder


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch) -> Path:
    """Empty cache of a single test."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(folder))
    return folder


@pytest.fixture
def sample_data() -> Path:
    """Sample data that ships with the program."""
    return REPOSITORY / "resources" / "samples"


def leave_advice_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Omit the advice of identifications with few results.

    It changes no result, but takes two thirds of the time of the sample's identification. Tests of the page "Python API" include it.
    """
    monkeypatch.setattr("proteoscope.engine.identification.advice.explain_low_yield", lambda *_: None)


@pytest.fixture(scope="session")
def identified_once(tmp_path_factory: pytest.TempPathFactory, cache_of_tests: Path) -> Path:
    """Project with the identification of the first sample run in the large database, made once for all tests of a process.

    It leaves more spectra unidentified, for tests of explanations, than `demo`, which searches all three runs in the small database.
    """
    from proteoscope.engine.command_line.main import main

    folder = tmp_path_factory.mktemp("identified-once") / "project"
    with pytest.MonkeyPatch.context() as patched:
        leave_advice_out(patched)
        samples = REPOSITORY / "resources" / "samples"
        files = [str(samples / "BSA1.mzML.gz"), "--database", str(samples / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")]
        options = ["--preset", "low-resolution", "--out", str(folder), "--device", "cpu", "--threads", "2", "--quiet"]
        assert main(["identify", *files, *options]) == 0
    return folder


@pytest.fixture
def identified_sample(identified_once: Path, tmp_path: Path) -> Path:
    """Copy of the project `identified_once` for a single test."""
    return Path(shutil.copytree(identified_once, tmp_path / "identified"))
