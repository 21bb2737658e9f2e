"""Recipes for containers, conda and public runners, which are not run here, agree with pyproject.toml and name existing files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CONTAINERS = REPOSITORY / "installer" / "containers"
NAMES = {"msgpack": "msgpack-python", "duckdb": "python-duckdb", "lazy-loader": "lazy_loader", "pyside6-essentials": "pyside6"}
"""Names of packages in conda that differ from those of pip."""


def test_conda_recipe_has_the_dependencies_of_pyproject() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    recipe = yaml.safe_load((REPOSITORY / "installer/conda/recipe.yaml").read_text())
    required = set[tuple[str, str]]()
    for text in [*project["dependencies"], *project["optional-dependencies"]["gui"]]:
        name, bounds = re.fullmatch(r"([\w-]+)(.*)", text).groups()
        required.add((NAMES.get(name.lower(), name.lower()), bounds))
    assert {tuple(line.split(" ", 1)) for line in recipe["requirements"]["run"]} == {("python", project["requires-python"]), *required}
    assert recipe["context"]["version"] == project["version"]
    assert recipe["about"]["license"] == project["license"]


@pytest.mark.parametrize("name", ["Dockerfile", "proteoscope.def"])
def test_container_recipe_refers_to_existing_files_and_extras(name: str) -> None:
    text = (CONTAINERS / name).read_text()
    files = set(re.findall(r"installer/[\w./-]+\w", text))
    assert f"installer/containers/{name}" in files
    assert [path for path in files if not (REPOSITORY / path).is_file()] == []
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {extra for line in re.findall(r"EXTRAS=([\w,]+)", text) for extra in line.split(",")} <= set(extras)


@pytest.mark.skipif(shutil.which("grep") is None or shutil.which("sh") is None, reason="grep and a shell are not installed")
def test_container_recipe_installs_exactly_the_locked_versions() -> None:
    recipes = "".join((CONTAINERS / name).read_text() for name in ("Dockerfile", "proteoscope.def"))
    (pattern,) = set(re.findall(r"grep -o '(.*)' installer", recipes))
    lock = REPOSITORY / "installer" / "requirements.lock"
    lines = subprocess.run(["grep", "-o", pattern, lock], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == lock.read_text().count("==") - lock.read_text().count("python_full_version ==") > 25
    assert not any("hash" in line or "\\" in line for line in lines)


def test_container_start_copies_kernels_into_a_private_cache(tmp_path: Path) -> None:
    """The image's kernels are copied once; arguments and exit status are those of the program."""
    if shutil.which("sh") is None:
        pytest.skip("no shell is installed")
    image = tmp_path / "opt"
    (image / "kernels").mkdir(parents=True)
    (image / "kernels" / "one.nbi").write_text("compiled")
    program = image / "proteoscope" / "bin" / "proteoscope"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$PROTEOSCOPE_CACHE" "$@"\nexit 3\n')
    program.chmod(0o755)
    script = tmp_path / "start.sh"
    script.write_text((CONTAINERS / "start.sh").read_text().replace("/opt", str(image)))
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    for text in ("compiled", "newer"):
        done = subprocess.run(["sh", script, "align", "a b"], env=environment, capture_output=True, text=True, check=False)
        cache = Path(done.stdout.split()[0])
        assert (done.returncode, done.stdout.split(" ", 1)[1], done.stderr) == (3, "align a b\n", "")
        assert cache.parent == tmp_path and cache.stat().st_mode & 0o777 == 0o700
        assert (cache / "kernels" / "one.nbi").read_text() == text
        (cache / "kernels" / "one.nbi").write_text("newer")


def test_public_workflow_calls_existing_scripts() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    workflow = yaml.safe_load((REPOSITORY / ".github/workflows/checks.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    text = "\n".join(step.get("run", "") for step in steps)
    assert [path for path in re.findall(r"(?:installer|tests)/[\w./-]+\w", text) if not (REPOSITORY / path).exists()] == []
    python = workflow["jobs"]["linux"]["strategy"]["matrix"]["python"]
    assert python == ["3.11", "3.12", "3.13"]
