"""Reading and writing ProForma, against pyteomics' parser and masses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyteomics import proforma

from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.chemistry.peptidoforms import FloatingModification, Peptidoform, PlacedModification, parse, write, write_many
from proteoscope.engine.errors import ParameterError
from tests.effort import lines_run

residues = "ACDEFGHIKLMNPQRSTVWYUO"
titles = [entry.title for entry in unimod()]


def floating() -> st.SearchStrategy[FloatingModification]:
    named = st.sampled_from(titles).map(lambda title: FloatingModification(title, unimod().by_name(title).mass))
    numbers = st.integers(-(10**9), 10**9).map(lambda n: n / 1e6)
    return named | numbers.map(lambda mass: FloatingModification(f"{mass:+.6f}".rstrip("0").rstrip("."), mass))


@st.composite
def peptidoforms(draw: st.DrawFn) -> Peptidoform:
    sequence = draw(st.text(residues, min_size=1, max_size=20))
    places = sorted(draw(st.lists(st.integers(0, len(sequence) + 1), max_size=5)))
    placed = tuple(PlacedModification(place, *draw(floating())) for place in places)
    few = st.lists(floating(), max_size=2).map(tuple)
    return Peptidoform(sequence, placed, draw(st.none() | st.integers(1, 9)), draw(few), draw(few))


@given(peptidoforms())
def test_peptidoform_text_round_trip(peptidoform: Peptidoform) -> None:
    assert parse(write(peptidoform)) == peptidoform
    assert str(peptidoform) == write(peptidoform)


@pytest.mark.parametrize("title", titles[::7] + [title for title in titles if set(title) & set("[]{}()/+-?#|<>^")][::5])
def test_peptidoform_with_any_unimod_title_round_trips(title: str) -> None:
    mass = unimod().by_name(title).mass
    for text in (f"A[{title}]K", f"[{title}]-AK", f"AK-[{title}]/3", f"{{{title}}}AK", f"[{title}]?AK", f"<[{title}]@A>AK"):
        result = parse(text)
        everywhere = (*(modification[1:] for modification in result.modifications), *result.unlocalised, *result.labile)
        assert everywhere == ((title, mass),)
        assert parse(write(result)) == result


@st.composite
def with_masses(draw: st.DrawFn) -> Peptidoform:
    """Return peptides with masses as modifications, since pyteomics resolves names differently."""
    sequence = draw(st.text("ACDEFGHIKLMNPQRSTVWY", min_size=1, max_size=15))
    mass = st.integers(-(10**8), 10**9).map(lambda n: n / 1e6)
    # pyteomics overlooks the second of two modifications on the C-terminus.
    places = sorted(draw(st.lists(st.integers(0, len(sequence)), max_size=4))) + [len(sequence) + 1] * draw(st.integers(0, 1))
    placed = tuple(PlacedModification(place, "mine, unknown", draw(mass)) for place in places)
    unlocalised = tuple(FloatingModification("mine, unknown", draw(mass)) for _ in range(draw(st.integers(0, 2))))
    return Peptidoform(sequence, placed, draw(st.none() | st.integers(1, 5)), unlocalised)


@given(with_masses())
def test_peptidoform_masses_equal_pyteomics(peptidoform: Peptidoform) -> None:
    other = proforma.ProForma.parse(write(peptidoform))
    assert other.mass == pytest.approx(peptidoform.mass, abs=1e-3)
    if peptidoform.charge is None:
        assert peptidoform.mz is None
    else:
        assert other.charge_state.charge == peptidoform.charge
    # The positions are compared, not only the masses.
    places = [(0, tag.value) for tag in other.n_term] + [
        (i, tag.value) for i, (_, tags) in enumerate(other.sequence, 1) for tag in tags or []
    ]
    places += [(len(peptidoform.sequence) + 1, tag.value) for tag in other.c_term]
    assert [(place, pytest.approx(mass, abs=1e-6)) for place, _, mass in peptidoform.modifications] == places


@pytest.mark.parametrize(
    "text",
    ["<[+10.5]@M>MPM[+5]", "[+5]^2?MPM", "{+3}MPM", "M[Formula:C2H3NO]K", "{Glycan:Hex}EM", "N[Glycan:HexNAc2Hex5]M", "M[+1][+2]K"],
)
def test_masses_of_rare_proforma_notations_equal_pyteomics(text: str) -> None:
    # pyteomics rounds masses of glycans to four decimals.
    assert parse(text).mass == pytest.approx(proforma.ProForma.parse(text).mass, abs=1e-3)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("PEPTIDE", "PEPTIDE"),
        ("EM[UNIMOD:35]K", "EM[Oxidation]K"),
        ("EM[U:oxidation]K/2", "EM[Oxidation]K/2"),
        ("EM[U:+15.9949]K", "EM[+15.9949]K"),
        ("EM[Obs:+15.9949]K", "EM[+15.9949]K"),
        ("EM[Oxidation|+15.995|INFO:seen twice]K", "EM[Oxidation]K"),
        ("[Acetyl]-PEK-[Amidated]", "[Acetyl]-PEK-[Amidated]"),
        ("<[Carbamidomethyl]@C>ACMC", "AC[Carbamidomethyl]MC[Carbamidomethyl]"),
        ("<[TMT6plex]@K,N-term>ACK", "[TMT6plex]-ACK[TMT6plex]"),
        ("<[Gln->pyro-Glu]@N-term:Q>QAQ", "[Gln->pyro-Glu]-QAQ"),
        ("<[Gln->pyro-Glu]@N-term:Q>AQ", "AQ"),
        ("{Glycan:Hex}[Phospho]?EMS", "[Phospho]?{Glycan:Hex}EMS"),
    ],
)
def test_proforma_examples_round_trip(text: str, written: str) -> None:
    assert write(parse(text)) == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "capitals"),
        ("peptide", "capitals"),
        ("PEP[", "has no"),
        ("PE]P", "character 3"),
        ("P[]E", "does not name a modification"),
        ("PE(PTI)[+1]DE", "range"),
        ("M[Oxidation#g1]M[#g1]K", "group"),
        ("<13C>PEP", "isotope"),
        ("<[Oxidation]@1>PEP", "expected @"),
        ("PEP//TIDE", "chains"),
        ("PEP+TIDE", "chains"),
        ("PEP/2[+Na+]", "protons"),
        ("PEP/0", "protons"),
        ("M[MOD:00719]K", "vocabulary"),
        ("M[Foo]K", "no modification"),
        ("M[+nan]K", "no modification"),
        ("M[Formula:Foo2]K", "formula"),
        ("N[Glycan:Foo]K", "composition"),
        ("[+1]PEP", "expected"),
        ("PEP-", "expected"),
    ],
)
def test_peptidoform_parser_rejects_invalid_text(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse(text)


@settings(max_examples=50)
@given(st.text("PE[]{}<>@?-/+#()^|:1OxidationCM ,.", max_size=25))
def test_peptidoform_parser_reads_or_rejects_any_text(text: str) -> None:
    try:
        result = parse(text)
    except ParameterError:
        return
    assert parse(write(result)) == result


@settings(max_examples=50)
@given(st.lists(peptidoforms(), max_size=8))
def test_write_many_peptidoforms_equals_writing_each_peptidoform(peptides: list[Peptidoform]) -> None:
    names = sorted({(modification.name, modification.mass) for peptide in peptides for modification in peptide.modifications})
    flat = [modification for peptide in peptides for modification in peptide.modifications]
    texts = write_many(
        [peptide.sequence for peptide in peptides],
        np.cumsum([0] + [len(peptide.modifications) for peptide in peptides]),
        np.array([modification.position for modification in flat], dtype=np.int16),
        np.array([names.index((modification.name, modification.mass)) for modification in flat], dtype=np.int32),
        [name for name, _ in names],
        [mass for _, mass in names],
    )
    assert texts == [write(Peptidoform(peptide.sequence, peptide.modifications)) for peptide in peptides]


@pytest.mark.parametrize("positions", [[2, 1], [0, 5], [-1, 0]])
def test_write_many_peptidoforms_rejects_invalid_positions(positions: list[int]) -> None:
    with pytest.raises(ParameterError, match="row 1"):
        write_many(["AAA", "PEK"], np.array([0, 0, 2]), np.array(positions), np.array([0, 0]), ["Oxidation"], [15.994915])


def test_peptidoform_parser_rejects_position_outside_the_peptide() -> None:
    with pytest.raises(ParameterError, match="0 to 4"):
        write(Peptidoform("PEK", (PlacedModification(5, "Oxidation", 15.994915),)))


def test_write_many_peptidoforms_runs_few_lines_per_peptide() -> None:
    n, texts = 2000, []

    def work() -> None:
        texts.extend(write_many(["PEPTMIDESEQMK"] * n, np.arange(n + 1), np.full(n, 5), np.zeros(n, dtype=int), ["Oxidation"], [15.994915]))

    assert lines_run(work) < 25 * n
    assert texts == ["PEPTM[Oxidation]IDESEQMK"] * n


@pytest.mark.parametrize("text", ["PEPTIDE/{}", "PEP[+{}]TIDE", "PEP[Formula:C{}]TIDE", "PEP[Glycan:Hex{}]TIDE", "PEP[Hex{}]TIDE"])
def test_peptidoform_parser_rejects_extremely_long_numbers(text: str) -> None:
    """Check numbers with more digits than `int` converts, which are also too large for a double."""
    with pytest.raises(ParameterError) as caught:
        parse(text.format("9" * 5000))
    assert len(str(caught.value)) < 1000
