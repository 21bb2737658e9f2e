"""Genes and organisms of headers: documented examples, hostile headers, and columns of tables."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.formats.header_names import HeaderNames, header_names
from proteoscope.engine.formats.protein_names import name_columns, taxonomy_column


@pytest.mark.parametrize(
    ("description", "gene", "organism", "taxonomy"),
    [
        # Examples of https://www.uniprot.org/help/fasta-headers.
        ("Kinase OS=Salmonella typhimurium (strain LT2) OX=99287 GN=argB PE=3 SV=1", "argB", "Salmonella typhimurium (strain LT2)", 99287),
        ("Putative uncharacterized protein YKL215C OS=Saccharomyces cerevisiae OX=4932 PE=4 SV=1", None, "Saccharomyces cerevisiae", 4932),
        ("Isoform 4 of Apoptosis-inducing factor 1 OS=Homo sapiens OX=9606 GN=AIFM1", "AIFM1", "Homo sapiens", 9606),
        # Headers of NCBI.
        ("albumin precursor [Bos taurus]", None, "Bos taurus", None),
        ("oxidoreductase [[Clostridium] symbiosum]", None, "[Clostridium] symbiosum", None),
        ("green fluorescent protein [synthetic construct]", None, "synthetic construct", None),
        ("[gene=thrA] [locus_tag=b0002] [protein=aspartokinase] [organism=Escherichia coli]", "thrA", "Escherichia coli", None),
        # The last brackets hold something else.
        ("isocitrate dehydrogenase [NADP(+)]", None, None, None),
        ("thrombin [Cleaved into: Activation peptide fragment 1]", None, None, None),
        ("ribosomal protein [imported]", None, None, None),
        ("albumin OS=Bos taurus [Homo sapiens]", None, "Bos taurus [Homo sapiens]", None),
        # Repeated, empty and wrong keys.
        ("x GN=ALB GN=EVIL OS=Bos taurus OS=Homo sapiens", "ALB", "Bos taurus", None),
        ("x GN= OS= OX=", None, None, None),
        ("x GN= GN=ALB", "ALB", None, None),
        ("x OX=9913x", None, None, None),
        ("x OX=-1", None, None, None),
        ("HOGN=1 aOS=b", None, None, None),
        ("", None, None, None),
        ("[]", None, None, None),
        ("]", None, None, None),
        # Markup stays text, and control characters go.
        ("x GN=<b>ALB</b> OS=<img src=x>", "<b>ALB</b>", "<img src=x>", None),
        ("x GN=A\x00B\x1b[31mC\u202e OS=Bos\x07taurus", "A B [31mC", "Bos taurus", None),
        (f"x GN={'A' * 201} OS={'B' * 200}", None, "B" * 200, None),
    ],
)
def test_header_names_finds_gene_organism_and_taxonomy(
    description: str, gene: str | None, organism: str | None, taxonomy: int | None
) -> None:
    assert header_names(description) == HeaderNames(gene, organism, taxonomy)


@given(st.text(st.sampled_from("GNOSX=[] \x00\x1b<>b1Aa\u202e"), max_size=60))
def test_header_names_are_printable_and_bounded(description: str) -> None:
    names = header_names(description)
    for name in (names.gene, names.organism):
        assert name is None or (name.isprintable() and name == name.strip() and 0 < len(name) <= 200)


@pytest.mark.parametrize("part", ["GN=", "[", "]", "x GN=a ", "[gene=", " ", "[gene=]", "[A b]"])
def test_header_names_searches_huge_headers_up_to_a_limit(part: str) -> None:
    """Check headers for which a regular expression with backtracking would take practically forever."""
    huge = part * ((1 << 24) // len(part))
    assert header_names(huge) == header_names(huge[: 1 << 16])
    assert header_names("x" * (1 << 16) + " GN=ALB") == HeaderNames()


@pytest.mark.parametrize("n", [0, 1, 3])
def test_header_name_columns_have_a_value_for_each_row(n: int) -> None:
    columns = name_columns(["a GN=ALB OS=Bos taurus", None, ""][:n])
    assert columns["gene"].to_pylist() == ["ALB", None, None][:n]
    assert columns["organism"].to_pylist() == ["Bos taurus", None, None][:n]


def test_header_name_columns_equal_names_of_each_header() -> None:
    chance = random.Random(3)
    parts = (
        "OS=",
        " OS=Bos taurus",
        " OX=9913",
        " GN=",
        "GN=ALB",
        " SV=4",
        "[Bos taurus]",
        "[gene=ALB]",
        "[organism=Mus musculus]",
        " ",
        "x",
        "\t",
    )
    parts += (
        "\x00",
        "[NADP(+)]",
        "[",
        "]",
        "[synthetic construct]",
        "\u00e9",
        "=",
        ";",
        "\u2028",
        "[E. coli [K12] x]",
        "A" * 190,
        "B" * 230,
    )
    headers = ["".join(chance.choices(parts, k=chance.randrange(9))) for _ in range(5000)]
    expected = [header_names(header) for header in headers]
    columns = name_columns([*headers, None])
    assert columns["gene"].to_pylist() == [*(names.gene for names in expected), None]
    assert columns["organism"].to_pylist() == [*(names.organism for names in expected), None]
    taxonomy = [None if names.taxonomy is None else str(names.taxonomy) for names in expected]
    assert taxonomy_column(pa.array(headers)).to_pylist() == taxonomy
