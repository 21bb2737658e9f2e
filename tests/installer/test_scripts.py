"""The set-up scripts, run on copies with a search path without the commands that a test requires to be missing."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from hashlib import sha256
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="the scripts need bash")


@pytest.fixture
def bare_machine(tmp_path: Path) -> Path:
    """Copy the installer next to a `bin` with the few commands that every machine has: no Python, no package manager, no sudo."""
    shutil.copytree(REPOSITORY / "installer", tmp_path / "installer", symlinks=True)  # one leads to the whole program
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("bash", "cat", "cut", "dirname", "env", "grep", "id", "mkdir", "mktemp", "rm", "sed", "sha256sum"):
        program = shutil.which(name)
        assert program, name
        (commands / name).symlink_to(program)
    return tmp_path


def run(machine: Path, script: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a user would, from another folder, without keyboard input."""
    assert BASH
    variables = {"PATH": str(machine / "bin"), "HOME": str(machine), **environment}
    command = [BASH, str(machine / "installer" / script), *options]
    return subprocess.run(
        command, cwd="/", env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("script", ["run.sh", "test.sh"])
def test_setup_script_lists_supported_versions_without_python(bare_machine: Path, script: str) -> None:
    # An absolute path, because /usr/bin/python3 is searched for by name for any search path.
    ended = run(bare_machine, script, PROTEOSCOPE_PYTHON=str(bare_machine / "no-python"))
    assert ended.returncode == 1
    assert "Python 3.11, 3.12 or 3.13" in ended.stderr
    assert "PROTEOSCOPE_PYTHON" in ended.stderr
    assert not (bare_machine / ".venv").exists()


def test_run_script_rejects_an_unsupported_python_version(bare_machine: Path) -> None:
    old = bare_machine / "python3.10"
    old.write_text("#!/bin/sh\nexit 1\n")  # an unsuitable Python fails the version check with this status
    old.chmod(0o755)
    assert run(bare_machine, "run.sh", PROTEOSCOPE_PYTHON=str(old)).returncode == 1


def complete_environment(machine: Path, kind: str, lock: str) -> Path:
    """Make an environment with the stamps of an installation; return the file that lists calls of its programs."""
    environment = machine / ".venv"
    (environment / "bin").mkdir(parents=True)
    called = machine / "called"
    for name in ("python", "proteoscope"):
        program = environment / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{called}"\n')
        program.chmod(0o755)
    refuses = machine / "bin" / "apt-get"
    refuses.write_text(f'#!/bin/sh\necho "apt-get $*" >>"{called}"\nexit 1\n')
    refuses.chmod(0o755)
    (environment / ".proteoscope-place").write_text(f"{environment}\n")
    project = sha256((machine / "pyproject.toml").read_bytes()).hexdigest()
    (environment / ".proteoscope-installed").write_text(f"{project} {kind}\n")
    (environment / ".proteoscope-installed-lock").write_text(f"{sha256(lock.encode()).hexdigest()}\n")
    return called


def calls_of(called: Path) -> list[str]:
    """Return the listed calls in alphabetical order, because some run concurrently; checks of Python's version are left out."""
    return sorted(line for line in called.read_text().splitlines() if not line.startswith("python -c"))


def in_shell(machine: Path, command: str) -> str:
    """Return what a shell prints that has read `common.sh`."""
    assert BASH
    script = f'. "{machine / "installer" / "common.sh"}"; {command}'
    return subprocess.run([BASH, "-c", script], capture_output=True, text=True, check=True, timeout=60).stdout


def test_run_script_installs_nothing_in_a_complete_environment(bare_machine: Path) -> None:
    """In a complete environment with a stamp of the current pyproject.toml, only the program is run, and neither pip nor apt-get."""
    called = complete_environment(bare_machine, "dev", (bare_machine / "installer/requirements.lock").read_text())
    libraries = bare_machine / "bin" / "ldconfig"
    script = (bare_machine / "installer" / "common.sh").read_text()
    names = [line.split()[0] for line in script.splitlines() if line.startswith("lib") and ".so." in line]
    libraries.write_text("#!/bin/sh\n" + "".join(f"echo '\t{name} (libc6,x86-64) => /lib/{name}'\n" for name in names))
    libraries.chmod(0o755)

    ended = run(bare_machine, "run.sh")

    assert ended.returncode == 0, ended.stderr
    assert calls_of(called) == ["proteoscope compile", f"proteoscope demo --out {bare_machine / 'sample_project'}"]
    assert "no display" in ended.stdout


def test_headless_run_script_needs_no_window_packages_or_display(bare_machine: Path) -> None:
    called = complete_environment(bare_machine, "headless", in_shell(bare_machine, "headless_lock"))
    ended = run(bare_machine, "run.sh", "--headless", DISPLAY=":99")
    assert ended.returncode == 0, ended.stderr
    assert calls_of(called) == ["proteoscope compile", f"proteoscope demo --out {bare_machine / 'sample_project'}"]


def test_run_script_rejects_an_unknown_option(bare_machine: Path) -> None:
    ended = run(bare_machine, "run.sh", "--no-window")
    assert (ended.returncode, ended.stderr) == (2, "proteoscope: usage: bash installer/run.sh [--headless]\n")


def test_headless_lock_has_the_packages_used_without_a_window(bare_machine: Path) -> None:
    """Compare with the direct and indirect dependencies according to the metadata of the installed packages."""
    waiting = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    used = set[str]()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name not in used and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            used.add(name)
            waiting += requires(name) or []
    locked = in_shell(bare_machine, "headless_lock").replace("\\\n", " ").splitlines()
    assert {canonicalize_name(Requirement(line.split(" --hash")[0]).name) for line in locked} == used
    assert all("--hash=sha256:" in line for line in locked)


def test_leave_out_tests_removes_only_tests_of_listed_packages(bare_machine: Path) -> None:
    packages = bare_machine / ".venv/lib/python3.12/site-packages"
    files = ["scipy/stats/tests/data/one.npy", "numba/tests/__init__.py", "scipy/stats/_test.py", "scipy/test/one.py", "other/tests/one.py"]
    for name in files:
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).touch()
    in_shell(bare_machine, "leave_out_tests")
    assert [name for name in files if (packages / name).exists()] == files[2:]


def test_lock_file_has_one_allowed_version_of_each_dependency() -> None:
    """This holds for each Python version; `bash installer/lock.sh` writes the lock file."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    required = [Requirement(text) for text in [*project["dependencies"], *project["optional-dependencies"]["gui"]]]
    text = (REPOSITORY / "installer" / "requirements.lock").read_text().replace("\\\n", " ")
    locked = [Requirement(line.split(" --hash")[0]) for line in text.splitlines() if line.strip()]
    assert all("--hash=sha256:" in line for line in text.splitlines() if line.strip())
    for python in ("3.11", "3.12", "3.13"):
        environment = {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}
        used = [line for line in locked if line.marker is None or line.marker.evaluate(environment)]
        versions = {canonicalize_name(line.name): next(iter(line.specifier)).version for line in used}
        assert len(versions) == len(used)
        wrong = [str(line) for line in required if not line.specifier.contains(versions.get(canonicalize_name(line.name), "0"))]
        assert wrong == [], python
