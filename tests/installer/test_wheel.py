"""The installed package: one top-level name, the same files for both ways of building, and independence of other packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator

import proteoscope

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = ("docs", "engine", "gui", "kernels", "resources")
pytest.importorskip("hatchling", reason="the build program of the wheel is not installed")


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build a wheel or an sdist without a network, and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = (path for path in folder.iterdir() if path.suffix in (".whl", ".gz"))
    return built


def files_of(wheel: Path) -> set[str]:
    """Return the names of the files in a wheel."""
    with zipfile.ZipFile(wheel) as file:
        return set(file.namelist())


def tracked_files(folder: str) -> set[str]:
    """Return the files below a folder of the repository that were not made by running the program."""
    paths = (path for path in (REPOSITORY / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(REPOSITORY).as_posix() for path in paths}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the working tree."""
    return build("wheel", REPOSITORY, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sdist of the working tree."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", REPOSITORY, folder)) as file:
        file.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """A folder with the files that installing the wheel puts into `site-packages`."""
    folder = tmp_path / "site-packages"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    return folder


@pytest.fixture
def folder_with_other_packages(tmp_path: Path) -> Path:
    """A folder with packages named `engine`, `gui`, `kernels` and `resources` of another program, which fail when they are imported."""
    folder = tmp_path / "foreign"
    for name in PARTS[1:]:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("raise RuntimeError('this package belongs to another program')\n")
    return folder


def python(path: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with a path of its own, a cache in that folder, and without the editable install."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR" and not name.startswith("COV")}
    environment |= {"PYTHONPATH": str(path), "PROTEOSCOPE_CACHE": str(folder / "cache")}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def test_wheel_has_one_top_level_package_and_all_files(wheel: Path) -> None:
    names = files_of(wheel)
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"proteoscope"}
    for part in PARTS:
        assert {name.removeprefix("proteoscope/") for name in names if name.startswith(f"proteoscope/{part}/")} == tracked_files(part)


def test_wheel_built_from_sdist_equals_wheel_of_working_tree(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    assert files_of(build("wheel", sdist, tmp_path)) == files_of(wheel)


def test_package_version_equals_the_installed_version() -> None:
    assert proteoscope.__version__ == version("proteoscope")


def test_sdist_contains_each_package_folder_once(sdist: Path) -> None:
    assert not [part for part in PARTS if (sdist / "proteoscope" / part).exists()]
    assert not [part for part in PARTS if not (sdist / part).is_dir()]


def test_symbolic_links_of_the_package_are_relative() -> None:
    links = [REPOSITORY / "proteoscope" / part for part in PARTS] + [REPOSITORY / "installer" / "editable" / "proteoscope"]
    assert [str(link.readlink()) for link in links] == [*(f"../{part}" for part in PARTS), "../../proteoscope"]


def test_wheel_installs_no_package_named_engine_gui_or_kernels(installed: Path, tmp_path: Path) -> None:
    for name in PARTS[1:]:
        done = python(installed, tmp_path, "-c", f"import {name}")
        assert f"ModuleNotFoundError: No module named '{name}'" in done.stderr


def source_path(source: str, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the folder on the path of a process that has the package from a source."""
    if source == "wheel":
        return Path(request.getfixturevalue("installed"))
    if source == "sdist":
        return Path(request.getfixturevalue("sdist"))
    if source == "editable":
        return REPOSITORY / "installer" / "editable"
    checkout = tmp_path / "checkout"  # as Git makes it where there are no symbolic links
    (checkout / "proteoscope").mkdir(parents=True)
    for name in ("__init__.py", "__init__.pyi", "__main__.py"):
        (checkout / "proteoscope" / name).write_bytes((REPOSITORY / "proteoscope" / name).read_bytes())
    for part in PARTS:
        (checkout / part).symlink_to(REPOSITORY / part)
        (checkout / "proteoscope" / part).write_text(f"../{part}")
    return checkout


def copy_compiled_kernels(installed: Path, folder: Path) -> None:
    """Copy the compiled kernels of the checkout to the cache of `python` for the same modules of an installed wheel."""
    here, there = REPOSITORY / "kernels" / "cpu", installed / "proteoscope" / "kernels" / "cpu"
    for path in here.glob("*.py"):  # Numba compares times of modification
        os.utime(there / path.name, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    name = _CacheLocator.get_suitable_cache_subpath(str(there / "scores.py"))
    # Other tests may compile meanwhile, and rename files that they have written.
    left_out = shutil.ignore_patterns("*.tmp*", "*.sums?*", "*.lock", "*.pyc*")
    shutil.copytree(here / "__pycache__", folder / "cache" / "kernels" / name, ignore=left_out)


SCRIPT = """
import sys
from pathlib import Path
from proteoscope import resources
from proteoscope.engine.searches import run_search
if __name__ == "__main__":
    for kind, names, options in {searches}:
        inputs = {{name: [resources.path("samples", file)] for name, file in names.items()}}
        summary = run_search(kind, inputs, device="cpu", **options)
    print([name for name in ("engine", "gui", "kernels", "resources") if name in sys.modules])
"""
ALIGN = ("align", {"queries": "protein_queries.fasta", "database": "protein_queries.fasta"}, {"out": "hits.tsv"})
READ, FOLDS = "lambda_reads.fastq.gz", {"queries": "albumin_domain_3.pdb.gz", "database": "folds.pdb.gz"}
PROTEINS = "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
ALL_SEARCHES = [
    ALIGN,
    ("structures", FOLDS, {"out": "folds.tsv"}),
    ("identify", {"spectra": "BSA1.mzML.gz", "database": PROTEINS}, {"project": "project", "preset": "low-resolution"}),
    ("modified", {"spectra": "BSA1.mzML.gz", "database": PROTEINS}, {"project": "project"}),
    ("cluster", {"spectra": "BSA1.mzML.gz"}, {"project": "project"}),
    ("library", {"spectra": "BSA1.mzML.gz", "library": "bsa_library.msp.gz"}, {"project": "project"}),
    ("reads", {"patterns": READ, "texts": "lambda_phage.fasta.gz"}, {"out": "reads.sam", "preset": "map-to-genome"}),
]


@pytest.mark.parametrize("source", ["wheel", "editable", "no links"])
def test_search_runs_next_to_packages_named_engine_and_gui(
    source: str, request: pytest.FixtureRequest, folder_with_other_packages: Path, tmp_path: Path
) -> None:
    path = source_path(source, request, tmp_path)
    if source == "wheel":  # the others have the cache of the checkout
        copy_compiled_kernels(path, folder_with_other_packages)
    (folder_with_other_packages / "script.py").write_text(SCRIPT.format(searches=[ALIGN]))
    done = python(path, folder_with_other_packages, "script.py")
    assert done.stdout == "[]\n", done.stderr


# Each compiles all kernels.
@pytest.mark.long
@pytest.mark.parametrize("source", ["wheel", "sdist", "editable", "no links"])
def test_all_searches_run_next_to_packages_named_engine_and_gui(
    source: str, request: pytest.FixtureRequest, folder_with_other_packages: Path, tmp_path: Path
) -> None:
    (folder_with_other_packages / "script.py").write_text(SCRIPT.format(searches=ALL_SEARCHES))
    done = python(source_path(source, request, tmp_path), folder_with_other_packages, "script.py")
    assert done.stdout == "[]\n", done.stderr


def test_command_line_runs_next_to_another_module_named_engine(installed: Path, folder_with_other_packages: Path) -> None:
    (folder_with_other_packages / "engine.py").write_text("raise RuntimeError('this module belongs to another program')\n")
    done = python(installed, folder_with_other_packages, "-m", "proteoscope", "presets")
    assert (done.returncode, done.stderr) == (0, "") and "high-resolution" in done.stdout


def test_kernels_of_installed_wheel_are_cached_in_the_user_cache(installed: Path, tmp_path: Path) -> None:
    program = "from proteoscope.kernels.cpu.scores import correlation_height as f; f(1.0)"
    done = python(installed, tmp_path, "-B", "-c", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "cache" / "kernels").rglob("*correlation_height*.nbc"))
    assert not list(installed.rglob("__pycache__"))


def test_kernels_compile_once_for_checkout_and_editable_link(tmp_path: Path) -> None:
    """A checkout and its editable link share one cache: functions compiled by one are loaded by the other."""
    program = (
        "from proteoscope.kernels.cpu.scores import correlation_height as f; f(1.0); from proteoscope.kernels.cpu import caching; "
        "print(len(f.stats.cache_misses), len(f.stats.cache_hits))"
    )
    for path in (REPOSITORY, REPOSITORY / "installer" / "editable"):
        done = python(path, tmp_path, "-c", program)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "0 1\n"


def test_reading_processes_import_the_installed_package(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "from pathlib import Path\n"
        "from proteoscope.engine.jobs.progress import Progress\n"
        "from proteoscope.engine.structures.reading_processes import read_structures\n"
        "if __name__ == '__main__':\n"
        "    print(list(read_structures([Path('none.pdb')], 2, Progress())))\n"
    )
    done = python(installed, tmp_path, "script.py")
    assert "none.pdb" in done.stdout and done.stderr == "", done.stderr
