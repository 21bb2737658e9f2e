"""True false shares at 1 % on real spectra: whole, copied and short runs, incomplete decoys, and runs without right answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.entrapment import main, read_records
from benchmarks.entrapment_tables import exceeded


@pytest.mark.long
def test_no_part_exceeds_the_allowed_false_share(shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(
        ["--data", str(shared_data), "--quick", "--threads", "2", "--first-seed", "901", "--out", str(tmp_path / "record_of.jsonl")]
    )
    reported = capsys.readouterr().out
    assert status == 0, reported
    parts = {record.get("part") for record in read_records(tmp_path / "record_of.jsonl")}
    assert parts >= {"paired", "copies", "small", "small null", "incomplete 50%", "null"}


def test_excessive_false_share_is_named() -> None:
    """Twice the allowed share is reported if there are enough spectra, but not for copies of a few spectra, which are no evidence."""

    def record_of(part: str, entrapped: int, spectra: list[int]) -> dict[str, object]:
        said = {"figure": "discoveries", "part": part, "set": "qc_shew", "seed": 1, "program": "proteoscope", "level": "psm"}
        return {**said, "reported": 0.01, "ratio": 1.0, "targets": 10_000, "entrapped": entrapped, "false_spectra": spectra}

    assert exceeded([record_of("paired", 60, list(range(60)))]) == []
    (wrong,) = exceeded([record_of("paired", 130, list(range(130)))])
    assert wrong.startswith("paired, psm:") and "2.5" in wrong
    assert exceeded([record_of("copies", 130, [1] * 65 + [2] * 65)]) == []
    assert exceeded([record_of("small null", 3, [1, 2, 3])] * 20) == ["small null: 3.00 false PSMs in a search, at most 1"]
