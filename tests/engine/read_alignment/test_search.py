"""Read alignment from input files to the table."""

from __future__ import annotations

import csv
import gzip
import io
import re
from itertools import islice

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project import Project
from proteoscope.engine.read_alignment import results
from proteoscope.engine.read_alignment.parameters import ReadAlignmentParameters
from proteoscope.engine.read_alignment.tables import ALIGNMENTS
from proteoscope.engine.sequences.matrices import encode
from tests.kernels.gapsmis_definition import best_alignment, printed_recurrence
from tests.searching import align_reads

BASES = np.frombuffer(b"ACGT", np.uint8)
SEED = 20


def fasta(path, sequences, prefix="s"):
    path.write_text("".join(f">{prefix}{k} of a test\n{sequence}\n" for k, sequence in enumerate(sequences)))
    return path


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def mutate(read: str, random: np.random.Generator, n_gaps: int = 2) -> str:
    """Return a read with errors and up to `n_gaps` gaps."""
    bases = np.frombuffer(read.encode(), np.uint8).copy()
    wrong = random.random(len(bases)) < 0.03
    bases[wrong] = BASES[random.integers(0, 4, wrong.sum())]
    for _ in range(random.integers(0, n_gaps + 1)):
        place, length = random.integers(10, len(bases) - 10), random.integers(1, 6)
        more = BASES[random.integers(0, 4, length)]
        bases = np.insert(bases, place, more) if random.random() < 0.5 else np.delete(bases, slice(place, place + length))
    return bases.tobytes().decode()


@pytest.mark.parametrize("mode", ["prefix", "within", "local"])
def test_alignment_scores_equal_biopython_with_enough_gaps(genome, tmp_path, mode):
    from Bio.Align import PairwiseAligner

    random = np.random.default_rng(SEED)
    starts = random.integers(0, len(genome) - 400, 60)
    texts = [genome[k : k + 250] for k in starts]
    skipped = 0 if mode == "prefix" else 20
    patterns = [mutate(text[skipped : skipped + 150], random, 3) for text in texts]
    aligner = PairwiseAligner(match_score=2, mismatch_score=-3, open_gap_score=-7, extend_gap_score=-2)
    aligner.mode = "local" if mode == "local" else "global"
    if mode != "local":
        aligner.open_right_deletion_score = aligner.extend_right_deletion_score = 0
    if mode == "within":
        aligner.open_left_deletion_score = aligner.extend_left_deletion_score = 0
    parameters = ReadAlignmentParameters().changed(mode=mode, maximum_gaps=12, strands="forward")
    out = tmp_path / "found.tsv"
    files = fasta(tmp_path / "t.fa", texts), fasta(tmp_path / "p.fa", patterns)
    assert align_reads(*files, out, parameters, pairs=True, device="cpu").device == "cpu"
    rows = rows_of(out)
    assert max(int(row["gaps"]) for row in rows) < 12, "the number of gaps must not bind"
    assert [int(row["score"]) for row in rows] == [aligner.score(text, pattern) for text, pattern in zip(texts, patterns, strict=True)]


def test_alignment_row_of_every_pair_equals_the_definition(tmp_path):
    random = np.random.default_rng(SEED)
    texts, patterns = (["".join("ACGT"[k] for k in random.integers(0, 4, n)) for n in lengths] for lengths in ((4, 6, 5), (3, 5, 6, 4)))
    out, parameters = tmp_path / "found.tsv", ReadAlignmentParameters().changed(maximum_gaps=1)
    summary = align_reads(fasta(tmp_path / "t.fa", texts, "t"), fasta(tmp_path / "p.fa", patterns, "p"), out, parameters, device="cpu")
    rows = rows_of(out)
    assert tuple(rows[0]) == ALIGNMENTS.saved
    assert [(row["pattern"], row["text"]) for row in rows] == [(f"p{k}", f"t{i}") for k in range(4) for i in range(3)]
    from proteoscope.engine.read_alignment.sequences import gap_rules

    rules = gap_rules(parameters, of_nucleotides=True)
    for row in rows:
        text, pattern = (
            encode(np.frombuffer(some[int(row[name][1:])].encode(), np.uint8)) for some, name in ((texts, "text"), (patterns, "pattern"))
        )
        best = best_alignment(text, pattern, rules)
        assert best is not None
        assert (int(row["score"]), int(row["gaps"]), int(row["text_end"])) == (best.score, best.gaps, best.text[1])
    assert (summary.n_pairs, summary.n_aligned) == (12, 12)


def test_pair_without_possible_alignment_scores_minus_infinity(tmp_path):
    texts, patterns = fasta(tmp_path / "t.fa", ["ACG", "ACGTACGT"]), fasta(tmp_path / "p.fa", ["ACGTACGT"])
    out, parameters = tmp_path / "found.tsv", ReadAlignmentParameters().changed(maximum_gaps=0)
    summary = align_reads(texts, patterns, out, parameters, project_folder=tmp_path / "project", device="cpu")
    none, whole = rows_of(out)
    assert none["score"] == "-inf"
    assert {name for name, value in none.items() if value == ""} == {
        "gaps",
        "identity",
        "text_start",
        "text_end",
        "pattern_start",
        "pattern_end",
        "strand",
        "cigar",
    }
    assert (whole["score"], whole["cigar"], whole["identity"]) == ("16", "8=", "1")
    assert (summary.n_pairs, summary.n_aligned) == (2, 1)


def test_alignment_positions_refer_to_the_read_as_given(tmp_path):
    random = np.random.default_rng(SEED)
    text = BASES[random.integers(0, 4, 3000)].tobytes().decode()
    other = str.maketrans("ACGT", "TGCA")
    reads = [text[500:560], text[1000:1060].translate(other)[::-1], "TTTTT" + text[2000:2040].translate(other)[::-1]]
    out = tmp_path / "found.tsv"
    texts, patterns = fasta(tmp_path / "t.fa", [text]), fasta(tmp_path / "p.fa", reads)
    align_reads(texts, patterns, out, ReadAlignmentParameters().changed(mode="local"), device="cpu")
    first, second, third = rows_of(out)
    assert (first["strand"], first["text_start"], first["text_end"], first["cigar"]) == ("+", "501", "560", "60=")
    assert (second["strand"], second["text_start"], second["text_end"], second["cigar"]) == ("-", "1001", "1060", "60=")
    assert third["strand"] == "-"
    assert (int(third["pattern_start"]), int(third["pattern_end"])) == (6 + 2001 - int(third["text_start"]), 45)


def test_read_qualities_do_not_change_the_alignment(tmp_path):
    reads = ["ACGTTGCCAGT", "", "ACGNTGACC"]
    texts, plain = fasta(tmp_path / "t.fa", ["ACGTTGACCAGT"]), fasta(tmp_path / "p.fa", reads)
    qualities = "".join(f"@s{k} of a test\n{read}\n+\n{'h' * len(read)}\n" for k, read in enumerate(reads))
    (tmp_path / "p.fq.gz").write_bytes(gzip.compress(qualities.encode()))
    summary = align_reads(texts, tmp_path / "p.fq.gz", tmp_path / "one.tsv", ReadAlignmentParameters(), device="cpu")
    align_reads(texts, plain, tmp_path / "two.tsv", ReadAlignmentParameters(), device="cpu")
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()
    assert any("begin at 64" in message for message in summary.messages)
    assert any("1 read is empty" in message for message in summary.messages)


def test_published_option_applies_the_published_recurrence(tmp_path):
    random = np.random.default_rng(SEED)
    texts = [BASES[random.integers(0, 4, 40)].tobytes().decode() for _ in range(20)]
    patterns = [text[:12] + text[14:24] + "AC" + text[24:32] for text in texts]
    files = [str(fasta(tmp_path / name, some)) for name, some in (("t.fa", texts), ("p.fa", patterns))]
    scores = []
    for more in ([], ["--published"]):
        assert main(["reads", *files, "--out", str(tmp_path / "found.tsv"), "--pairs", "--device", "cpu", "--quiet", *more]) == 0
        scores.append([int(row["score"]) for row in rows_of(tmp_path / "found.tsv")])
    from proteoscope.engine.read_alignment.sequences import gap_rules

    rules = gap_rules(ReadAlignmentParameters().changed(recurrence="published"), of_nucleotides=True)
    coded = [[encode(np.frombuffer(sequence.encode(), np.uint8)) for sequence in some] for some in (texts, patterns)]
    assert scores[1] == [printed_recurrence(text, pattern, rules) for text, pattern in zip(*coded, strict=True)]
    assert sum(scores[1]) < sum(scores[0])


def test_aligned_pairs_do_not_depend_on_threads_and_round_size(tmp_path, monkeypatch):
    from proteoscope.engine.read_alignment import mapping

    random = np.random.default_rng(SEED)
    texts = [BASES[random.integers(0, 4, n)].tobytes().decode() for n in random.integers(30, 90, 12)]
    files = fasta(tmp_path / "t.fa", texts), fasta(tmp_path / "p.fa", [mutate(text[:25] + text[:20], random) for text in texts])
    parameters = ReadAlignmentParameters().changed(mode="within")
    align_reads(*files, tmp_path / "one.tsv", parameters, threads=1, device="cpu")
    monkeypatch.setattr(mapping, "_PAIRS_OF_ROUND", 7)
    align_reads(*files, tmp_path / "two.tsv", parameters, threads=2, device="cpu")
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()


def test_read_alignment_export_equals_the_table_of_the_search(tmp_path, capsys):
    text = "".join(f">name{k}\nACGTTGACCAGT{'ACGT'[k]}\n" for k in range(4)).encode()
    (tmp_path / "t.fa.gz").write_bytes(gzip.compress(text))
    patterns = fasta(tmp_path / "p.fa", ["ACGTTGCCAGT", "GGGGGGG"])
    out = tmp_path / "found.tsv"
    arguments = ["reads", str(tmp_path / "t.fa.gz"), str(patterns), "--out", str(out), "--project", str(tmp_path / "project")]
    assert main([*arguments, "--device", "cpu", "--maximum-gaps", "0", "--json"]) == 0
    run = Project.open(tmp_path / "project").runs()[-1]
    assert run.kind == "reads"
    capsys.readouterr()
    assert main(["export", str(tmp_path / "project"), "--format", "tsv", "--out", str(tmp_path / "again.tsv")]) == 0
    assert (tmp_path / "again.tsv").read_bytes() == out.read_bytes()
    assert len(list(csv.reader(io.StringIO(out.read_text()), delimiter="\t"))) == 1 + 8


def text_from(cigar: str, md: str, read: str) -> str:
    """Reconstruct the aligned reference from a read in its direction, its CIGAR and its MD tag."""
    paired = []
    place = 0
    for count, kind in re.findall(r"(\d+)([=XID])", cigar):
        if kind in "=X":
            paired.append(read[place : place + int(count)])
        place += int(count) * (kind != "D")
    bases, of_text = iter("".join(paired)), []
    for same, deleted, other in re.findall(r"(\d+)|\^([A-Z]+)|([A-Z])", md):
        of_text.append("".join(islice(bases, int(same or 0))) + deleted + other)
        if other:
            next(bases)
    assert next(bases, None) is None
    return "".join(of_text)


def test_read_alignment_project_stores_data_to_draw_alignments(tmp_path):
    import pyarrow.parquet as pq

    random = np.random.default_rng(SEED)
    text = BASES[random.integers(0, 4, 900)].tobytes().decode()
    reads = [mutate(text[k : k + 80], random) for k in range(0, 800, 40)]
    reads[1::2] = [read.translate(str.maketrans("ACGT", "TGCA"))[::-1] for read in reads[1::2]]
    (tmp_path / "p.fq").write_text("".join(f"@s{k}\n{read}\n+\n{'ABC' * 80:.{len(read)}}\n" for k, read in enumerate(reads)))
    parameters = ReadAlignmentParameters().changed(mode="within")
    folder = tmp_path / "project"
    align_reads(fasta(tmp_path / "t.fa", ["ACGT", text], "t"), tmp_path / "p.fq", None, parameters, project_folder=folder, device="cpu")
    project = Project.open(folder)
    run = project.runs()[-1].id
    rows, patterns, texts = (pq.read_table(project.table(name, run)).to_pylist() for name in ("alignments", "patterns", "texts"))
    assert texts == [{"text": "t0", "length": 4}, {"text": "t1", "length": 900}]
    assert [pattern["sequence"] for pattern in patterns] == reads
    assert all(pattern["qualities"] == ("ABC" * 80)[: len(pattern["sequence"])] and pattern["mate"] is None for pattern in patterns)
    assert [(row["pattern_row"], row["text_row"]) for row in rows] == [(k, i) for k in range(len(reads)) for i in range(2)]
    for row in rows[1::2]:
        read = patterns[row["pattern_row"]]["sequence"]
        given = read.translate(str.maketrans("ACGT", "TGCA"))[::-1] if row["strand"] == "-" else read
        assert text_from(row["cigar"], row["md"], given) == text[row["text_start"] - 1 : row["text_end"]]
        assert row["mapping_quality"] is None and row["mate"] is None


def test_read_alignment_rejects_unequal_pairs_and_large_scores(tmp_path):
    texts, patterns = fasta(tmp_path / "t.fa", ["ACGT", "ACGTA"]), fasta(tmp_path / "p.fa", ["ACG" * 500])
    with pytest.raises(ParameterError, match=r"--pairs: t\.fa has 2 sequences and p\.fa 1"):
        align_reads(texts, patterns, None, ReadAlignmentParameters(), pairs=True, device="cpu")
    with pytest.raises(ParameterError, match="scores of reads of 1,500 bases could exceed 32 bits"):
        align_reads(texts, patterns, None, ReadAlignmentParameters().changed(match=1_000_000), device="cpu")
    with pytest.raises(ParameterError, match="published recurrence works only with mode prefix"):
        ReadAlignmentParameters().changed(recurrence="published", mode="local")


def test_reads_too_long_for_vector_lanes_align_equally(tmp_path, monkeypatch):
    from proteoscope.kernels.cpu import gapsmis  # here: only this test changes the limit

    texts, patterns = fasta(tmp_path / "t.fa", ["ACGT", "ACGT" * 10]), fasta(tmp_path / "p.fa", ["ACG" * 9, "ACGTACTACGT", "TTT"])
    for name in ("usual.tsv", "alone.tsv"):
        align_reads(texts, patterns, tmp_path / name, ReadAlignmentParameters(), device="cpu")
        monkeypatch.setattr(gapsmis, "_TRACED_BYTES", 0)
    assert (tmp_path / "alone.tsv").read_bytes() == (tmp_path / "usual.tsv").read_bytes()


def test_cancelled_alignment_leaves_no_file(tmp_path):
    progress = Progress()
    progress.cancel()
    files = fasta(tmp_path / "t.fa", ["ACGT"]), fasta(tmp_path / "p.fa", ["ACG"])
    with pytest.raises(Cancelled):
        align_reads(*files, tmp_path / "found.tsv", ReadAlignmentParameters(), progress=progress, device="cpu")
    assert not (tmp_path / "found.tsv").exists()


@pytest.mark.parametrize("has_qualities", [True, False])
@pytest.mark.parametrize("preset", ["map-to-genome", ""])
def test_read_alignment_rejects_exchanged_reads_and_reference(tmp_path, capsys, has_qualities, preset):
    random = np.random.default_rng(3)
    genome = "".join(random.choice(list("ACGT"), 30_000))
    reads = [genome[at : at + 100] for at in random.integers(0, 29_900, 50).tolist()]
    fasta(tmp_path / "genome.fasta", [genome])
    if has_qualities:
        (tmp_path / "reads").write_text("".join(f"@r{i}\n{read}\n+\n{'I' * 100}\n" for i, read in enumerate(reads)))
    else:
        fasta(tmp_path / "reads", reads)
    wrong = ["reads", str(tmp_path / "reads"), str(tmp_path / "genome.fasta"), "--out", str(tmp_path / "o.sam"), "--device", "cpu"]
    assert main([*wrong, *(["--preset", preset] if preset else [])]) == 2
    error = capsys.readouterr().err
    assert "resembles reads" in error and "Exchange the two" in error and not (tmp_path / "o.sam").exists()


def test_stored_reads_equal_the_input_in_several_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "ROW_GROUP", 8)
    random = np.random.default_rng(SEED)
    text = BASES[random.integers(0, 4, 400)].tobytes().decode()
    reads = [text[: 60 + k] for k in range(21)]
    texts, patterns, project = fasta(tmp_path / "t.fa", [text]), fasta(tmp_path / "p.fa", reads), tmp_path / "project"
    align_reads(texts, patterns, tmp_path / "found.tsv", ReadAlignmentParameters(), project_folder=project, device="cpu")
    opened = Project.open(project)
    file = pq.ParquetFile(next(table.path for table in opened.results(opened.runs()[-1].id) if table.name == "patterns"))
    assert file.num_row_groups == 3
    rows = file.read().to_pylist()
    assert [row["sequence"] for row in rows] == reads and [row["pattern"] for row in rows] == [f"s{k}" for k in range(21)]
    assert {row["qualities"] for row in rows} <= {"", None}
