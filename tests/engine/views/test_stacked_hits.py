"""Stacks of hits in the window: selection of hits, colours by their definitions, and complete sequences of subjects."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from Bio import Align
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.arrays import Texts
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequences.stack import AlignedSubjects, Stack
from proteoscope.engine.sequences.stack_formats import PAIR_FORMATS, STACK_FORMATS
from proteoscope.engine.views import stacked_hits as module
from proteoscope.engine.views.conditions import compares
from proteoscope.engine.views.finished_run import FinishedRun, open_run
from proteoscope.engine.views.hits import select_query_hits
from proteoscope.engine.views.stack_colours import SCHEMES, ColouredStack, stack_colours
from proteoscope.engine.views.stacked_hits import open_subjects, read_subject, stacked_hits, write_stack
from tests.engine.views.search_projects import project_with_search


def searched(folder: Path) -> FinishedRun:
    return open_run(project_with_search(folder / "project", n_queries=2, n_relatives=6, n_unrelated=30))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedRun]:
    with searched(tmp_path_factory.mktemp("stacked")) as opened:
        yield opened


def records(path: Path) -> dict[str, str]:
    """Read names and sequences of a FASTA file."""
    entries = [entry.partition("\n") for entry in path.read_text().split(">")[1:]]
    return {header.split()[0]: sequence.replace("\n", "") for header, _, sequence in entries}


def test_stack_has_all_filtered_or_selected_hits(run: FinishedRun) -> None:
    source = run.tables.source("hits")
    for index in (0, 1):
        every = source.rows(select_query_hits(index))
        stacked = stacked_hits(source, index)
        assert stacked.rows.tolist() == every.tolist() and stacked.total == len(every)
        assert stacked.stack.subjects.names == source.values(every, ["subject"])["subject"].to_pylist()
        strict = stacked_hits(source, index, [compares("identity", ">=", 0.6)])
        assert strict.rows.tolist() == source.rows([*select_query_hits(index), compares("identity", ">=", 0.6)]).tolist()
        some = stacked_hits(source, index, rows=every[[3, 1]].tolist())
        assert some.rows.tolist() == every[[1, 3]].tolist() and len(some.stack) == 3
    with pytest.raises(ParameterError, match="only hits of one query can be stacked"):
        stacked_hits(source, 1, rows=[0])
    with pytest.raises(ParameterError, match="there is no query 7"):
        stacked_hits(source, 7)


def test_stacked_hits_are_limited(run: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAXIMUM_STACKED", 3)
    stacked = stacked_hits(run.tables.source("hits"), 0)
    assert len(stacked.rows) == 3 < stacked.total and len(stacked.stack) == 4


@pytest.mark.parametrize("format", [*STACK_FORMATS, *PAIR_FORMATS])
def test_write_stack_writes_all_hits(run: FinishedRun, tmp_path: Path, format: str) -> None:
    stacked = stacked_hits(run.tables.source("hits"), 0)
    write_stack(tmp_path / "out", stacked.stack, format)
    text = (tmp_path / "out").read_text()
    if format == "a3m":
        assert text.count(">") == len(stacked.rows) + 1
    else:
        read = list(Align.parse(io.StringIO(text), format))
        assert [len(alignment) for alignment in read] == ([2] * len(stacked.rows) if format in PAIR_FORMATS else [len(stacked.rows) + 1])


def test_subject_sequence_of_hit_equals_the_database(run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = records(next(path for kind, path in run.inputs if kind == "database"))
    source = run.tables.source("hits")
    rows = range(0, source.total, 3)
    for cache in (None, tmp_path / "another"):
        if cache is not None:
            monkeypatch.setenv("PROTEOSCOPE_CACHE", str(cache))
        opened = open_subjects(run, Progress())
        for row in rows:
            subject = read_subject(source, row, opened)
            hit = source.values(np.array([row]), ["aligned_subject"])["aligned_subject"][0].as_py()
            assert subject.sequence == database[subject.name]
            assert subject.sequence[subject.start - 1 : subject.end] == hit.replace("-", "")
            header, _, sequence = subject.fasta().partition("\n")
            assert header.split()[0] == f">{subject.name}" and sequence.replace("\n", "") == subject.sequence


def test_open_subjects_rejects_changed_or_missing_database(tmp_path: Path, own_cache: Path) -> None:
    with searched(tmp_path) as run:
        path = next(path for kind, path in run.inputs if kind == "database")
        whole = path.read_bytes()
        path.write_bytes(whole + b">another\nACDEFGHIK\n")
        with pytest.raises(InputError, match="is no longer the file that was searched"):
            open_subjects(run, Progress())
        path.unlink()
        with pytest.raises(InputError, match="is no longer there, so that whole sequences cannot be shown"):
            open_subjects(run, Progress())


AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def stack_lines(lines: list[str]) -> Stack:
    """Stack rows of the same length below the first, without gaps."""
    n = len(lines) - 1
    zeros = np.zeros(n, np.int64)
    texts = Texts.from_strings([lines[0]] * n), Texts.from_strings(lines[1:])
    names, lengths = [f"s{k}" for k in range(n)], zeros + len(lines[0])
    return Stack.from_subjects("q", "", lines[0], AlignedSubjects(names, [""] * n, lengths, zeros, zeros, *texts, zeros))


CLUSTAL = {
    "red": (0.9, 0.2, 0.1),
    "blue": (0.1, 0.5, 0.9),
    "green": (0.1, 0.8, 0.1),
    "cyan": (0.1, 0.7, 0.7),
    "pink": (0.9, 0.5, 0.5),
    "magenta": (0.8, 0.3, 0.8),
    "yellow": (0.8, 0.8, 0.0),
    "orange": (0.9, 0.6, 0.3),
}
"""Shares of red, green and blue of Clustal X's colours."""


def clustal_colour(residue: str, column: str) -> str:
    """Return the colour name by the table of Clustal X (Larkin et al. 2007), or ''."""

    def has_share(group: str, share: float) -> bool:
        return sum(residue_in_column in group for residue_in_column in column) / len(column) >= share

    def has_majority(residues: str) -> bool:
        return any(has_share(group, 0.85) for group in residues)

    is_hydrophobic = has_share("WLVIMAFCYHP", 0.6) or has_majority("ACFHILMVWYP") or has_share("P", 0.5)
    is_basic = has_share("KR", 0.6) or has_majority("KRQ")
    rules = {
        "G": ("orange", True),
        "P": ("yellow", True),
        "T": ("green", has_share("TS", 0.5) or has_majority("ST") or has_share("WLVIMAFCYHP", 0.6)),
        "S": ("green", has_share("TS", 0.5) or has_majority("ST") or has_share("WLVIMAFCYHP", 0.8)),
        "N": ("green", has_share("N", 0.5) or has_majority("ND")),
        "Q": ("green", has_share("QE", 0.5) or has_majority("QE") or is_basic),
        **dict.fromkeys("WLVIMF", ("blue", is_hydrophobic)),
        "A": ("blue", is_hydrophobic or has_majority("TSG") or has_share("S", 0.5)),
        "C": ("pink", True) if has_share("C", 0.85) else ("blue", is_hydrophobic or has_majority("S")),
        "H": ("cyan", is_hydrophobic),
        "Y": ("cyan", is_hydrophobic),
        "E": ("magenta", has_share("ED", 0.5) or has_majority("DE") or has_share("QE", 0.5) or has_majority("Q")),
        "D": ("magenta", has_share("ED", 0.5) or has_majority("DEN") or has_share("N", 0.5)),
        "K": ("red", is_basic),
        "R": ("red", is_basic),
    }
    name, applies = rules[residue]
    return name if applies else ""


KINDS = st.lists(st.sampled_from(["KRQE", "STG", "LIVAP", "DENQ", "C", "CS", AMINO_ACIDS]), min_size=4, max_size=4)


@given(st.data())
def test_clustal_colours_match_the_clustal_x_table(data: st.DataObject) -> None:
    kinds = data.draw(KINDS)
    n = data.draw(st.integers(2, 9))
    columns = [data.draw(st.text(kind, min_size=n, max_size=n)) for kind in kinds]
    lines = ["".join(residues) for residues in zip(*columns, strict=True)]
    colours = stack_colours(stack_lines(lines), "clustal")
    for row, line in enumerate(lines):
        for position, residue in enumerate(line):
            name = clustal_colour(residue, columns[position])
            *rgb, alpha = colours[row, position].tolist()
            assert alpha == (255 if name else 0)
            assert not name or np.allclose(rgb, np.array(CLUSTAL[name]) * 255, atol=1)


def test_stack_identity_colours_darken_with_conservation() -> None:
    lines = ["AAAA", "AAAC", "AACC", "ACCC", "ACCC"]
    colours = stack_colours(stack_lines(lines), "identity")
    darkness = colours[0, :, 0].tolist()
    assert darkness == sorted(darkness) and len(set(darkness)) == 4
    for row, line in enumerate(lines):
        assert [bool(alpha) for alpha in colours[row, :, 3]] == [residue == "A" for residue in line]


def test_stack_colour_schemes_follow_residue_groups() -> None:
    stack = stack_lines([AMINO_ACIDS, AMINO_ACIDS])
    zappo = {residue: tuple(colour) for residue, colour in zip(AMINO_ACIDS, stack_colours(stack, "zappo")[1].tolist(), strict=True)}
    groups = ("ILVAM", "FWY", "KRH", "DE", "STNQ", "PG", "C")
    assert [len({zappo[residue] for residue in group}) for group in groups] == [1] * 7 and len(set(zappo.values())) == 7
    assert len({tuple(colour) for colour in stack_colours(stack, "taylor")[1].tolist()}) == 20
    red = dict(zip(AMINO_ACIDS, stack_colours(stack, "hydrophobicity")[1, :, 0].tolist(), strict=True))
    assert red["I"] == 255 > red["V"] > red["A"] > red["G"] > red["K"] > red["R"] == 0


@pytest.mark.parametrize("scheme", [scheme.name for scheme in SCHEMES])
def test_stack_gaps_and_unaligned_residues_have_no_colour(run: FinishedRun, scheme: str) -> None:
    stack = stacked_hits(run.tables.source("hits"), 0).stack
    coloured = ColouredStack.from_stack(stack, scheme)
    assert coloured.colours.shape == (*stack.symbols.shape, 4) and coloured.grade.shape == (stack.n_columns,)
    assert not coloured.colours[(stack.symbols == ord("-")) | (stack.symbols == 0), 3].any()


def test_stack_cell_text_describes_each_cell() -> None:
    subjects = AlignedSubjects(
        ["s"], [""], np.array([9]), np.array([1]), np.array([2]), Texts.from_strings(["CD-E"]), Texts.from_strings(["C-WE"]), np.array([1])
    )
    painted = ColouredStack.from_stack(Stack.from_subjects("q", "", "ACDEF", subjects), "none")
    texts = [painted.text_at(1, column).partition(", conservation")[0] for column in range(6)]
    assert texts == [
        "s: not aligned here (query A1)",
        "s: C3, query C2",
        "s: gap after 3, query D3",
        "s: W4, an insertion",
        "s: E5, query E4",
        "s: not aligned here (query F5)",
    ]
    assert painted.text_at(0, 4).startswith("q: E4, query E4")
    without = ColouredStack.from_stack(painted.stack, "none", has_insertions=False)
    assert bytes(without.symbols[1, 1:4]).decode() == "C-E"
    texts = [without.text_at(1, column).partition(", conservation")[0] for column in range(5)]
    assert texts[1:4] == ["s: C3, query C2", "s: gap after 3, query D3", "s: E5, after an insertion, query E4"]
