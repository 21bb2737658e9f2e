"""False fractions at 1 % FDR on real spectra: whole, copied and short runs, incomplete decoys, runs without correct answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.entrapment import main, read_records
from benchmarks.entrapment_tables import exceeded


@pytest.mark.long
def test_entrapment_check_finds_no_excessive_false_fraction(shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(
        ["--data", str(shared_data), "--quick", "--threads", "2", "--first-seed", "901", "--out", str(tmp_path / "records.jsonl")]
    )
    reported = capsys.readouterr().out
    assert status == 0, reported
    parts = {record.get("part") for record in read_records(tmp_path / "records.jsonl")}
    assert parts >= {"paired", "copies", "small", "small null", "incomplete 50%", "null"}


def test_entrapment_check_reports_excessive_false_fractions() -> None:
    """Twice the allowed fraction is reported for many spectra, but not for copies of a few, since these are too little evidence."""

    def record_of(part: str, entrapped: int, spectra: list[int]) -> dict[str, object]:
        record = {"figure": "discoveries", "part": part, "set": "qc_shew", "seed": 1, "program": "proteoscope", "level": "psm"}
        return {**record, "reported": 0.01, "ratio": 1.0, "targets": 10_000, "entrapped": entrapped, "false_spectra": spectra}

    assert exceeded([record_of("paired", 60, list(range(60)))]) == []
    (wrong,) = exceeded([record_of("paired", 130, list(range(130)))])
    assert wrong.startswith("paired, psm:") and "2.5" in wrong
    assert exceeded([record_of("copies", 130, [1] * 65 + [2] * 65)]) == []
    assert exceeded([record_of("small null", 3, [1, 2, 3])] * 20) == ["small null: 3.00 false PSMs in a search, at most 1"]
