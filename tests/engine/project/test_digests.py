"""Digests equal those of common tools, and are equal for equal contents."""

import hashlib
import shutil
import subprocess

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project.digests import canonical_json, file_digest, parts_digest


def test_file_digest_equals_sha256sum(tmp_path):
    path = tmp_path / "large.bin"
    path.write_bytes(bytes(range(256)) * 40_000)
    if shutil.which("sha256sum") is None:
        pytest.skip("sha256sum is not installed")
    output = subprocess.run(["sha256sum", path], check=True, capture_output=True, text=True).stdout.split()[0]
    assert file_digest(path) == output


def test_empty_file_has_the_published_digest(tmp_path):
    (tmp_path / "empty").touch()
    assert file_digest(tmp_path / "empty") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_digest_error_names_unreadable_file(tmp_path):
    with pytest.raises(InputError, match=r"absent\.fasta: cannot be read"):
        file_digest(tmp_path / "absent.fasta")


def test_folder_digest_depends_on_names_and_contents(tmp_path):
    folder = tmp_path / "run.d"
    (folder / "inside").mkdir(parents=True)
    digests = set()
    for name, content in (("a", b"x"), ("a", b"y"), ("inside/a", b"y")):
        (folder / name).write_bytes(content)
        digests.add(file_digest(folder))
    assert len(digests) == 3
    other = folder.rename(tmp_path / "other.d")
    assert file_digest(other) in digests


def test_file_digest_stops_at_cancel(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        file_digest(path, progress)


def test_cache_key_does_not_depend_on_order_of_parts():
    parts = {"database": "ab", "parameters": {"enzyme": "Trypsin", "missed": 2}}
    two = {"parameters": {"missed": 2, "enzyme": "Trypsin"}, "database": "ab"}
    assert parts_digest(parts) == parts_digest(two) == hashlib.sha256(canonical_json(two).encode()).hexdigest()
    assert parts_digest(parts) != parts_digest({**parts, "format": 2})
    with pytest.raises(ValueError):
        canonical_json({"nan": float("nan")})
