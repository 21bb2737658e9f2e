"""What is installed: one name for everybody, and a program that finds its own files by it, whatever lies around it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import proteoscope

REPOSITORY = Path(__file__).resolve().parents[2]
pytest.importorskip("hatchling", reason="what builds the wheel is not installed")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=REPOSITORY, check=True, capture_output=True
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """A folder with what installing puts into `site-packages`, beside packages of others with the program's names."""
    place = tmp_path / "site-packages"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(place)
    for name in proteoscope.PACKAGES:
        (place / name).mkdir()
        (place / name / "__init__.py").write_text("STRANGER = True\n")
    return place


def python(place: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the packages of a place, in a folder where it keeps what it keeps."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(place), "PROTEOSCOPE_CACHE": str(home / "cache")}
    return subprocess.run([sys.executable, *arguments], cwd=home, env=environment, capture_output=True, text=True)


def test_a_wheel_holds_one_name_and_all_that_the_packages_hold(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = {Path(name) for name in file.namelist()}
    assert {name.parts[0].partition("-")[0] for name in names} == {"proteoscope"}
    assert {name.parts[0] for name in names if len(name.parts) == 2 and name.name == "__init__.py"} == {"proteoscope"}
    for package in proteoscope.PACKAGES:
        files = {path for path in (REPOSITORY / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts}
        within = Path("proteoscope", "top-level")
        assert {within / path.relative_to(REPOSITORY) for path in files} == {
            name for name in names if name.is_relative_to(within / package)
        }


def test_other_programs_keep_their_own_packages_of_these_names(installed: Path, tmp_path: Path) -> None:
    done = python(installed, tmp_path, "-c", "import gui, engine, kernels, resources; print(engine.STRANGER, resources.STRANGER)")
    assert done.stdout == "True True\n", done.stderr


def test_the_program_finds_its_own_among_strangers(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "__init__.py").touch()
    (tmp_path / "engine.py").touch()
    done = python(installed, tmp_path, "-m", "proteoscope", "presets")
    assert (done.returncode, done.stderr) == (0, "") and "high-resolution" in done.stdout


@pytest.mark.parametrize("is_installed", [True, False])
def test_a_script_finds_the_packages_once_installed_or_in_a_checkout(installed: Path, tmp_path: Path, is_installed: bool) -> None:
    (tmp_path / "script.py").write_text(
        "import proteoscope\n"
        "from importlib.util import find_spec\n"
        "import engine, resources\n"
        "from engine.formats import read_proteins\n"
        "print(engine.__file__, resources.path('samples').is_dir(), read_proteins.__module__, find_spec('proteoscope.engine'))\n"
    )
    place, packages = (installed, installed / "proteoscope" / "top-level") if is_installed else (REPOSITORY, REPOSITORY)
    done = python(place, tmp_path, "script.py")
    assert done.stdout == f"{packages / 'engine' / '__init__.py'} True engine.formats.protein_files None\n", done.stderr


def test_a_process_that_uses_another_package_of_such_a_name_is_told(installed: Path, tmp_path: Path) -> None:
    done = python(installed, tmp_path, "-c", "import resources, proteoscope")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: a package named resources of another program is in use; it and Proteoscope need processes of their own"
    )


def test_compiled_kernels_are_not_kept_where_nobody_would_remove_them(installed: Path, tmp_path: Path) -> None:
    done = python(installed, tmp_path, "-B", "-c", "import proteoscope; from kernels.cpu.scores import correlation_height as f; f(1.0)")
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "cache" / "kernels").rglob("*correlation_height*.nbc"))
    assert not list(installed.rglob("__pycache__"))


def test_processes_of_the_program_find_the_packages(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import proteoscope\n"
        "from pathlib import Path\n"
        "from engine.jobs.progress import Progress\n"
        "from engine.structures.reading_processes import read_structures\n"
        "if __name__ == '__main__':\n"
        "    print(list(read_structures([Path('none.pdb')], 2, Progress())))\n"
    )
    done = python(installed, tmp_path, "script.py")
    assert "none.pdb" in done.stdout and done.stderr == "", done.stderr
