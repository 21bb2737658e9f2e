"""Reads with qualities or far shorter than the references are mapped by default, and identities expected by chance are reported."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.sequence_type import InputContent, SequenceCount, inspect_sequences
from proteoscope.engine.read_alignment.entry import READ_ALIGNMENT
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.summary import ReadAlignmentSummary
from tests.searching import align_reads

BASES = np.array(list("ACGT"))


def random_bases(n: int, seed: int) -> str:
    return "".join(np.random.default_rng(seed).choice(BASES, n))


def test_read_alignment_texts_say_read_instead_of_pattern() -> None:
    """Carroll's thesis calls reads patterns. Tables and columns have that name too, but texts for users do not."""
    common = {"run_id": None, "folder": None, "device": "cpu", "seconds": 1.0, "stages": {}, "messages": ()}
    counts = {"n_texts": 2, "n_patterns": 3, "n_pairs": 3, "n_aligned": 3, "cells": 9}
    summaries = [ReadAlignmentSummary(**common, has_places=has_places, **counts) for has_places in (True, False)]
    texts = [line for summary in summaries for line in (*summary.lines(), *(count.plural for count in summary.counts()))]
    texts += [READ_ALIGNMENT.epilog, READ_ALIGNMENT.description, READ_ALIGNMENT.purpose]
    texts += [word for item in READ_ALIGNMENT.inputs for word in (item.title, item.metavar, item.help, item.wanted, item.hint)]
    texts += [f"{field.title} {field.description}" for field in ReadAlignmentParameters.model_fields.values()]
    texts += [path.read_text() for path in Path(str(resources.path("presets", "reads"))).glob("*.toml")]
    assert [text for text in texts if "pattern" in text.lower()] == []
    assert "mapped reads" in texts and any("2 references" in text for text in texts)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A genome of 30,000 bases, and 40 reads of 100 bases from random positions, with some substitutions."""
    genome, random = random_bases(30_000, 1), np.random.default_rng(2)
    reads = []
    for start in random.integers(0, len(genome) - 100, 40).tolist():
        read = np.array(list(genome[start : start + 100]))
        read[random.random(100) < 0.04] = "A"
        reads.append("".join(read))
    texts, patterns = tmp_path / "genome.fasta", tmp_path / "reads.fastq"
    texts.write_text(f">genome\n{genome}\n", encoding="utf-8")
    patterns.write_text("".join(f"@r{k}\n{read}\n+\n{'I' * 100}\n" for k, read in enumerate(reads)), encoding="utf-8")
    return texts, patterns


def content(n: int, n_residues: int, *, are_nucleotides: bool = True, has_qualities: bool = False) -> InputContent:
    return InputContent(SequenceCount(n, n_residues, 0, symbols=((ord("A" if are_nucleotides else "L"), n_residues),)), has_qualities)


@pytest.mark.parametrize(
    ("texts", "patterns", "options", "given", "expected"),
    [
        (content(3, 3000), content(10, 1000, has_qualities=True), {}, (), "map-to-genome"),
        (content(1, 48_502), content(10, 1000), {}, (), "map-to-genome"),
        (content(10, 1500), content(10, 1000), {}, (), "standard"),
        (content(1, 48_502), content(10, 1000), {"pairs": True}, (), "standard"),
        (content(1, 48_502), content(10, 1000), {}, ("mode",), "standard"),
        (content(1, 48_502, are_nucleotides=False), content(10, 1000, are_nucleotides=False), {}, (), "standard"),
    ],
)
def test_suited_preset_maps_short_reads_and_reads_with_qualities(texts, patterns, options, given, expected) -> None:
    assert READ_ALIGNMENT.suited_preset({"texts": texts, "patterns": patterns}, options, given) == expected


def test_reads_command_reports_that_reads_are_mapped(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.tsv"
    main(["reads", *map(str, files), "--out", str(out), "--device", "cpu"])
    output = capsys.readouterr()
    assert "map-to-genome" in output.err
    rows = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    identities = [float(row[rows[0].index("identity")]) for row in rows[1:]]
    assert len(identities) == 40 and min(identities) > 0.8


def test_prefix_mode_rejects_reads_from_inside_a_genome(files: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "found.sam"
    plain = tmp_path / "plain.fasta"
    plain.write_text("".join(f">r{k}\n{read}\n" for k, read in enumerate(files[1].read_text().split("\n")[1::4])), encoding="utf-8")
    for reads in (files[1], plain):
        with pytest.raises(InputError, match=r"puts each at the beginning of a reference.*map-to-genome"):
            align_reads(files[0], reads, out, ReadAlignmentParameters(), format="sam", device="cpu")
        assert not out.exists()
    messages = align_reads(*files, None, ReadAlignmentParameters(mode="within", strands="both"), device="cpu").messages
    assert "unrelated" not in " ".join(messages)


def test_read_alignment_warns_of_identities_expected_by_chance(tmp_path: Path) -> None:
    texts, patterns = tmp_path / "texts.fasta", tmp_path / "reads.fasta"
    for path, seed in ((texts, 1), (patterns, 100)):
        path.write_text("".join(f">s{k}\n{random_bases(120, seed + k)}\n" for k in range(4)), encoding="utf-8")
    assert "like unrelated sequences" in " ".join(align_reads(texts, patterns, None, ReadAlignmentParameters(), device="cpu").messages)


ODD_READS = {
    "a blank line": lambda text: text.replace("@r7\n", "\n@r7\n"),
    "a record of several lines": lambda text: re.sub(r"(@r7\n\w{50})(\w{50}\n\+\nI{50})", r"\1\n\2\n", text),
    "many empty reads": lambda text: text + "".join(f"@empty{k}\n\n+\n\n" for k in range(60)),
    "short reads": lambda text: "".join(f"@r{k}\n{read[:25]}\n+\n{'I' * 25}\n" for k, read in enumerate(text.split("\n")[1::4])),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "lower case": lambda text: re.sub(r"(?m)^[ACGT]+$", lambda line: line[0].lower(), text),
}
ODD_REFERENCES = {
    "an empty one": ">empty\n",
    "a short one": ">short\nACGT\n",
    "one of IUPAC symbols": f">odd\n{'RYSWKM' * 20}\n",
    "many short ones": "".join(f">s{k}\nGATTACA\n" for k in range(50)),
}


@pytest.mark.parametrize("change", ODD_READS)
def test_suggested_preset_ignores_unusual_reads(files: tuple[Path, Path], change: str) -> None:
    text = files[1].read_text()
    files[1].write_bytes(ODD_READS[change](text).encode())
    assert files[1].read_text() != text or change == "CRLF"
    assert preset_of_files(files) == "map-to-genome"


@pytest.mark.parametrize("change", ODD_REFERENCES)
def test_suggested_preset_ignores_unusual_references(files: tuple[Path, Path], change: str) -> None:
    files[0].write_text(files[0].read_text() + ODD_REFERENCES[change], encoding="utf-8")
    assert preset_of_files(files) == "map-to-genome"


def test_mates_in_fasta_files_are_mapped_by_default(tmp_path: Path) -> None:
    for name in ("texts", "reads"):
        (tmp_path / name).write_text(f">s\n{random_bases(300, 1)}\n", encoding="utf-8")
    files = tmp_path / "texts", tmp_path / "reads"
    assert preset_of_files(files) == "standard"
    assert preset_of_files(files, mates=files[1]) == "map-to-genome"


def preset_of_files(files: tuple[Path, Path], **options: object) -> str:
    contents = {name: content for name, path in zip(("texts", "patterns"), files, strict=True) if (content := inspect_sequences([path]))}
    assert len(contents) == 2
    return READ_ALIGNMENT.suited_preset(contents, options)
