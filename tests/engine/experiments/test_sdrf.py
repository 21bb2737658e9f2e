"""SDRF-Proteomics tables of experiments: reading, writing, and errors that name contradictions."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.experiments.table import ExperimentRow, read_experiment, read_table
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.project import Project

HEADER = (
    "Source Name",
    "characteristics[organism]",
    "characteristics [ biological replicate ]",
    "assay name",
    "comment[label]",
    "comment[fraction identifier]",
    "comment[technical replicate]",
    "comment[data file]",
    "comment[modification parameters]",
    "comment[modification parameters]",
    "factor value[treatment]",
    "factor value[time]",
)
FREE = "NT=label free sample;AC=MS:1002038"


def line(source: str, file: str, **changes: str) -> tuple[str, ...]:
    cells = {"replicate": "1", "label": FREE, "fraction": "1", "technical": "1", "treatment": "drug", "time": "24 h"} | changes
    numbers = cells["replicate"], file.partition(".")[0], cells["label"], cells["fraction"], cells["technical"]
    return (source, "homo sapiens", *numbers, file, "NT=Oxidation", "NT=Acetyl", cells["treatment"], cells["time"])


def written(folder: Path, *lines: tuple[str, ...], header: tuple[str, ...] = HEADER) -> Path:
    path = folder / "x.sdrf.tsv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t").writerows([header, *lines])
    return path


def read(path: Path) -> list[ExperimentRow]:
    return [row._replace(file=Path(row.file).name) for row in read_table(path)]


def test_sdrf_samples_conditions_fractions_and_labels_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        line("A", "a1.mzML"),
        line("A", "a2.mzML", fraction="2"),
        line("B", "b.mzML", replicate="pooled", treatment="not applicable", time="0 h", label="label free sample"),
        line("C", "c.mzML", label="NT=TMT127N;AC=PRIDE:0000525", replicate="3", time="Not Available", fraction="not applicable"),
        line("D", "c.mzML", label="tmt126", replicate="2", time="not available", fraction="not available"),
        line("E", "e.mzML", label="SILAC heavy", treatment="x\ty"[:1]),
    )
    assert read(path) == [
        ExperimentRow("", "a1.mzML", "A", "drug, 24 h", 1, 1),
        ExperimentRow("", "a2.mzML", "A", "drug, 24 h", 2, 1),
        ExperimentRow("", "b.mzML", "B", "0 h", 1, 1),
        ExperimentRow("", "c.mzML", "C", "drug", 1, 3, "127N"),
        ExperimentRow("", "c.mzML", "D", "drug", 1, 2, "126"),
        ExperimentRow("", "e.mzML", "E", "x, 24 h", 1, 1, "SILAC heavy"),
    ]


def test_sdrf_technical_replicates_become_separate_samples(tmp_path: Path) -> None:
    path = written(tmp_path, line("A", "a1.mzML"), line("A", "a2.mzML", technical="2"), line("B", "b.mzML", technical="2"))
    progress = RecordingProgress(Progress())
    assert [row.sample for row in read_table(path, progress)] == ["A", "A_2", "B"]
    assert any("Technical replicates of 1 samples" in text for text in progress.messages)


def test_sdrf_names_converted_file_if_vendor_file_is_missing(tmp_path: Path) -> None:
    for name in ("a.mzML", "b.raw", "b.mzML", "c.mzML", "c.mgf"):
        (tmp_path / name).touch()
    rows = read(written(tmp_path, line("A", "a.raw"), line("B", "b.raw"), line("C", "c.raw"), line("D", "sub/a.raw")))
    assert [row.file for row in rows] == ["a.mzML", "b.raw", "c.raw", "a.raw"]


WRONG = {
    "no file column": ([line("A", "a.mzML")[:7]], "has no column 'comment[data file]'", HEADER[:7]),
    "two file columns": ([line("A", "a.mzML")], "line 1: has the column 'comment[data file]' twice", (*HEADER[:8], HEADER[7], *HEADER[9:])),
    "no source": ([line("A", "a.mzML"), line("not available", "b.mzML")], "line 3: has no source name", HEADER),
    "fraction": ([line("A", "a.mzML", fraction="first")], "line 2: 'first' is not a number of comment[fraction identifier]", HEADER),
    "replicate": ([line("A", "a.mzML", replicate="0")], "line 2: '0' is not a number of characteristics[biological replicate]", HEADER),
    "two fractions": (
        [line("A", "a.mzML", label="TMT126"), line("B", "a.mzML", label="TMT127N", fraction="2")],
        "line 3: gives file 'a.mzML' another fraction or technical replicate than line 2",
        HEADER,
    ),
    "file twice": ([line("A", "a.mzML"), line("B", "a.mzML")], "line 3: names file 'a.mzML' twice, as in line 2", HEADER),
    "channel and no label": ([line("A", "a.mzML"), line("B", "a.mzML", label="TMT126")], "line 3: names file 'a.mzML' twice", HEADER),
    "two conditions": ([line("A", "a.mzML"), line("A", "b.mzML", time="0 h")], "lines 2 and 3: gives sample 'A' two conditions", HEADER),
    "cells": ([(*line("A", "a.mzML"), "more")], "line 2: has 13 cells, but 12 columns", HEADER),
    "long": ([line("A" * 2000, "a.mzML")], "line 2: has a sample of more than 1000 characters", HEADER),
}


@pytest.mark.parametrize("case", WRONG)
def test_read_table_rejects_an_invalid_sdrf_file(case: str, tmp_path: Path) -> None:
    lines, message, header = WRONG[case]
    with pytest.raises(InputError) as error:
        read_table(written(tmp_path, *lines, header=header))
    assert message in str(error.value)


def test_written_sdrf_table_round_trips(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a1.mgf", "a2.mgf", "b.mgf"):
        (tmp_path / name).write_text(name)
    path = written(
        tmp_path,
        line("A", "a1.mgf", label="TMT126"),
        line("B", "a1.mgf", label="TMT127N", treatment="none", replicate="2"),
        line("A", "a2.mgf", label="TMT126", fraction="2"),
        line("C", "b.mgf", treatment="none"),
    )
    assert main(["experiment", "create", str(tmp_path / "x"), "--runs", str(path)]) == 0
    out = tmp_path / "y.sdrf.tsv"
    capsys.readouterr()
    assert main(["experiment", "export", str(tmp_path / "x"), "--out", str(out), "--set", "organism=homo sapiens"]) == 0
    assert "Not available: characteristics[organism part]" in capsys.readouterr().out
    rows = read_experiment(Project.open(tmp_path / "x"))
    assert read_table(out) == [row._replace(run="", sha256="") for row in rows]
    with out.open(newline="", encoding="utf-8") as file:
        cells = list(csv.DictReader(file, delimiter="\t"))
    assert [row["comment[label]"] for row in cells] == ["TMT126", "TMT127N", "TMT126", "label free sample"]
    assert [row["assay name"] for row in cells] == ["a1", "a1", "a2", "b"]
    assert {row["characteristics[organism]"] for row in cells} == {"homo sapiens"}
    assert {row["comment[instrument]"] for row in cells} == {"not available"}
    assert len({(row["source name"], row["assay name"], row["comment[label]"]) for row in cells}) == len(cells)
    for wrong in ("source name=x", "organism=", "organism=a\tb", "colour=red"):
        assert main(["experiment", "export", str(tmp_path / "x"), "--out", str(out), "--set", wrong]) == 2
    assert main(["experiment", "export", str(tmp_path / "x"), "--out", str(tmp_path / "b.mgf")]) == 2
    assert main(["experiment", "export", str(tmp_path / "x"), "--out", "-"]) == 0
    assert capsys.readouterr().out.startswith("source name\tcharacteristics[organism]\t")
