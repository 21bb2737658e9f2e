"""The report of measured speeds is written from existing rows, and each row has a command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.report import RESULTS, Published, benchmarks, main, published_figures, read_rows


def test_benchmark_commands_of_result_files_exist() -> None:
    every = benchmarks()
    assert {benchmark.name for benchmark in every} == {path.stem for path in RESULTS.glob("*.jsonl")}
    for benchmark in every:
        assert benchmark.rows and benchmark.commands, benchmark.name
        for command in benchmark.commands:
            module = re.search(r"-m (benchmarks\.\w+)", command)
            assert module is not None and RESULTS.parents[1].joinpath(*module[1].split(".")).with_suffix(".py").is_file()


def test_each_published_speed_has_a_measured_counterpart() -> None:
    for figure in published_figures():
        assert any(figure.ours in row.values() for row in read_rows(figure.file)) and figure.date and figure.device


@pytest.mark.parametrize(("higher", "ratio"), [(True, 0.5), (False, 2.0)])
def test_ratio_to_published_value_is_inverted_if_lower_is_better(higher: bool, ratio: float) -> None:
    assert Published("", "", "", 10.0, "s", higher, 5.0, "", "", "").ratio == ratio


def test_report_has_speeds_false_fractions_and_newest_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.report._EXAMINATIONS", ("entrapment_variants",))  # the other examination takes many seconds
    assert main(["--out", str(tmp_path / "report.html"), "--rows", "3"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "185.6 GCUPS" in page and "The newest 3 of" in page and "false" in page
    assert page.count("<section>") == len(benchmarks()) + 1
