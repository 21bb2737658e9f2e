"""Pileup of alignments, compared with each read's CIGAR and the genome, and feature tracks."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.tracks import read_track
from proteoscope.engine.views.finished_run import open_run
from proteoscope.engine.views.pileup import read_pileup
from proteoscope.engine.views.reads import read_summary
from tests.engine.views.read_projects import project_with_reads

GENOME = "".join(np.random.default_rng(8).choice(list("ACGT"), 3000).tolist())


def test_pileup_shows_differences_from_the_reference(tmp_path: Path) -> None:
    project = project_with_reads(tmp_path / "p", GENOME, n_reads=25)
    parts = [GENOME[k * 1000 : (k + 1) * 1000] for k in range(3)]
    with open_run(project) as run:
        source = run.tables.source("alignments")
        rows = source.values(np.arange(source.total), ["text", "text_start", "text_end", "cigar", "strand", "pattern"]).to_pylist()
        reference = read_summary(source).references[0]
        genome = parts[int(reference.name[4])]
        first, last = 300, 520
        pile = read_pileup(source, reference, first, last)
        expected = [
            at
            for at, row in enumerate(rows)
            if row["text"] == reference.name and row["text_start"] is not None and row["text_start"] <= last and row["text_end"] >= first
        ]
        assert sorted(pile.row.tolist()) == expected and len(expected) > 5 and pile.n_left_out == 0
        n_deep = 0
        for at, row_number in enumerate(pile.row.tolist()):
            row = rows[row_number]
            position, differences = row["text_start"] - 1, []
            for n, kind in re.findall(r"(\d+)([=XID])", row["cigar"]):
                steps = int(n)
                if kind == "I":
                    differences.append((position, "+"))
                    continue
                if kind in "XD":
                    differences += [(position + step, "-" if kind == "D" else None) for step in range(1, steps + 1)]
                position += steps
            mine = pile.read == at
            shown = list(zip(pile.position[mine].tolist(), map(chr, pile.symbol[mine].tolist()), strict=True))
            visible = [difference for difference in differences if first <= difference[0] <= last]
            assert [position for position, _ in shown] == [position for position, _ in visible]
            for (position, symbol), (_, expected_symbol) in zip(shown, visible, strict=True):
                assert symbol == expected_symbol or (expected_symbol is None and symbol in "ACGT" and symbol != genome[position - 1])
            overlapping = (pile.lane == pile.lane[at]) & (pile.start <= row["text_end"]) & (pile.end >= row["text_start"])
            assert overlapping.sum() == 1, "alignments of a lane do not overlap"
            n_deep = max(n_deep, int(((pile.start <= row["text_start"]) & (pile.end >= row["text_start"])).sum()))
        assert pile.n_lanes >= n_deep
        has_reference = pile.reference > 0
        bases = np.frombuffer(genome[first - 1 : last].encode(), np.uint8)
        assert (pile.reference[has_reference] == bases[has_reference]).all() and has_reference.sum() > 100
        middle = int(pile.position[len(pile.position) // 2])
        counts = pile.counts(middle)
        assert sum(counts.values()) == int(((pile.start <= middle) & (pile.end >= middle)).sum())


def test_gff3_and_bed_feature_tracks_are_equal(tmp_path: Path) -> None:
    genes = ((10, 50, "+"), (5, 400, "-"))
    lines = [f"chr1\t.\tgene\t{first}\t{last}\t.\t{strand}\t0\tID=i{first};Name=g%20{first}\n" for first, last, strand in genes]
    whole = "chr1\t.\tregion\t1\t900\t.\t+\t.\tID=r\n"
    (tmp_path / "a.gff3").write_text("##gff-version 3\n" + whole + "".join(lines) + "##FASTA\n>chr1\nACGT\n")
    (tmp_path / "a.bed").write_text("track name=x\nchr1\t9\t50\tg 10\t0\t+\nchr1\t4\t400\tg 5\t0\t-\n")
    by_gff, by_bed = read_track(tmp_path / "a.gff3"), read_track(tmp_path / "a.bed")
    places = [
        [(feature.first, feature.last, feature.strand, feature.name) for feature in track.within("chr1 whole", 1, 900, 9)]
        for track in (by_gff, by_bed)
    ]
    assert places[0] == places[1] == [(5, 400, "-", "g 5"), (10, 50, "+", "g 10")]
    assert by_gff.within("chr1", 51, 60, 9)[0].name == "g 5" and by_gff.within("chr2", 1, 9, 9) == []


@pytest.mark.parametrize(
    "content",
    [
        b"\x00" * 300,
        b"chr1\t5\n",
        b"chr1\tx\t9\n",
        b"chr1\t9\t3\n",
        b"chr1\t1\t99999999999\n",
        b"#only\n",
        b"a" * (3 << 20),
        b"\xff\xfe\n\t\t\n",
    ],
)
def test_read_track_rejects_invalid_files(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.bed").write_bytes(content)
    with pytest.raises(InputError):
        read_track(tmp_path / "x.bed")
