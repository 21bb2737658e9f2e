"""Whether 1 % is what it may be, on real spectra: for whole, copied and short runs, incomplete decoys, and where nothing is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.entrapment import main, read_records
from benchmarks.entrapment_tables import exceeded


@pytest.mark.long
def test_no_part_is_false_more_often_than_it_may_be(shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--data", str(shared_data), "--quick", "--threads", "2", "--first-seed", "901", "--out", str(tmp_path / "found.jsonl")])
    reported = capsys.readouterr().out
    assert status == 0, reported
    parts = {record.get("part") for record in read_records(tmp_path / "found.jsonl")}
    assert parts >= {"paired", "copies", "small", "small null", "incomplete 50%", "null"}


def test_what_is_false_too_often_is_named() -> None:
    """Twice the share that is allowed, of spectra enough to tell; and as much on copies of few spectra, which tell nothing."""

    def found(part: str, entrapped: int, spectra: list[int]) -> dict[str, object]:
        said = {"figure": "discoveries", "part": part, "set": "qc_shew", "seed": 1, "program": "proteoscope", "level": "psm"}
        return {**said, "reported": 0.01, "ratio": 1.0, "targets": 10_000, "entrapped": entrapped, "false_spectra": spectra}

    assert exceeded([found("paired", 60, list(range(60)))]) == []
    (wrong,) = exceeded([found("paired", 130, list(range(130)))])
    assert wrong.startswith("paired, psm:") and "2.5" in wrong
    assert exceeded([found("copies", 130, [1] * 65 + [2] * 65)]) == []
    assert exceeded([found("small null", 3, [1, 2, 3])] * 20) == ["small null: 3.00 false PSMs in a search, at most 1"]
