"""Library searches from files to tables: planted spectra are found, with their proteins, shifts and error rates."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from proteoscope.engine.chemistry.masses import PROTON_MASS, RESIDUE_MASS, WATER_MASS
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import load_references, save_references
from proteoscope.engine.library_search.summary import LibrarySummary
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search, search_of_kind
from proteoscope.engine.views.run_account import run_account

N = 150
OXIDATION = 15.9949


def fragments(sequence, at=-1, shift=0.0):
    masses = RESIDUE_MASS[np.frombuffer(sequence.encode(), np.uint8) - ord("A")].copy()
    if at >= 0:
        masses[at] += shift
    whole = masses.sum() + WATER_MASS
    front = np.cumsum(masses)[:-1]
    return np.sort(np.concatenate((front, whole - front))) + PROTON_MASS, (whole + 2 * PROTON_MASS) / 2


def peptides():
    generator = np.random.default_rng(3)
    return [
        "".join(generator.choice(list("ADEFGHILNPQSTVWY"), 8)) + "M" + "".join(generator.choice(list("ADEFGL"), 3)) + "K" for _ in range(N)
    ]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write a library of peptides, and a run with spectra of half of them; a fifth of these are oxidised."""
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    generator, entries, spectra = np.random.default_rng(4), [], []
    for number, sequence in enumerate(peptides()):
        heights = generator.exponential(1.0, 2 * (len(sequence) - 1)) * 900 + 100
        mz, precursor = fragments(sequence)
        peaks = "\n".join(f"{position:.4f}\t{height:.1f}" for position, height in zip(mz, heights, strict=True))
        entries.append(f'Name: {sequence}/2\nComment: Mods=0 Parent={precursor:.4f} Protein="P{number}"\nNum peaks: {len(mz)}\n{peaks}\n')
        if number % 2 == 0:
            is_oxidised = number % 10 == 0
            mz, precursor = fragments(sequence, 8, OXIDATION) if is_oxidised else (mz, precursor)
            peaks = "\n".join(f"{position:.4f} {h * generator.uniform(0.8, 1.2):.1f}" for position, h in zip(mz, heights, strict=True))
            spectra.append(f"BEGIN IONS\nTITLE={sequence}{'+' * is_oxidised}\nPEPMASS={precursor:.4f}\nCHARGE=2+\n{peaks}\nEND IONS\n")
    library, run = tmp_path / "library.msp", tmp_path / "run.mgf"
    library.write_text("\n".join(entries))
    run.write_text("\n".join(spectra))
    return run, library


def as_mgf(library: Path) -> Path:
    """Return the entries of an MSP library as MGF spectra with ``SEQ=`` lines."""
    spectra = []
    for entry in library.read_text().split("Name: ")[1:]:
        name, comment, _, *peaks = entry.strip().splitlines()
        sequence, _, charge = name.partition("/")
        precursor = comment.partition("Parent=")[2].split()[0]
        lines = (f"TITLE=of {sequence}", f"SEQ={sequence}", f"PEPMASS={precursor}", f"CHARGE={charge}+", *peaks)
        spectra.append("\n".join(("BEGIN IONS", *lines, "END IONS")))
    made = library.with_suffix(".mgf")
    made.write_text("\n".join(spectra))
    return made


def planted() -> dict[str, str]:
    """Return the peptides whose spectra are in the run unchanged, by title."""
    return {sequence: sequence for number, sequence in enumerate(peptides()) if number % 2 == 0 and number % 10}


def rows_of(path: Path):
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.parametrize("similarity", ["entropy", "cosine"])
def test_library_search_finds_planted_peptides_and_proteins(files, tmp_path, similarity):
    run, library = files
    summary = run_search("library", {"spectra": [run], "library": [library]}, project=tmp_path / "p", device="cpu", similarity=similarity)
    plain = [sequence for number, sequence in enumerate(peptides()) if number % 2 == 0 and number % 10]
    matches = {row["spectrum_id"]: row for row in rows_of(tmp_path / "p" / "exports" / "matches.tsv")}
    assert {name: matches[name]["peptide"] for name in plain} == {name: name for name in plain}
    # With few peptides, each is shuffled several times.
    assert summary.decoys == "shuffle" and (summary.n_entries, summary.n_decoys) == (N, 10 * N)
    psms = {row["spectrum_id"]: row for row in rows_of(tmp_path / "p" / "exports" / "psms.tsv") if row["is_decoy"] == "false"}
    assert all(psms[name]["proteins"] == f"P{peptides().index(name)}" for name in plain)
    assert all(abs(float(psms[name]["mass_error_ppm"])) < 1 and float(psms[name]["similarity"]) > 0.9 for name in plain)


def test_library_search_accepts_annotated_mgf_as_library(files, tmp_path, capsys):
    run, library = files[0], as_mgf(files[1])
    command = ["library", str(run), "--library", str(library), "--out", str(tmp_path / "p"), "--device", "cpu"]
    assert main(["estimate", *command]) == 0
    assert main(command) == 0
    matches = {row["spectrum_id"]: row["peptide"] for row in rows_of(tmp_path / "p" / "exports" / "matches.tsv")}
    assert matches.items() >= planted().items()
    (tmp_path / "list.ms2").write_text("H\tx\nS\t1\t1\t500.0\nZ\t2\t999.0\n100 1\n")
    assert main(["estimate", *command[:3], str(tmp_path / "list.ms2"), *command[4:]]) == 2
    assert "is MS2, not a spectral library. Give it as SPECTRA" in capsys.readouterr().err


def test_open_library_search_finds_and_names_mass_shifts(files, tmp_path):
    run, library = files
    run_search("library", {"spectra": [run], "library": [library]}, project=tmp_path / "p", device="cpu", precursor_tolerance="200 Da")
    shifted = [sequence for number, sequence in enumerate(peptides()) if number % 10 == 0]
    matches = {row["spectrum_id"]: row for row in rows_of(tmp_path / "p" / "exports" / "matches.tsv")}
    for sequence in shifted:
        row = matches[f"{sequence}+"]
        assert (row["peptide"], row["kind"], row["modification"]) == (sequence, "shifted", "Oxidation")
        assert float(row["mass_difference"]) == pytest.approx(OXIDATION, abs=1e-3)
    psms = {row["spectrum_id"]: row["peptide"] for row in rows_of(tmp_path / "p" / "exports" / "psms.tsv") if row["is_decoy"] == "false"}
    assert all(psms[f"{sequence}+"] == f"{sequence[:9]}[Oxidation]{sequence[9:]}" for sequence in shifted)


def test_library_search_tables_are_equal_on_any_threads(files, tmp_path):
    run, library = files
    texts = []
    for threads in (1, 2):
        folder = tmp_path / f"p{threads}"
        run_search(
            "library", {"spectra": [run], "library": [library]}, project=folder, device="cpu", threads=threads, precursor_tolerance="200 Da"
        )
        texts.append([(folder / "exports" / f"{name}.tsv").read_bytes() for name in ("matches", "psms", "peptides", "proteins")])
    assert texts[0] == texts[1]


def test_library_search_gives_small_molecules_no_error_rates(tmp_path, monkeypatch):
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    peaks = "\n".join(f"{100 + 13 * k}.05\t{100 + k}" for k in range(6))
    (tmp_path / "l.msp").write_text(
        f"Name: Compound\nPrecursorMZ: 301.1\nPrecursor_type: [M+H]+\nFormula: C6H12O6\nInChIKey: WQZGKKKJIJFFOK-GASJEMHNSA-N\n"
        f"Num Peaks: 6\n{peaks}\n"
    )
    (tmp_path / "s.mgf").write_text("BEGIN IONS\nTITLE=one\nPEPMASS=301.1\nCHARGE=1+\n" + peaks.replace("\t", " ") + "\nEND IONS\n")
    summary = run_search(
        "library", {"spectra": [tmp_path / "s.mgf"], "library": [tmp_path / "l.msp"]}, project=tmp_path / "p", device="cpu"
    )
    (row,) = rows_of(tmp_path / "p" / "exports" / "matches.tsv")
    assert (row["library_spectrum"], row["formula"], row["inchikey"][:6], row["q_value"]) == ("Compound", "C6H12O6", "WQZGKK", "")
    assert float(row["similarity"]) == pytest.approx(1.0, abs=1e-6)
    assert "no decoys" in summary.unknown


def compound_entries(n):
    """Return entries and spectra of small molecules with the masses of `peptides`."""
    peaks = "\n".join(f"{100 + 13 * k}.05\t{100 + k}" for k in range(6))
    entries = [f"Name: Compound{i}\nPrecursorMZ: {301.1 + i}\nPrecursor_type: [M+H]+\nNum Peaks: 6\n{peaks}\n" for i in range(n)]
    spectra = [
        f"BEGIN IONS\nTITLE=compound{i}\nPEPMASS={301.1 + i}\nCHARGE=1+\n" + peaks.replace("\t", " ") + "\nEND IONS\n" for i in range(n)
    ]
    return "\n".join(entries), "\n".join(spectra)


@pytest.mark.parametrize("tolerance", ["10 ppm", "200 Da"])
def test_library_compounds_get_no_q_values_from_peptide_decoys(files, tmp_path, tolerance):
    run, library = files
    alone = run_search(
        "library", {"spectra": [run], "library": [library]}, project=tmp_path / "alone", device="cpu", precursor_tolerance=tolerance
    )
    entries, spectra = compound_entries(40)
    library.write_text(library.read_text() + "\n" + entries)
    run.write_text(run.read_text() + "\n" + spectra)
    both = run_search(
        "library", {"spectra": [run], "library": [library]}, project=tmp_path / "both", device="cpu", precursor_tolerance=tolerance
    )
    rows = {name: rows_of(tmp_path / name / "exports" / "matches.tsv") for name in ("alone", "both")}
    compounds = [row for row in rows["both"] if row["spectrum_id"].startswith("compound")]
    assert {row["library_spectrum"].replace("C", "c") for row in compounds} == {row["spectrum_id"] for row in compounds}
    assert len(compounds) == 40 and all(row["q_value"] == "" and row["kind"] == "same" for row in compounds)
    # The rates of peptides are as without compounds, and compounds are not counted as accepted.
    q_values = {name: {row["spectrum_id"]: row["q_value"] for row in rows[name] if row["q_value"]} for name in rows}
    assert q_values["alone"] == q_values["both"] and rows["both"][-1]["q_value"] == ""
    assert (both.n_matches, both.n_unrated, alone.n_unrated) == (alone.n_matches, 40, 0)
    assert any("40 spectra resemble an entry without decoys" in line for line in both.lines())


def test_identical_shuffled_decoys_of_a_library_are_counted_once(tmp_path):
    # Five equal residues have one order; four equal ones and another have five.
    written = []
    for sequence in ("AAAAAK", "AAAAGK", "ADEFGHILK"):
        mz, precursor = fragments(sequence)
        peaks = "\n".join(f"{position:.4f}\t{100 + k}" for k, position in enumerate(mz))
        written.append(f"Name: {sequence}/2\nComment: Parent={precursor:.4f}\nNum peaks: {len(mz)}\n{peaks}\n")
    path = tmp_path / "l.msp"
    path.write_text("\n".join(written))
    parameters = LibrarySearchParameters().changed(minimum_peaks=1, minimum_fragment_mz=50.0)
    (tmp_path / "index").mkdir()
    save_references(read_libraries([path]), tmp_path / "index", parameters, Resources(1))
    references = load_references(tmp_path / "index")
    peaks, entry = references.peaks, references.entry.tolist()
    lists = {(name, *peaks.mz[slice(*peaks.offsets[row : row + 2])].tolist()) for row, name in enumerate(entry)}
    assert len(lists) == len(references)
    n_decoys = np.bincount(references.entry[references.is_decoy], minlength=3)
    assert n_decoys[0] == 0 and 1 <= n_decoys[1] <= 4 and n_decoys[2] > 30
    np.testing.assert_array_equal(references.has_decoys, references.entry != 0)
    assert references.decoy_ratio == n_decoys.sum() / 2


@pytest.mark.parametrize(("decoys", "is_decoy"), [("automatic", [False, True]), ("none", [False])])
def test_library_index_uses_library_decoys_unless_disabled(tmp_path, decoys, is_decoy):
    written = []
    for comment in ("", "Remark=DECOY "):
        mz, precursor = fragments("ADEFGHILK"[:: -1 if comment else 1])
        peaks = "\n".join(f"{position:.4f}\t{100 + k}" for k, position in enumerate(mz))
        written.append(f"Name: ADEFGHILK/2\nComment: {comment}Parent={precursor:.4f}\nNum peaks: {len(mz)}\n{peaks}\n")
    path = tmp_path / "l.msp"
    path.write_text("\n".join(written))
    parameters = LibrarySearchParameters().changed(minimum_peaks=1, minimum_fragment_mz=50.0, decoys=decoys)
    (tmp_path / "index").mkdir()
    save_references(read_libraries([path]), tmp_path / "index", parameters, Resources(1))
    assert sorted(load_references(tmp_path / "index").is_decoy.tolist()) == is_decoy


def test_matches_at_5_percent_are_shown_if_none_at_1_percent(files, tmp_path, capsys):
    run, library = files
    spectra = run.read_text().split("END IONS\n")
    run.write_text("END IONS\n".join([*spectra[:20], ""]))  # One more decoy is 2.5 % of them, at two for each target.
    folder = tmp_path / "p"
    command = ["library", str(run), "--library", str(library), "--out", str(folder), "--device", "cpu", "--set", "decoys_per_peptide=2"]
    assert main(command) == 0
    q_values = [float(row["q_value"]) for row in rows_of(folder / "exports" / "matches.tsv")]
    numbers = f"0 at 1 % FDR; {sum(q_value <= 0.05 for q_value in q_values)} at 5 % FDR"
    assert min(q_values) > 0.01 and numbers != "0 at 1 % FDR; 0 at 5 % FDR"
    assert f"Spectra that resemble an entry: {numbers}\n" in capsys.readouterr().out
    project = Project.open(folder)
    assert f"No match is accepted: {numbers}" in project.record(project.runs()[-1].id)["messages"]
    account = run_account(project, project.runs()[-1], search_of_kind("library"))
    (matches,) = (count for count in account.counts if count.singular == "matches")
    assert matches.certainty is not None and matches.certainty.nothing_accepted == numbers


@pytest.mark.parametrize("decoys_per_peptide", [1, 3])
def test_library_search_makes_the_requested_number_of_decoys(files, tmp_path, decoys_per_peptide):
    run, library = files
    for number in (decoys_per_peptide, 2):  # The cached index of one is not opened for the other.
        inputs = {"spectra": [run], "library": [library]}
        summary = run_search("library", inputs, project=tmp_path / f"p{number}", device="cpu", decoys_per_peptide=number)
        assert summary.n_decoys == number * N


def test_library_search_rejects_library_without_usable_entries(files, tmp_path):
    (tmp_path / "l.msp").write_text("Name: Empty\nPrecursorMZ: 301.1\nNum Peaks: 1\n100.0\t1\n")
    with pytest.raises(InputError, match=r"can be searched|no entry|none of"):
        run_search("library", {"spectra": [files[0]], "library": [tmp_path / "l.msp"]}, project=tmp_path / "p", device="cpu")


@pytest.mark.parametrize(
    ("decoys", "n_decoys", "text"),
    [
        ("existing", 1, ", with 1 decoy of the library, by cosine"),
        ("shuffle", 1200, ", with 1,200 decoys of shuffled peptides, by cosine"),
        ("none", 0, ", without decoys, by cosine"),
    ],
)
def test_library_summary_states_the_decoys(decoys, n_decoys, text):
    names = ("n_spectra", "n_searched", "n_entries", "n_matches", "n_shifted", "n_compounds", "n_psms", "n_peptides", "n_proteins")
    counts = dict.fromkeys(names, 3)
    run = {"run_id": None, "folder": None, "seconds": 1.0, "device": "cpu", "stages": {}, "messages": ()}
    summary = LibrarySummary(**run, **counts, n_decoys=n_decoys, decoys=decoys, similarity="cosine", is_open=False)
    assert summary.lines()[0].endswith(f"3 library entries{text}")
