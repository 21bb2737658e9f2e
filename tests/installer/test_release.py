"""A release is made only from its tag, and changes after its signature are detected."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = [name for name in ("bash", "git", "sha256sum") if shutil.which(name) is None]
pytestmark = pytest.mark.skipif(bool(TOOLS), reason=f"the script needs {', '.join(TOOLS)}")
needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="GnuPG is not installed")


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, without the user's settings of git."""
    variables = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GNUPGHOME": str(folder / "keys")}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=60)


def check(folder: Path, tag: str = "v1.2.3") -> str:
    """Run the script for a tag and return its message: why it cannot be released, or that it can."""
    done = run(folder, "bash", "installer/release.sh", tag, "--only-check")
    assert (done.returncode == 0) == ("can be released" in done.stdout)
    return done.stdout + done.stderr


@pytest.fixture
def tagged(tmp_path: Path) -> Path:
    """A repository with everything the checks inspect, tagged as a release."""
    (tmp_path / "installer").mkdir()
    for name in ("release.sh", "common.sh"):
        shutil.copy(REPOSITORY / "installer" / name, tmp_path / "installer")
    for name in ("pyproject.toml", "CITATION.cff"):
        text = (REPOSITORY / name).read_text()
        changed = re.sub(r'^(version(?: = "|: ))[0-9.]+', r"\g<1>1.2.3", text, count=1, flags=re.MULTILINE)
        assert changed != text
        (tmp_path / name).write_text(changed)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2026-12-01\n\n* All is new.\n")
    commit(tmp_path)
    run(tmp_path, "git", "tag", "v1.2.3")
    return tmp_path


def commit(folder: Path) -> None:
    run(folder, "git", "init", "-q")
    run(folder, "git", "add", "-A")
    done = run(folder, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    assert done.returncode == 0, done.stderr


def test_release_check_accepts_the_tag_of_the_version(tagged: Path) -> None:
    assert "v1.2.3 can be released" in check(tagged)


def test_release_check_rejects_uncommitted_changes_and_wrong_tag(tagged: Path) -> None:
    (tagged / "more.txt").write_text("more")
    assert "in no commit" in check(tagged)
    commit(tagged)
    assert "is not tagged v1.2.3" in check(tagged)
    assert "is not tagged v9.9.9" in check(tagged, "v9.9.9")


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("pyproject.toml", 'version = "1.2.3"', 'version = "1.2.4"', "pyproject.toml has another version"),
        ("CITATION.cff", "version: 1.2.3", "version: 1.2.2", "CITATION.cff has another version"),
        ("CHANGELOG.md", "2026-12-01", "unreleased", "CHANGELOG.md has no section"),
    ],
)
def test_release_check_requires_the_tagged_version_in_each_file(tagged: Path, name: str, old: str, new: str, message: str) -> None:
    text = (tagged / name).read_text()
    assert old in text
    (tagged / name).write_text(text.replace(old, new))
    commit(tagged)
    run(tagged, "git", "tag", "-f", "v1.2.3")
    assert message in check(tagged)


def test_pyproject_citation_and_changelog_have_the_same_version() -> None:
    version = re.search(r'^version = "(.+)"$', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None and f"\nversion: {version[1]}\n" in (REPOSITORY / "CITATION.cff").read_text()
    assert f"## [{version[1]}]" in (REPOSITORY / "CHANGELOG.md").read_text()


@needs_gpg
def test_release_signature_detects_changed_files(tagged: Path, tmp_path: Path) -> None:
    """The files are signed with a temporary key."""
    (tmp_path / "keys").mkdir(mode=0o700)
    made = run(tmp_path, "gpg", "--batch", "--passphrase", "", "--quick-generate-key", "throwaway@example.org", "ed25519", "sign", "1d")
    assert made.returncode == 0, made.stderr
    parts = tmp_path / "a release"
    parts.mkdir()
    (parts / "one.whl").write_bytes(b"wheel")
    (parts / "constraints.txt").write_text("numpy==2.4.6\n")
    done = run(tmp_path, "bash", "installer/release.sh", "--sign", str(parts), "--key", "throwaway@example.org")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in parts.iterdir()) == ["SHA256SUMS", "SHA256SUMS.asc", "constraints.txt", "one.whl"]

    def verify() -> tuple[int, int]:
        home = {"GNUPGHOME": str(tmp_path / "keys")}
        commands = (["gpg", "--batch", "--verify", "SHA256SUMS.asc", "SHA256SUMS"], ["sha256sum", "--check", "--strict", "SHA256SUMS"])
        ended = [
            subprocess.run(command, cwd=parts, env=os.environ | home, capture_output=True, check=False).returncode for command in commands
        ]
        return ended[0], ended[1]

    assert verify() == (0, 0)
    (parts / "one.whl").write_bytes(b"other")
    assert verify() == (0, 1)
    sums = (parts / "SHA256SUMS").read_text()
    (parts / "SHA256SUMS").write_text(sums.replace(sums.split()[0], "0" * 64))
    assert verify()[0] == 1
    run(tmp_path, "gpgconf", "--kill", "all")
