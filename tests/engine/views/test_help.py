"""Content of the window's help: glossary of tables and forms, citations, and bug reports."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import pytest

from proteoscope.engine.searches import SEARCHES
from proteoscope.engine.shared_names import without_private
from proteoscope.engine.version import VERSION
from proteoscope.engine.views.bug_report import bug_report
from proteoscope.engine.views.citations import CITATIONS, bibtex, citation_text
from proteoscope.engine.views.glossary import glossary, matching


def test_help_glossary_has_each_column_and_setting() -> None:
    terms = glossary(SEARCHES)
    meanings = {(term.title, term.meaning) for term in terms}
    assert len({(term.title, term.meaning, term.is_setting) for term in terms}) == len(terms), "each term is listed once"
    for search in SEARCHES:
        for table in search.result_tables:
            for column in table.columns:
                assert not (column.title and column.meaning) or (column.header, column.description) in meanings, (table.name, column.name)
        for field in search.model.describe():
            assert any(field.name in term.names and term.is_setting and field.help == term.meaning for term in terms)
    assert [term.title.casefold() for term in terms] == sorted(term.title.casefold() for term in terms)


def test_help_search_ranks_titles_first_and_needs_all_words() -> None:
    terms = glossary(SEARCHES)
    terms_found = matching(terms, "Q-VALUE")
    assert terms_found and "q-value" in terms_found[0].title.casefold()
    in_title = ["q-value" in " ".join([term.title, *term.names]).casefold() for term in terms_found]
    assert in_title == sorted(in_title, reverse=True) and not all(in_title)
    assert {term.title for term in matching(terms, "q-value peptide")} < {term.title for term in terms_found}
    assert matching(terms, "nothing is called so") == [] and matching(terms, "  ") == terms


def test_citations_are_complete_as_text_and_bibtex() -> None:
    from_text = citation_text()
    assert len(CITATIONS) == 6 and VERSION in from_text
    for reference in (
        "Li Y, Chi H, Xia L, Chu X (2014)",
        "BMC Bioinformatics 15:121",
        "14:117",
        "20:2067",
        "Carroll T (2020)",
        "Li Y (2015)",
    ):
        assert reference in from_text
    entries = bibtex()
    assert entries.count("@") == 6 and entries.count("{") == entries.count("}")
    keys = [line.partition("{")[2].rstrip(",") for line in entries.splitlines() if line.startswith("@")]
    assert len(set(keys)) == 6 and all(key.isalnum() for key in keys)
    assert "{" not in from_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot read /home/ada/my data/BSA1.mzML: line 3", "cannot read …/BSA1.mzML: line 3"),
        (r"cannot read C:\Users\Ada Lovelace\runs\BSA1.mzML.", r"cannot read …\BSA1.mzML."),
        (r"\\server\share\secret\x.fasta", r"…\x.fasta"),
        ('File "/opt/ada/lib/engine/files.py", line 7', 'File "…/files.py", line 7'),
        ("~/projects/ada/run.json", "…/run.json"),
        ("see https://www.unimod.org/modifications and 3/4 of m/z 500.2", "see https://www.unimod.org/modifications and 3/4 of m/z 500.2"),
        ("ratio a/b", "ratio a/b"),
    ],
)
def test_bug_report_text_contains_no_folders_of_files(text: str, expected: str) -> None:
    assert without_private(text) == expected


def test_bug_report_has_private_names_on_request_only() -> None:
    private = f"{Path.home() / 'secret folder' / 'a.mzML'} of {getpass.getuser()}x"
    log = "\n".join(f"line {number}" for number in range(1, 501)) + f"\n{private}"
    with_paths = bug_report("It was blocked", ["cpu, AMD EPYC, usable"], log, with_paths=True)
    assert private in with_paths and "line 500" in with_paths and "line 300\n" not in with_paths
    assert VERSION in with_paths and "numpy" in with_paths and "cpu, AMD EPYC, usable" in with_paths and "It was blocked" in with_paths
    hidden = bug_report("It was blocked", ["cpu, AMD EPYC, usable"], log, with_paths=False)
    assert "secret folder" not in hidden and "a.mzML" in hidden and str(Path.home()) + "/" not in hidden


def test_bug_report_text_contains_no_user_and_machine_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "lovelace")
    monkeypatch.setattr(socket, "gethostname", lambda: "difference-engine")
    assert without_private("lovelace at difference-engine, loveliness") == "(user) at (machine), loveliness"
