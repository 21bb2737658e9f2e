"""The key that seals what stopped runs keep: whole or not there."""

import errno
import secrets

from proteoscope.engine.project import sealing


def test_a_disk_that_is_full_leaves_no_part_of_a_key(tmp_path, monkeypatch):
    plain = secrets.token_bytes

    def refuse_the_key(n_bytes):  # the file stands by then; names of temporary files ask for fewer
        if n_bytes == sealing.KEY_BYTES:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(n_bytes)

    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(secrets, "token_bytes", refuse_the_key)
    assert sealing.sealing_key(make=True) is None
    assert list(tmp_path.rglob(".*")) == []


def test_what_is_no_key_is_replaced_and_a_key_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path))
    assert sealing.sealing_key() is None
    (tmp_path / "resume.key").write_bytes(b"short")
    key = sealing.sealing_key(make=True)
    assert key is not None and len(key) == sealing.KEY_BYTES
    assert sealing.sealing_key(make=True) == key == sealing.sealing_key()
    assert [path.name for path in tmp_path.iterdir()] == ["resume.key"]
