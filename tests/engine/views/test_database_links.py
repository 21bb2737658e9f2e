"""Links to public databases: published forms of accessions, and names of no such form."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.views.database_links import database_links, links_of_names

UNIPROT = re.compile(r"[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9]([A-Z][A-Z0-9]{2}[0-9]){1,2}")
"""Copied from https://www.uniprot.org/help/accession_numbers."""


def urls(name: str, *, is_structure: bool = False) -> list[str]:
    return [link.url for link in database_links(name, is_structure=is_structure)]


@pytest.mark.parametrize(
    ("name", "accession"),
    [
        # Examples of https://www.uniprot.org/help/accession_numbers.
        *((accession, accession) for accession in ("A2BC19", "P12345", "A0A023GPI8")),
        ("sp|P02769|ALBU_BOVIN", "P02769"),
        ("tr|A0A023GPI8|A0A023GPI8_CANRO", "A0A023GPI8"),
        ("sp|P02769-2|ALBU_BOVIN", "P02769"),
        ("P02769-12", "P02769"),
        ("AF-P02769-F1-model_v4", "P02769"),
    ],
)
@pytest.mark.parametrize("is_structure", [False, True])
def test_uniprot_accession_links_to_two_pages(name: str, accession: str, is_structure: bool) -> None:
    expected = [f"https://www.uniprot.org/uniprotkb/{accession}/entry", f"https://alphafold.ebi.ac.uk/entry/{accession}"]
    assert urls(name, is_structure=is_structure) == expected


@pytest.mark.parametrize(
    ("name", "is_structure", "entry"),
    [
        ("4f5s", True, "4F5S"),
        ("pdb4f5s", True, "4F5S"),
        ("4F5S:A", True, "4F5S"),
        ("4f5s-assembly1:A", True, "4F5S"),
        ("pdb|4F5S|A", False, "4F5S"),
        ("4F5S_1|Chains", False, "4F5S"),
        ("4F5S_A", False, "4F5S"),
    ],
)
def test_pdb_identifier_links_to_one_page(name: str, is_structure: bool, entry: str) -> None:
    assert urls(name, is_structure=is_structure) == [f"https://www.rcsb.org/structure/{entry}"]


@pytest.mark.parametrize(
    "name",
    [
        *("", "albumin", "NP_851335.1", "ENSP00000295897", "P0276", "p02769", "P02769 ", " P02769", "P02769\n", "P02769/../x"),
        *("P02769?q=1", "P02769#x", "sp|P02769|ALBU BOVIN", "sp|evil|P02769", "rev_sp|P02769|ALBU_BOVIN", "DECOY_P02769"),
        *("javascript:alert(1)", "https://evil.example/P02769", "sp|P02769|ALBU_BOVIN|x", "P\u0660\u06602769", "\uff3002769", "P02769\x00"),
        *("P02769'", 'P02769"', "P02769%2F..", "%50%302769", "P02769\r\nHost: x", "P02769\u2028", "P02769\\x", "file:///P02769", "P 02769"),
        *("4f5s", "4F5S", "0F5S_A", "pdb|4F5S|<b>", "AF-P02769-F1-model_v4.pdb", "AF-../../x-F1", "P02769" * 1000, "A" * 10_000_000),
    ],
)
def test_names_that_are_not_accessions_have_no_database_link(name: str) -> None:
    assert urls(name) == []


@given(
    st.one_of(st.text(max_size=20), st.from_regex(UNIPROT, fullmatch=True), st.from_regex(r"(sp\|)?[A-Z0-9|_\-/.%]{4,20}", fullmatch=True))
)
def test_database_links_contain_only_a_valid_accession(name: str) -> None:
    for is_structure in (False, True):
        for url in urls(name, is_structure=is_structure):
            parts = urlsplit(url)
            assert parts.scheme == "https" and not parts.query and not parts.fragment and parts.port is None
            assert parts.netloc in ("www.uniprot.org", "alphafold.ebi.ac.uk", "www.rcsb.org")
            accession = parts.path.strip("/").split("/")[1]
            pattern = "[1-9][A-Z0-9]{3}" if "rcsb" in parts.netloc else UNIPROT
            assert re.fullmatch(pattern, accession) and accession in name.upper()


def test_database_links_of_many_names_are_limited_and_distinct() -> None:
    names = ["sp|P02769|ALBU_BOVIN", "P02769", "unknown", *(f"P{number:05d}" for number in range(50))]
    links = links_of_names(names)
    assert len(links) == len(set(links)) == 8
    assert links[:2] == database_links("P02769") and links_of_names(["x", ""]) == ()
