"""Alignments of a read alignment run, compared with the aligned files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.project import Project
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.reads import read_row
from tests.engine.views.read_projects import WITHIN, genome_of, project_with_reads
from tests.engine.views.result_projects import rows_of

_OTHER = str.maketrans("ACGT", "TGCA")


def records(path: Path, *, is_fastq: bool) -> dict[str, tuple[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    if is_fastq:
        return {lines[k][1:]: (lines[k + 1], lines[k + 3]) for k in range(0, len(lines), 4)}
    return {lines[k][1:].split()[0]: (lines[k + 1], "") for k in range(0, len(lines), 2)}


def read_inputs(project: Project) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    paths = {source.kind: source.path for source in project.inputs("reads-0001")}
    return records(paths["texts"], is_fastq=False), records(paths["patterns"], is_fastq=paths["patterns"].suffix == ".fastq")


@pytest.mark.parametrize("changed", [{}, WITHIN])
def test_read_alignment_rows_match_the_aligned_files(changed: dict[str, Any], shared_data: Path, tmp_path: Path) -> None:
    project = project_with_reads(tmp_path / "project", genome_of(shared_data), n_reads=20, **changed)
    references, reads = read_inputs(project)
    run = open_run(project)
    source = run.tables.source("alignments")
    strands: Counter[str] = Counter()
    for number, row in enumerate(rows_of(project, "alignments")):
        shown = read_row(source, number)
        if row["score"] is None:
            assert shown.pair is None and shown.reason == f"{row['pattern']}: cannot be aligned with {row['text']} with so few gaps."
            continue
        strands[row["strand"]] += 1
        pair, (read, qualities) = shown.pair, reads[row["pattern"]]
        assert pair is not None
        given = slice(row["pattern_start"] - 1, row["pattern_end"])
        expected, signs = read[given], qualities[given]
        if row["strand"] == "-":
            expected, signs = expected.translate(_OTHER)[::-1], signs[::-1]
        assert pair.query.replace("-", "") == expected
        assert pair.subject.replace("-", "") == references[row["text"]][0][row["text_start"] - 1 : row["text_end"]]
        assert pair.quality[pair.quality >= 0].tolist() == [ord(sign) - 33 for sign in signs]
        same = sum(base == other for base, other in zip(pair.query, pair.subject, strict=True))
        assert row["identity"] == pytest.approx(same / len(pair)) and shown.interval == (row["text_start"], row["text_end"])
    assert min(strands["+"], strands["-"]) > 10
    for opened in (source, run):
        opened.close()
