"""Sequence searches from files to files, by the engine and by the command line."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project import Project
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from proteoscope.engine.sequence_search.search import hit_counts
from proteoscope.engine.sequences.hits import COLUMNS, FORMATS, OF_ONE_QUERY
from tests.searching import align

STANDARD = SequenceSearchParameters()
CUSTOM_MATRIX = "   A  R\nA  4 -1\nR -1  5\n"


@pytest.fixture
def files(fasta, random_protein):
    """Two queries; a database with a copy, a relative with a gap, and unrelated sequences."""
    first, second = random_protein(1, 120), random_protein(2, 200)
    relative = first[:50] + first[53:]
    unrelated = [(f"unrelated{k} of chance", random_protein(100 + k, 80 + k)) for k in range(70)]
    database = [unrelated[0], ('copy An exact "copy" <&>', first), *unrelated[1:], ("relative Three residues\tfewer", relative)]
    return fasta("q.fasta", [("one The first", first), ("two", second)]), fasta("d.fasta", database)


def read_tsv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_align_writes_all_columns_of_hits(files, tmp_path):
    summary = align([files[0]], [files[1]], tmp_path / "hits.tsv", STANDARD)
    rows = read_tsv(tmp_path / "hits.tsv")
    assert tuple(rows[0]) == COLUMNS
    first, second = rows[:2]
    assert (first["query"], first["subject"], first["identity"], first["cigar"], first["query_coverage"]) == (
        "one",
        "copy",
        "1.0000",
        "120M",
        "1.0000",
    )
    assert first["description"] == 'An exact "copy" <&>'
    assert (second["subject"], second["gap_openings"], second["alignment_length"], second["mismatches"]) == ("relative", "1", "120", "0")
    assert second["description"] == "Three residues fewer"
    assert second["cigar"].endswith("M") and "3I" in second["cigar"]
    assert (second["query_start"], second["query_end"], second["subject_start"], second["subject_end"]) == ("1", "120", "1", "117")
    assert second["subject_coverage"] == "1.0000" and second["subject_length"] == "117"
    assert float(first["e_value"]) < 1e-60
    assert summary.n_hits == len(rows) and summary.n_queries == 2 and summary.n_subjects == 72
    assert summary.statistics == "NCBI's table"


def test_align_all_scores_are_in_the_order_of_the_files(files, tmp_path, scheme, independent_score):
    align([files[0]], [files[1]], None, STANDARD, all_scores=tmp_path / "scores.npy")
    scores = np.load(tmp_path / "scores.npy")
    queries, subjects = ([line for line in path.read_text().splitlines() if line[0] != ">"] for path in files)
    assert (scores.dtype, scores.shape) == (np.int32, (2, 72))
    assert scores.tolist() == [[independent_score(query, subject, scheme()) for subject in subjects] for query in queries]


def test_align_hits_do_not_depend_on_batches(files, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    for name, scores, columns in (("one", 64_000_000, 1 << 24), ("scores", 1, 1 << 24), ("hits", 64_000_000, 1)):
        monkeypatch.setattr("proteoscope.engine.sequence_search.scoring._MAXIMUM_SCORES", scores)
        monkeypatch.setattr("proteoscope.engine.sequence_search.reported_hits._ALIGNED_COLUMNS", columns)
        align(
            [files[0]], [files[1]], tmp_path / f"{name}.tsv", STANDARD, all_scores=tmp_path / f"{name}.npy", project_folder=tmp_path / name
        )
    projects = {name: Project.open(tmp_path / name) for name in ("one", "scores", "hits")}
    for name in ("scores", "hits"):
        assert (tmp_path / "one.tsv").read_text() == (tmp_path / f"{name}.tsv").read_text()
        assert (tmp_path / "one.npy").read_bytes() == (tmp_path / f"{name}.npy").read_bytes()
        for table in ("hits", "queries", "score_counts", "score_expectations"):
            assert pq.read_table(projects["one"].table(table)).equals(pq.read_table(projects[name].table(table))), table
        assert projects["one"].runs()[0].message == projects[name].runs()[0].message


def test_align_limits_hits_by_number_and_e_value(files, tmp_path):
    align([files[0]], [files[1]], tmp_path / "a.tsv", SequenceSearchParameters(hits_per_query=1))
    assert [row["query"] for row in read_tsv(tmp_path / "a.tsv")].count("one") == 1
    align([files[0]], [files[1]], tmp_path / "b.tsv", SequenceSearchParameters(maximum_e_value=1e-3))
    assert [row["subject"] for row in read_tsv(tmp_path / "b.tsv")] == ["copy", "relative"]


def test_other_programs_read_the_align_formats(files, tmp_path):
    from Bio import AlignIO, SearchIO, SeqIO

    for format in ("blast6", "fasta", "clustal", "sam", "html"):
        align([files[0]], [files[1]], tmp_path / format, SequenceSearchParameters(maximum_e_value=1e-3), format=format)
    with (tmp_path / "blast6").open() as file:
        (blast,) = SearchIO.parse(file, "blast-tab")
    assert [hit.id for hit in blast] == ["copy", "relative"]
    assert (blast[1][0].ident_pct, blast[1][0].gapopen_num, blast[1][0].query_end) == (97.5, 1, 120)
    with (tmp_path / "fasta").open() as file:
        records = list(SeqIO.parse(file, "fasta"))
    assert [record.id for record in records] == ["one/1-120", "copy/1-120", "one/1-120", "relative/1-117"]
    assert len(records[2]) == len(records[3]) == 120
    with (tmp_path / "clustal").open() as file:
        alignments = list(AlignIO.parse(file, "clustal"))
    assert [[row.id for row in alignment] for alignment in alignments] == [["one", "copy"], ["one", "relative"]]
    assert str(alignments[1][1].seq).count("-") == 3
    page = (tmp_path / "html").read_text()
    assert "An exact &quot;copy&quot; &lt;&amp;&gt;" in page and page.count("<pre>") == 2
    shown = re.sub(r"</?span[^>]*>", "", page[page.rindex("<pre>") + 5 : page.rindex("</pre>")])
    residues = [line.split()[2] for line in shown.splitlines() if line.startswith("Query")]
    assert "".join(residues) == str(alignments[1][0].seq) and '<span class="same">' in page


def test_align_sam_contains_the_query_sequences(files, tmp_path):
    from Bio import Align

    align([files[0]], [files[1]], tmp_path / "hits.sam", SequenceSearchParameters(maximum_e_value=1e-3), format="sam")
    lines = (tmp_path / "hits.sam").read_text().splitlines()
    assert lines[1:3] == ["@SQ\tSN:copy\tLN:120", "@SQ\tSN:relative\tLN:117"]
    records = [line.split("\t") for line in lines if line[0] != "@"]
    assert [(record[0], record[1], record[2]) for record in records] == [
        ("one", "0", "copy"),
        ("one", "256", "relative"),
        ("two", "4", "*"),
    ]
    with (tmp_path / "hits.sam").open() as file:
        first = next(iter(Align.parse(file, "sam")))
    assert first.query.id == "one" and first.coordinates.tolist() == [[0, 120], [0, 120]]


def test_align_stores_the_run_in_the_project(files, tmp_path):
    import pyarrow.parquet as pq

    summary = align([files[0]], [files[1]], tmp_path / "hits.tsv", STANDARD, project_folder=tmp_path / "project")
    project = Project.open(tmp_path / "project")
    run = project.runs("align")[0]
    assert (run.id, run.status, run.parameters["matrix"]) == (summary.run_id, "done", "BLOSUM62")
    assert [source.kind for source in project.inputs(run.id)] == ["queries", "database"]
    hits, queries, counts = (pq.read_table(project.table(name)) for name in ("hits", "queries", "score_counts"))
    assert tuple(hits.column_names[: len(COLUMNS)]) == COLUMNS
    assert hits.num_rows == summary.n_hits == sum(queries["n_hits"].to_pylist())
    assert hits["aligned_query"][1].as_py().replace("-", "") == queries["sequence"][0].as_py()
    assert sum(counts["n_subjects"].to_pylist()) == 2 * 72
    assert project.verify() == []


def test_align_fits_statistics_when_ncbi_has_no_table(fasta, files, tmp_path, random_protein):
    parameters = SequenceSearchParameters(gap_open=14, gap_extend=3)
    few = align([files[0]], [files[1]], tmp_path / "a.tsv", parameters)
    assert few.statistics == "fitted to the scores of random sequences"
    assert "NCBI has no table for BLOSUM62 14/3" in few.messages[-1]
    many = fasta("many.fasta", [(str(k), random_protein(k, 200)) for k in range(2500)])
    fitted = align([files[0]], [many], tmp_path / "b.tsv", parameters)
    assert fitted.statistics == "fitted to the scores of this search"
    assert fitted.lambda_ == pytest.approx(few.lambda_, rel=0.25)  # these residues are equally frequent


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_align_does_not_fit_statistics_to_related_sequences(fasta, tmp_path, share):
    generator = np.random.default_rng(3)
    residues = list("ARNDCQEGHILKMFPSTWYV")
    sequence = generator.choice(residues, 200)
    records = []
    for k in range(2200):
        other = generator.choice(residues, 200)
        is_same = generator.random(200) < generator.uniform(0.1, 0.7) * (k < share * 2200)
        records.append((f"s{k}", "".join(np.where(is_same, sequence, other))))
    query, database = fasta("q.fasta", [("q", "".join(sequence))]), fasta("d.fasta", records)
    parameters = SequenceSearchParameters(gap_open=14, gap_extend=3, hits_per_query=3000, maximum_e_value=1e-3)
    summary = align([query], [database], None, parameters)
    assert summary.statistics == "fitted to the scores of random sequences"
    assert "this search has too few unrelated pairs" in summary.messages[-1]
    assert 0.6 * share * 2200 < summary.n_hits <= share * 2200


@pytest.fixture
def few_random_subjects(monkeypatch):
    """Use fewer random sequences for schemes without a table, whose E-values do not matter."""
    monkeypatch.setattr("proteoscope.engine.sequence_search.reported_hits._RANDOM_SUBJECTS", 200)


def test_align_warns_that_e_values_with_free_gaps_are_unreliable(files, tmp_path, few_random_subjects):
    summary = align([files[0]], [files[1]], tmp_path / "a.tsv", SequenceSearchParameters(gap_open=0, gap_extend=0))
    assert any("do not trust the E-values" in message for message in summary.messages)


def test_align_continues_when_the_cache_is_not_writable(files, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "file"))
    summary = align([files[0]], [files[1]], tmp_path / "a.tsv", STANDARD)
    assert summary.n_hits > 0 and "read into memory" in summary.messages[0]


def test_align_rejects_wrong_arguments(files, tmp_path):
    with pytest.raises(ParameterError, match="expected auto, cpu, cuda"):
        align([files[0]], [files[1]], None, STANDARD, device="gpu")
    with pytest.raises(ParameterError, match="would be overwritten"):
        align([files[0]], [files[1]], files[1], STANDARD)
    with pytest.raises(InputError, match="does not exist"):
        align([tmp_path / "none"], [files[1]], None, STANDARD)
    with pytest.raises(ParameterError, match="gap_open"):
        SequenceSearchParameters.checked({"gap_open": "-1"})
    with pytest.raises(ParameterError, match="there is no matrix"):
        SequenceSearchParameters.checked({"matrix": "FOO"})


class CheckCounter(Progress):
    """Progress that counts checks for a cancel from the alignments on, and cancels at a given check.

    Earlier checks do not count: while a search waits for a device, their number depends on time.
    """

    def __init__(self, cancelled_at=-1):
        super().__init__()
        self.n, self.cancelled_at, self.is_aligning = 0, cancelled_at, False

    def stage(self, title, total=0):
        self.is_aligning |= title == "Aligning and writing hits"
        super().stage(title, total)

    def check(self):
        self.n += self.is_aligning
        if self.n == self.cancelled_at:
            self.cancel()
        super().check()


@pytest.mark.parametrize("format", [name for name in FORMATS if name not in OF_ONE_QUERY])
def test_align_cancelled_after_alignments_leaves_no_files(files, tmp_path, monkeypatch, format):
    monkeypatch.setattr("proteoscope.engine.sequences.hits._BATCH_HITS", 1)
    monkeypatch.setattr("proteoscope.engine.sequences.alignment.CELLS_OF_A_TASK", 1)

    def search(checks, name):
        return align(
            [files[0]],
            [files[1]],
            tmp_path / name / "hits",
            STANDARD,
            format=format,
            all_scores=tmp_path / name / "s.npy",
            project_folder=tmp_path / "project",
            progress=checks,
            device="cpu",
            threads=1,
        )

    search(CheckCounter(), "first")  # packs the database
    whole = CheckCounter()
    summary = search(whole, "whole")
    checks = range(1, whole.n + 1)
    assert len(checks) > 2 * summary.n_hits, "each batch of alignments and of written hits is checked"
    # All formats share the checks before the writers.
    early = checks[1 :: len(checks) // 3] if format == "tsv" else [checks[2 * len(checks) // 3]]
    for n in {*early, *checks[-2:]}:
        with pytest.raises(Cancelled):
            search(CheckCounter(n), "out")
        assert list((tmp_path / "out").iterdir()) == []
    project = Project.open(tmp_path / "project")
    assert {run.status for run in project.runs()[2:]} == {"cancelled"} and len({result.run for result in project.results()}) == 2


@pytest.mark.parametrize(("format", "is_begun"), [("tsv", False), ("sam", True)])
def test_align_cancelled_during_writing_leaves_no_files(files, tmp_path, format, is_begun):
    class AtTheEnd(Progress):
        def stage(self, title, total=0):
            if title == "Writing" and not is_begun:
                self.cancel()
            super().stage(title, total)
            if title == "Writing":
                self.cancel()

    with pytest.raises(Cancelled):
        align(
            [files[0]],
            [files[1]],
            tmp_path / "out" / "hits",
            STANDARD,
            format=format,
            all_scores=tmp_path / "out" / "s.npy",
            project_folder=tmp_path / "project",
            progress=AtTheEnd(),
            device="cpu",
        )
    assert list((tmp_path / "out").iterdir()) == []
    assert [run.status for run in Project.open(tmp_path / "project").runs()] == ["cancelled"]


def test_align_progress_of_hits_ends_at_the_total(files, tmp_path):
    for out, project in ((None, None), (tmp_path / "o.tsv", None), (tmp_path / "o.tsv", tmp_path / "project")):
        events = []
        align([files[0]], [files[1]], out, STANDARD, project_folder=project, progress=Progress(events.append, interval=0.0), device="cpu")
        hits = [event for event in events if event.stage == "Aligning and writing hits"]
        assert hits[-1].done == hits[-1].total > 0 and max(event.done for event in hits) == hits[-1].total


def test_align_checks_for_cancel_between_queries_without_hits(fasta, files, random_protein, tmp_path):
    queries = fasta("many.fasta", [(str(k), random_protein(500 + k, 60)) for k in range(20)])
    checks = CheckCounter()
    none = SequenceSearchParameters(maximum_e_value=1e-300)
    summary = align([queries], [files[1]], None, none, project_folder=tmp_path / "project", progress=checks, device="cpu")
    assert summary.n_hits == 0 and checks.n > 20


@pytest.mark.parametrize(
    ("n_queries", "n_hits", "n_with_hits", "message"),
    [
        (1, 0, 0, "no hits"),
        (1, 1, 1, "1 hit"),
        (1, 29, 1, "29 hits"),
        (21, 0, 0, "no hits"),
        (21, 1, 1, "1 hit; 1 of 21 queries with hits"),
        (21, 3139, 20, "3,139 hits; 20 of 21 queries with hits"),
    ],
)
def test_hit_counts_describes_hits_in_words(n_queries, n_hits, n_with_hits, message):
    assert hit_counts(n_queries, n_hits, n_with_hits) == message


def test_align_run_and_command_line_report_number_of_hits(files, tmp_path, capsys):
    arguments = ["align", str(files[0]), str(files[1]), "--out", str(tmp_path / "o.tsv"), "--maximum-e-value", "1e-3"]
    assert main([*arguments, "--project", str(tmp_path / "project")]) == 0
    message = "2 hits; 1 of 2 queries with hits"
    assert f"{message}; lambda 0.267" in capsys.readouterr().out
    assert [run.message for run in Project.open(tmp_path / "project").runs()] == [message]


def test_align_does_not_overwrite_inputs_or_project_files(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matrix = tmp_path / "m.txt"
    matrix.write_text(CUSTOM_MATRIX)
    align([files[0]], [files[1]], None, STANDARD, project_folder="P")
    before = {path: path.read_bytes() for path in (tmp_path / "P").rglob("*") if path.is_file()}
    (tmp_path / "link.tsv").symlink_to("z.tsv")
    (tmp_path / "linked").symlink_to("P")
    custom = SequenceSearchParameters(matrix="m.txt")
    cases = [
        ({"out": "m.txt"}, custom, "read"),
        ({"out": None, "all_scores": matrix}, custom, "read"),
        ({"out": "./P/../q.fasta"}, STANDARD, "read"),
        ({"out": "z.tsv", "all_scores": "P/../z.tsv"}, STANDARD, "twice"),
        ({"out": "z.tsv", "all_scores": "link.tsv"}, STANDARD, "twice"),
        ({"out": "P/project.sqlite"}, STANDARD, "project"),
        ({"out": "linked/project.lock"}, STANDARD, "project"),
        ({"out": "P/results/align-0001/hits.parquet"}, STANDARD, "project"),
        ({"out": "P/project.sqlite-wal"}, STANDARD, "project"),
        ({"out": "new/project.sqlite", "project_folder": "new"}, STANDARD, "project"),
    ]
    for options, parameters, message in cases:
        with pytest.raises(ParameterError, match=message):
            align([files[0]], [files[1]], parameters=parameters, **options)
    assert {path: path.read_bytes() for path in (tmp_path / "P").rglob("*") if path.is_file()} == before
    assert not (tmp_path / "z.tsv").exists() and not (tmp_path / "new").exists()
    align([files[0]], [files[1]], "P/hits.tsv", STANDARD)
    assert (tmp_path / "P" / "hits.tsv").is_file()


def test_align_records_a_custom_matrix(files, tmp_path, few_random_subjects):
    from hashlib import sha256

    matrix = tmp_path / "m.txt"
    matrix.write_text(CUSTOM_MATRIX)
    align([files[0]], [files[1]], None, SequenceSearchParameters(matrix=str(matrix)), project_folder=tmp_path / "P")
    *_, recorded = Project.open(tmp_path / "P").inputs("align-0001")
    assert (recorded.path, recorded.kind, recorded.sha256) == (matrix, "matrix", sha256(matrix.read_bytes()).hexdigest())


def test_align_suggests_larger_e_value_when_none_is_trusted(files, few_random_subjects):
    cases = [((0, 1), 1e-30, 0, True), ((0, 1), 1e9, 2 * 72, False), ((11, 1), 1e-300, 0, False)]
    for (gap_open, gap_extend), maximum_e_value, n_hits, is_suggested in cases:
        parameters = SequenceSearchParameters(gap_open=gap_open, gap_extend=gap_extend, maximum_e_value=maximum_e_value)
        summary = align([files[0]], [files[1]], None, parameters)
        assert summary.n_hits == n_hits
        assert any("increase the maximum E-value (maximum_e_value)" in message for message in summary.messages) == is_suggested


def test_align_command_writes_hits_and_json_summary(files, tmp_path, capsys):
    out = tmp_path / "hits.tsv"
    assert main(["align", str(files[0]), str(files[1]), "--out", str(out), "--json", "--matrix", "blosum45"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["n_queries_with_hits"] >= 1 and summary["lambda_"] == 0.195
    assert len(read_tsv(out)) == summary["n_hits"]
    assert main(["align", str(files[0]), str(files[1]), "--out", str(out), "--preset", "short", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--device", "cuda:977"], "device = 'cuda:977'"),
        (["--gap-open", "x"], "gap_open"),
        (["--matrix", "BLOSUM63"], "there is no matrix 'BLOSUM63'"),
        (["--hits-per-query", "0"], "hits_per_query"),
        (["--preset", "nonsense"], "there is no preset 'nonsense'"),
        (["--out", "/proc/nowhere/hits.tsv"], "/proc/nowhere"),
    ],
)
def test_align_errors_are_one_line_with_exit_code_2(files, tmp_path, capsys, extra, message):
    assert main(["align", str(files[0]), str(files[1]), "--out", str(tmp_path / "o"), "--quiet", *extra]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_align_help_explains_gap_costs_and_residues(capsys):
    assert main(["align", "--help"]) == 0
    text = capsys.readouterr().out
    for phrase in ("GAP_OPEN + k * GAP_EXTEND", "U, O and J count as X", "--all-scores"):
        assert phrase in text


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_interrupted_align_exits_with_130_and_leaves_no_files(fasta, random_protein, tmp_path):
    path = fasta("long.fasta", [(str(k), random_protein(k, 30_000)) for k in range(60)])
    out = tmp_path / "out" / "hits.tsv"
    process = subprocess.Popen(
        [sys.executable, "-m", "proteoscope.engine.command_line", "align", str(path), str(path), "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("Scoring"):
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert process.returncode == 130 and "interrupted" in error
    assert list(out.parent.iterdir()) == []
