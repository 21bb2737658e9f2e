"""Invalid certificates, workers and calls are rejected in a sentence."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.cluster import certificates, connection
from proteoscope.engine.execution.cluster.certificates import make_certificates, read_certificates, write_certificates
from proteoscope.engine.execution.cluster.payload import pack, unpack
from proteoscope.engine.execution.cluster.worker_process import RemoteWorkload, program_version

HOSTILE = {"host": "h", "process": 1, "store": "", "device": "cpu", "description": "d", "reason": "", "make": program_version()}


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
def test_certificates_are_rejected_outside_their_validity_period(
    folder: Path, monkeypatch: pytest.MonkeyPatch, days: int, text: str
) -> None:
    shift_clock(monkeypatch, days)
    with pytest.raises(InputError, match=text):
        read_certificates(folder)


@pytest.mark.parametrize("name", ["certificate.pem", "key.pem"])
def test_certificate_of_another_key_is_rejected(folder: Path, tmp_path: Path, name: str) -> None:
    other = tmp_path / "other"
    write_certificates(make_certificates(1), other)
    (folder / name).write_bytes((other / name).read_bytes())
    with pytest.raises(InputError, match="does not belong to") as error:
        read_certificates(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["certificate.pem", "key.pem"])
@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "x" * 2_000_000])
def test_damaged_certificates_are_rejected(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_certificates(folder)
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


class Client:
    """A client of `distributed` with a scheduler of one worker, which gives the same answer to each call."""

    status = "running"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def subscribe_topic(self, topic: str, handler: Callable[..., None]) -> None:
        pass

    def scheduler_info(self, **_: Any) -> dict[str, Any]:
        return {"workers": {"tcp://127.0.0.1:1": {}}}

    def run(self, function: Callable[[], bytes], workers: list[str]) -> dict[str, Any]:
        return {workers[0]: self.answer}


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        "text",
        {},
        b"",
        b"\xc1",
        pack([]),
        pack({}),
        *(
            pack(greeting)
            for greeting in (
                [],
                {},
                {**HOSTILE, "process": "x"},
                {**HOSTILE, "host": 5},
                {**HOSTILE, "make": 5},
                {**HOSTILE, "make": {"sources": 5}},
                {**HOSTILE, "description": "x" * 100_000},
                {**HOSTILE, "make": {"version": "x" * 100_000}},
            )
        ),
    ],
)
def test_worker_with_an_invalid_answer_is_rejected(answer: Any) -> None:
    messages: list[str] = []
    opened = connection.Connection(Client(answer), messages.append)
    for thread in threading.enumerate():
        if thread.name == "proteoscope-greeting":
            thread.join(10)
    assert opened.devices() == [] and len(messages) == 1
    assert messages[0].startswith("The worker ") and "\n" not in messages[0] and len(messages[0]) < 1000


@pytest.mark.parametrize("digest", ["../../secret", "/etc/passwd", "", "A" * 64, "0" * 63, "0" * 64 + "/"])
def test_workers_reject_file_names_that_are_not_digests(digest: str, own_cache: Path) -> None:
    workload = RemoteWorkload()
    with pytest.raises(ValueError, match="not a digest"):
        workload.receive(digest, 4, 0, b"data")
    if digest:
        with pytest.raises(ValueError, match="not a digest"):
            workload.missing([[["/nowhere", 1, 4, 1], digest]])


@pytest.mark.parametrize(("size", "offset"), [(4, 1), (4, -1), (-4, 0), (2, 0), (1 << 70, 1 << 69)])
def test_workers_reject_bytes_outside_the_declared_file_size(size: int, offset: int) -> None:
    with pytest.raises((ValueError, IsADirectoryError)):
        RemoteWorkload().receive("0" * 64, size, offset, b"data")


def test_worker_rejects_received_file_with_another_digest(own_cache: Path) -> None:
    with pytest.raises(ValueError, match="did not arrive as it was sent"):
        RemoteWorkload().receive("0" * 64, 4, 0, b"data")
    assert not list((own_cache / "workers").glob("0*"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("open", (b"\xc1", [], True)),
        ("open", (pack(["no kind", {}, {}, "os:system"]), [], True)),
        ("begin", (b"", [])),
        ("begin", (pack([None, None]), [])),
        ("compute", (0, 1, True)),
        ("missing", ([7],)),
        ("receive", ("0" * 64, 2, 1, b"x")),
        ("__class__", ()),
        ("_unpacked", (b"",)),
    ],
)
def test_worker_call_returns_error_for_invalid_arguments(name: str, arguments: tuple[Any, ...], own_cache: Path) -> None:
    answer = unpack(RemoteWorkload().call(name, *arguments))
    assert set(answer) == {"error", "is_of_device"} and answer["error"] and not answer["is_of_device"]
