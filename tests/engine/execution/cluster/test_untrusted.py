"""Certificates, workers and calls that are not what they should be are refused in a sentence."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.cluster import certificates, connection, remote
from proteoscope.engine.execution.cluster.certificates import make_certificates, read_certificates, write_certificates
from proteoscope.engine.execution.cluster.payload import pack

HOSTILE = {"host": "h", "process": 1, "store": "", "device": "cpu", "description": "d", "reason": "", "make": remote.make()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_certificates(make_certificates(1), tmp_path / "certificates")
    return tmp_path / "certificates"


def shift_clock(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Clock:
            return super().now(tz) + datetime.timedelta(days=days)

    monkeypatch.setattr(certificates.datetime, "datetime", Clock)


@pytest.mark.parametrize(("days", "text"), [(2, "valid until"), (-2, "valid from"), (-20000, "valid from"), (49000, "valid until")])
def test_certificates_are_refused_outside_their_time(folder: Path, monkeypatch: pytest.MonkeyPatch, days: int, text: str) -> None:
    shift_clock(monkeypatch, days)
    with pytest.raises(InputError, match=text):
        read_certificates(folder, "client")


@pytest.mark.parametrize("name", ["client.pem", "client-key.pem", "authority.pem"])
def test_certificates_of_another_authority_are_refused(folder: Path, tmp_path: Path, name: str) -> None:
    other = tmp_path / "other"
    write_certificates(make_certificates(1), other)
    (folder / name).write_bytes((other / name).read_bytes())
    with pytest.raises(InputError, match=r"is not signed by the authority|does not belong to the key") as error:
        read_certificates(folder, "client")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["client.pem", "client-key.pem", "authority.pem"])
@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "x" * 2_000_000])
def test_damaged_certificates_are_refused(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_certificates(folder, "client")
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


class Client:
    """A client of `distributed` whose scheduler names one worker."""

    status = "running"

    def subscribe_topic(self, topic: str, handler: Callable[..., None]) -> None:
        pass

    def scheduler_info(self, **_: Any) -> dict[str, Any]:
        return {"workers": {"tcp://127.0.0.1:1": {}}}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        "text",
        {},
        {"failure": 1},
        {"failure": ""},
        {"failure": "", "answer": "text"},
        {"failure": "", "answer": b"\xc1"},
        {"failure": "", "answer": pack([])},
        {"failure": "", "answer": pack({})},
        {"failure": "", "answer": pack({**HOSTILE, "process": "x"})},
        {"failure": "", "answer": pack({**HOSTILE, "host": 5})},
        {"failure": "", "answer": pack({**HOSTILE, "make": 5})},
        {"failure": "", "answer": pack({**HOSTILE, "make": {"sources": 5}})},
        {"failure": "", "answer": pack({**HOSTILE, "description": "x" * 100_000})},
        {"failure": "", "answer": pack({**HOSTILE, "make": {"version": "x" * 100_000}})},
    ],
)
def test_worker_with_a_foreign_answer_is_refused(answer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(answer)
        return future

    monkeypatch.setattr(connection.Connection, "_begin", begin)
    messages: list[str] = []
    opened = connection.Connection(Client(), messages.append)
    for thread in threading.enumerate():
        if thread.name == "proteoscope-greeting":
            thread.join(10)
    assert opened.devices() == [] and len(messages) == 1
    assert messages[0].startswith("The worker ") and "\n" not in messages[0] and len(messages[0]) < 1000


@pytest.mark.parametrize("digest", ["../../secret", "/etc/passwd", "", "A" * 64, "0" * 63, "0" * 64 + "/"])
def test_workers_refuse_names_that_are_no_digests(digest: str, own_cache: Path) -> None:
    session = remote._Session()
    try:
        with pytest.raises((ValueError, KeyError)):
            remote.receive("none", digest, 4, 0, b"data")
        if digest:
            with pytest.raises(ValueError, match="no digest"):
                remote._missing(session, pack([[["/nowhere", 1, 4, 1], digest]]))
    finally:
        session.close()


@pytest.mark.parametrize(("size", "offset"), [(4, 1), (4, -1), (-4, 0), (2, 0), (1 << 70, 1 << 69)])
def test_workers_refuse_parts_outside_their_file(size: int, offset: int) -> None:
    with pytest.raises((ValueError, KeyError)):
        remote.receive("none", "0" * 64, size, offset, b"data")


@pytest.mark.parametrize("name", [one for one in remote._FUNCTIONS if one not in ("greet", "close", "stop")])
def test_functions_of_workers_fail_for_foreign_sessions(name: str) -> None:
    arguments = {"open_work": ("s", b"\xc1", b"\xc1", True, True), "begin": ("s", b"", b""), "look_for": ("s", b"")}
    arguments |= {"receive": ("s", "0" * 64, 1, 0, b"x"), "start": ("s", 0, 0, 1), "fetch": ("s", 0)}
    with pytest.raises((ValueError, KeyError)):
        remote._FUNCTIONS[name](*arguments[name])
    remote.close("s")
