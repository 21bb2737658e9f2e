"""Versions with known vulnerabilities are rejected, and no declared requirement allows one."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from datetime import date, timedelta
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from installer.audit import Hole, KnownHoles, installed, read_holes

REPOSITORY = Path(__file__).resolve().parents[2]
HOLE = Hole("some", "2.0", "CVE-1", "it leaks", first="1.5")


@pytest.mark.parametrize(("version", "has"), [("1.4.9", False), ("1.5", True), ("1.10", True), ("2.0rc1", True), ("2.0", False)])
def test_audit_compares_versions_as_numbers_not_as_text(version: str, has: bool) -> None:
    assert HOLE.has(version) is has
    assert KnownHoles(date(2026, 1, 1), (HOLE,)).found({"some": version, "other": "1.6"}) == [HOLE] * has


def test_installed_packages_have_no_known_vulnerability() -> None:
    done = subprocess.run([sys.executable, "installer/audit.py", "--list"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "duckdb " in done.stdout and "0 with a known hole" in done.stdout


def test_audit_includes_indirect_requirements() -> None:
    assert {"pytest", "pluggy", "iniconfig"} <= set(installed(["pytest"]))
    assert list(installed(["tomli_w", "is-not-there"])) == ["tomli-w"]


def test_vulnerability_list_is_outdated_after_200_days() -> None:
    holes = read_holes()
    assert not holes.is_old(holes.looked_at) and holes.is_old(holes.looked_at + timedelta(days=200))


def test_lowest_declared_versions_have_no_known_vulnerability() -> None:
    """The lowest allowed version of each package has no vulnerability."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(requirement for some in project["optional-dependencies"].values() for requirement in some)]
    least = {
        canonicalize_name(requirement.name): clause.version
        for requirement in map(Requirement, texts)
        for clause in requirement.specifier
        if clause.operator == ">="
    }
    assert [(hole.package, hole.id) for hole in read_holes().found(least) if not hole.unreached] == []


def test_audit_error_names_the_missing_packaging_package(tmp_path: Path) -> None:
    (tmp_path / "packaging.py").write_text("raise ImportError")
    done = subprocess.run(
        [sys.executable, "installer/audit.py"],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "The package packaging is not installed here, which compares versions. Run pip install packaging.\n"
