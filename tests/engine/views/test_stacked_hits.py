"""Stacks of hits as the window shows them: which hits, their colours by the definitions, whole sequences of subjects."""

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
    return open_run(project_with_search(folder / "project", n_queries=2, n_relatives=6, n_strangers=30))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FinishedRun]:
    with searched(tmp_path_factory.mktemp("stacked")) as opened:
        yield opened


def records(path: Path) -> dict[str, str]:
    """Names and sequences of a FASTA file."""
    entries = [entry.partition("\n") for entry in path.read_text().split(">")[1:]]
    return {header.split()[0]: letters.replace("\n", "") for header, _, letters in entries}


def test_a_stack_holds_the_hits_that_pass_or_those_chosen(run: FinishedRun) -> None:
    source = run.tables.source("hits")
    for index in (0, 1):
        every = source.rows(select_query_hits(index))
        found = stacked_hits(source, index)
        assert found.rows.tolist() == every.tolist() and found.total == len(every)
        assert found.stack.subjects.names == source.values(every, ["subject"])["subject"].to_pylist()
        strict = stacked_hits(source, index, [compares("identity", ">=", 0.6)])
        assert strict.rows.tolist() == source.rows([*select_query_hits(index), compares("identity", ">=", 0.6)]).tolist()
        some = stacked_hits(source, index, rows=every[[3, 1]].tolist())
        assert some.rows.tolist() == every[[1, 3]].tolist() and len(some.stack) == 3
    with pytest.raises(ParameterError, match="only hits of one query can be stacked"):
        stacked_hits(source, 1, rows=[0])
    with pytest.raises(ParameterError, match="there is no query 7"):
        stacked_hits(source, 7)


def test_no_more_hits_are_stacked_than_can_be_looked_at(run: FinishedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAXIMUM_STACKED", 3)
    found = stacked_hits(run.tables.source("hits"), 0)
    assert len(found.rows) == 3 < found.total and len(found.stack) == 4


@pytest.mark.parametrize("format", [*STACK_FORMATS, *PAIR_FORMATS])
def test_a_stack_is_saved_with_its_hits(run: FinishedRun, tmp_path: Path, format: str) -> None:
    found = stacked_hits(run.tables.source("hits"), 0)
    write_stack(tmp_path / "out", found.stack, format)
    text = (tmp_path / "out").read_text()
    if format == "a3m":
        assert text.count(">") == len(found.rows) + 1
    else:
        read = list(Align.parse(io.StringIO(text), format))
        assert [len(one) for one in read] == ([2] * len(found.rows) if format in PAIR_FORMATS else [len(found.rows) + 1])


def test_whole_subjects_are_those_of_the_database_also_without_a_cache(
    run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
            header, _, letters = subject.fasta().partition("\n")
            assert header.split()[0] == f">{subject.name}" and letters.replace("\n", "") == subject.sequence


def test_a_database_that_has_changed_or_gone_is_told(tmp_path: Path, own_cache: Path) -> None:
    with searched(tmp_path) as run:
        path = next(path for kind, path in run.inputs if kind == "database")
        whole = path.read_bytes()
        path.write_bytes(whole + b">another\nACDEFGHIK\n")
        with pytest.raises(InputError, match="is no longer the file that was searched"):
            open_subjects(run, Progress())
        path.unlink()
        with pytest.raises(InputError, match="is no longer there, so that whole sequences cannot be shown"):
            open_subjects(run, Progress())


LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def stack_of(lines: list[str]) -> Stack:
    """Rows of one length below the first of them, without gaps."""
    n = len(lines) - 1
    zeros = np.zeros(n, np.int64)
    texts = Texts.from_strings([lines[0]] * n), Texts.from_strings(lines[1:])
    names, lengths = [f"s{k}" for k in range(n)], zeros + len(lines[0])
    return Stack.of("q", "", lines[0], AlignedSubjects(names, [""] * n, lengths, zeros, zeros, *texts, zeros))


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
"""Shares of red, green and blue, as Clustal X has its colours."""


def clustal_name(letter: str, column: str) -> str:
    """The colour of Clustal X by its table (Larkin et al. 2007), as its users read it."""

    def has(group: str, share: float) -> bool:
        return sum(one in group for one in column) / len(column) >= share

    def mostly(letters: str) -> bool:
        return any(has(one, 0.85) for one in letters)

    shy = has("WLVIMAFCYHP", 0.6) or mostly("ACFHILMVWYP") or has("P", 0.5)
    basic = has("KR", 0.6) or mostly("KRQ")
    rules = {
        "G": ("orange", True),
        "P": ("yellow", True),
        "T": ("green", has("TS", 0.5) or mostly("ST") or has("WLVIMAFCYHP", 0.6)),
        "S": ("green", has("TS", 0.5) or mostly("ST") or has("WLVIMAFCYHP", 0.8)),
        "N": ("green", has("N", 0.5) or mostly("ND")),
        "Q": ("green", has("QE", 0.5) or mostly("QE") or basic),
        **dict.fromkeys("WLVIMF", ("blue", shy)),
        "A": ("blue", shy or mostly("TSG") or has("S", 0.5)),
        "C": ("pink", True) if has("C", 0.85) else ("blue", shy or mostly("S")),
        "H": ("cyan", shy),
        "Y": ("cyan", shy),
        "E": ("magenta", has("ED", 0.5) or mostly("DE") or has("QE", 0.5) or mostly("Q")),
        "D": ("magenta", has("ED", 0.5) or mostly("DEN") or has("N", 0.5)),
        "K": ("red", basic),
        "R": ("red", basic),
    }
    name, is_meant = rules[letter]
    return name if is_meant else ""


KINDS = st.lists(st.sampled_from(["KRQE", "STG", "LIVAP", "DENQ", "C", "CS", LETTERS]), min_size=4, max_size=4)


@given(st.data())
def test_clustal_colours_are_those_of_its_table(data: st.DataObject) -> None:
    kinds = data.draw(KINDS)
    n = data.draw(st.integers(2, 9))
    columns = [data.draw(st.text(kind, min_size=n, max_size=n)) for kind in kinds]
    lines = ["".join(letters) for letters in zip(*columns, strict=True)]
    found = stack_colours(stack_of(lines), "clustal")
    for row, line in enumerate(lines):
        for place, letter in enumerate(line):
            name = clustal_name(letter, columns[place])
            *rgb, alpha = found[row, place].tolist()
            assert alpha == (255 if name else 0)
            assert not name or np.allclose(rgb, np.array(CLUSTAL[name]) * 255, atol=1)


def test_identity_is_darker_where_more_rows_have_the_residue_of_the_query() -> None:
    lines = ["AAAA", "AAAC", "AACC", "ACCC", "ACCC"]
    found = stack_colours(stack_of(lines), "identity")
    darkness = found[0, :, 0].tolist()
    assert darkness == sorted(darkness) and len(set(darkness)) == 4
    for row, line in enumerate(lines):
        assert [bool(alpha) for alpha in found[row, :, 3]] == [letter == "A" for letter in line]


def test_residues_of_one_kind_have_one_colour() -> None:
    stack = stack_of([LETTERS, LETTERS])
    zappo = {letter: tuple(colour) for letter, colour in zip(LETTERS, stack_colours(stack, "zappo")[1].tolist(), strict=True)}
    groups = ("ILVAM", "FWY", "KRH", "DE", "STNQ", "PG", "C")
    assert [len({zappo[letter] for letter in group}) for group in groups] == [1] * 7 and len(set(zappo.values())) == 7
    assert len({tuple(colour) for colour in stack_colours(stack, "taylor")[1].tolist()}) == 20
    red = dict(zip(LETTERS, stack_colours(stack, "hydrophobicity")[1, :, 0].tolist(), strict=True))
    assert red["I"] == 255 > red["V"] > red["A"] > red["G"] > red["K"] > red["R"] == 0


@pytest.mark.parametrize("scheme", [one.name for one in SCHEMES])
def test_gaps_and_what_is_not_aligned_have_no_colour(run: FinishedRun, scheme: str) -> None:
    stack = stacked_hits(run.tables.source("hits"), 0).stack
    found = ColouredStack.of(stack, scheme)
    assert found.colours.shape == (*stack.symbols.shape, 4) and found.grade.shape == (stack.n_columns,)
    assert not found.colours[(stack.symbols == ord("-")) | (stack.symbols == 0), 3].any()


def test_a_place_is_told_in_words() -> None:
    subjects = AlignedSubjects(
        ["s"], [""], np.array([9]), np.array([1]), np.array([2]), Texts.from_strings(["CD-E"]), Texts.from_strings(["C-WE"]), np.array([1])
    )
    painted = ColouredStack.of(Stack.of("q", "", "ACDEF", subjects), "none")
    told = [painted.text_at(1, column).partition(", conservation")[0] for column in range(6)]
    assert told == [
        "s: not aligned here (query A1)",
        "s: C3, query C2",
        "s: gap after 3, query D3",
        "s: W4, an insertion",
        "s: E5, query E4",
        "s: not aligned here (query F5)",
    ]
    assert painted.text_at(0, 4).startswith("q: E4, query E4")
    without = ColouredStack.of(painted.stack, "none", has_insertions=False)
    assert bytes(without.symbols[1, 1:4]).decode() == "C-E"
    told = [without.text_at(1, column).partition(", conservation")[0] for column in range(5)]
    assert told[1:4] == ["s: C3, query C2", "s: gap after 3, query D3", "s: E5, after an insertion, query E4"]
