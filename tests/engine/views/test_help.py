"""What the window's help is made of: words of tables and forms, works to cite, reports of faults."""

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


def test_every_column_and_setting_of_every_search_is_in_the_glossary() -> None:
    terms = glossary(SEARCHES)
    told = {(term.title, term.meaning) for term in terms}
    assert len({(term.title, term.meaning, term.is_setting) for term in terms}) == len(terms), "each is told once"
    for search in SEARCHES:
        for table in search.result_tables:
            for column in table.columns:
                assert not (column.title and column.meaning) or (column.header, column.meaning) in told, (table.name, column.name)
        for field in search.model.describe():
            assert any(field.name in term.names and term.is_setting and field.help == term.meaning for term in terms)
    assert [term.title.casefold() for term in terms] == sorted(term.title.casefold() for term in terms)


def test_words_are_found_in_titles_before_meanings_and_all_of_them_are_needed() -> None:
    terms = glossary(SEARCHES)
    found = matching(terms, "Q-VALUE")
    assert found and "q-value" in found[0].title.casefold()
    in_title = ["q-value" in " ".join([term.title, *term.names]).casefold() for term in found]
    assert in_title == sorted(in_title, reverse=True) and not all(in_title)
    assert {term.title for term in matching(terms, "q-value peptide")} < {term.title for term in found}
    assert matching(terms, "nothing is called so") == [] and matching(terms, "  ") == terms


def test_the_program_and_five_works_are_cited_as_text_and_as_bibtex() -> None:
    from_text = citation_text()
    assert len(CITATIONS) == 6 and VERSION in from_text
    for piece in ("Li Y, Chi H, Xia L, Chu X (2014)", "BMC Bioinformatics 15:121", "14:117", "20:2067", "Carroll T (2020)", "Li Y (2015)"):
        assert piece in from_text
    entries = bibtex()
    assert entries.count("@") == 6 and entries.count("{") == entries.count("}")
    keys = [line.partition("{")[2].rstrip(",") for line in entries.splitlines() if line.startswith("@")]
    assert len(set(keys)) == 6 and all(key.isalnum() for key in keys)
    assert "{" not in from_text


@pytest.mark.parametrize(
    ("said", "left"),
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
def test_folders_are_left_out_and_names_of_files_stay(said: str, left: str) -> None:
    assert without_private(said) == left


def test_a_report_names_nobody_unless_that_is_wished() -> None:
    private = f"{Path.home() / 'secret folder' / 'a.mzML'} of {getpass.getuser()}x"
    log = "\n".join(f"line {number}" for number in range(1, 501)) + f"\n{private}"
    kept = bug_report("It stood still", ["cpu, AMD EPYC, usable"], log, with_paths=True)
    assert private in kept and "line 500" in kept and "line 300\n" not in kept
    assert VERSION in kept and "numpy" in kept and "cpu, AMD EPYC, usable" in kept and "It stood still" in kept
    hidden = bug_report("It stood still", ["cpu, AMD EPYC, usable"], log, with_paths=False)
    assert "secret folder" not in hidden and "a.mzML" in hidden and str(Path.home()) + "/" not in hidden


def test_the_names_of_user_and_machine_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "lovelace")
    monkeypatch.setattr(socket, "gethostname", lambda: "difference-engine")
    assert without_private("lovelace at difference-engine, loveliness") == "(user) at (machine), loveliness"
