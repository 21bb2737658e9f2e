"""Assignment of matches to spectra, messages on matches without a spectrum, and matched fragment ions compared with the annotation."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.chemistry.activation import Activation
from proteoscope.engine.chemistry.fragments import annotate, fragment_ions
from proteoscope.engine.chemistry.masses import RESIDUE_MASS
from proteoscope.engine.chemistry.modification_naming import Namer
from proteoscope.engine.chemistry.noted_peptides import NotedPeptide, parse_peptide
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.match_lists.identifications import MatchCollector
from proteoscope.engine.matches.match_lists.references import AMBIGUOUS, UNKNOWN, WAYS, find_spectra
from proteoscope.engine.matches.match_lists.tables import count_ions
from proteoscope.engine.project import Project
from proteoscope.engine.unfolding import Unfolding
from tests.engine.imported.small_results import FORMATS, TRUTH, write_results, write_spectra
from tests.searching import import_results


@pytest.mark.parametrize("flags", [("--spectra", "{0}", "{1}"), ("--spectra", "{0}", "--spectra", "{1}")])
def test_import_spectra_option_accepts_lists_and_repeats(flags, tmp_path):
    from proteoscope.engine.command_line.main import main

    spectra = [write_spectra(tmp_path / name) for name in ("run.mgf", "other.mgf")]
    given = [flag.format(*spectra) for flag in flags]
    results = write_results("sage", tmp_path)
    assert main(["import", str(results), *given, "--out", str(tmp_path / "p"), "--quiet", "--device", "cpu"]) == 0
    project = Project.open(tmp_path / "p")
    recorded = [input_file.path for input_file in project.inputs("import-0001") if input_file.kind == "spectra"]
    assert list(map(str, recorded)) == list(map(str, spectra))


def test_imported_run_is_found_with_one_search_module_loaded(tmp_path):
    folder = tmp_path / "p"
    import_results([write_results("sage", tmp_path)], [write_spectra(tmp_path / "run.mgf")], folder)
    script = (
        "import sys; import proteoscope.engine.modified_search.search; from pathlib import Path; "
        "assert 'proteoscope.engine.searches' not in sys.modules; "
        f"from proteoscope.engine.matches.source_run import identified_run; print(identified_run(Path({str(folder)!r}), '').run)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "import-0001"


@pytest.fixture
def runs(tmp_path):
    """Return two files with the same scans and titles."""
    return read_spectra([write_spectra(tmp_path / "run.mgf"), write_spectra(tmp_path / "other.mgf")])


def found_by(runs, tmp_path, **fields) -> tuple[int, str]:
    collected = MatchCollector("x", Unfolding(tmp_path / "x", 1000))
    collected.add(collected.peptide(NotedPeptide("PEPTIDEK")), [], {}, **fields)
    spectra = find_spectra(collected.finish(), runs)
    return int(spectra.spectrum[0]), WAYS[spectra.way[0]] if spectra.way[0] >= 0 else ""


def test_imported_scan_is_assigned_to_the_named_file(runs, tmp_path):
    assert found_by(runs, tmp_path, scan=12, run="/data/run.mzML") == (1, "scan")
    assert found_by(runs, tmp_path, scan=12, run="C:\\data\\Other.raw") == (len(TRUTH) + 1, "scan")
    assert found_by(runs, tmp_path, scan=12)[0] == AMBIGUOUS
    assert found_by(runs, tmp_path, scan=12, run="third")[0] == found_by(runs, tmp_path, scan=99, run="run")[0] == UNKNOWN


def test_import_assigns_spectra_by_id_scan_index_or_time(runs, tmp_path):
    first, second = runs.identifier[0], runs.identifier[1]
    assert found_by(runs, tmp_path, run="run", native_id=first, scan=12, title=second) == (0, "native id")
    assert found_by(runs, tmp_path, run="run", native_id="scan=13", title=first) == (2, "scan")
    assert found_by(runs, tmp_path, run="run", title=second) == (1, "scan")  # The scan is in the title.
    assert found_by(runs, tmp_path, run="run", native_id="index=3") == (3, "place in the file")
    where = {"retention_time": 60.0 * 14 + 0.2, "precursor_mz": TRUTH[3].mz + 0.002}
    assert found_by(runs, tmp_path, run="run", **where) == (3, "retention time and m/z")
    assert found_by(runs, tmp_path, **where)[0] == AMBIGUOUS


def test_import_counts_and_lists_matches_without_spectrum(tmp_path):
    name, make = FORMATS["comet"]
    (tmp_path / name).write_text(make().replace("\n12\t", "\n99\t"))
    summary = import_results([tmp_path / name], [write_spectra(tmp_path / "run.mgf")], tmp_path / "project")
    assert summary.left_out == {"its spectrum is in none of the files": 1} and summary.n_imported == len(TRUTH) - 1
    with (tmp_path / "project" / "exports" / "left_out.tsv").open() as file:
        (row,) = csv.DictReader(file, delimiter="\t")
    assert (row["line"], row["spectrum"], row["peptide"]) == ("4", "run 99", "ACDMKGK") and "none of the files" in row["reason"]


def test_import_warns_of_unlisted_fixed_modifications(tmp_path):
    from proteoscope.engine.imported.parameters import ImportParameters

    path = write_results("maxquant", tmp_path)
    path.write_text(path.read_text().replace("(Carbamidomethyl (C))", ""))
    spectra = write_spectra(tmp_path / "run.mgf")
    messages = import_results([path], [spectra], tmp_path / "without").messages
    assert any("1 peptides have another mass" in message and "+57.0215" in message for message in messages)
    parameters = ImportParameters().changed(fixed_modifications=("Carbamidomethyl (C)",))
    messages = import_results([path], [spectra], tmp_path / "with", parameters=parameters).messages
    assert not any("another mass" in message for message in messages)
    project = Project.open(tmp_path / "with")
    assert "AC[Carbamidomethyl]DM[Oxidation]KGK" in pq.read_table(project.table("psms", "import-0001"))["peptide"].to_pylist()


@pytest.mark.parametrize("series", ["by", "cz", "abcxyz"])
def test_imported_ion_counts_equal_annotated_ions(series):
    generator = np.random.default_rng(5)
    sequences = ["".join(generator.choice(list("ACDEFGHIKLMNPQRSTVWY"), generator.integers(5, 20))) for _ in range(60)]
    from proteoscope.engine.spectra.columns import Spectra

    peaks = [np.sort(generator.uniform(60, 1800, generator.integers(0, 400))) for _ in sequences]
    n, counts = len(peaks), np.array([len(spectrum_peaks) for spectrum_peaks in peaks])
    offsets = np.concatenate(([0], np.cumsum(counts)))
    zeros = np.zeros(n)
    spectra = Spectra(
        ("x",),
        np.zeros(n, np.int32),
        [str(i) for i in range(n)],
        np.arange(n),
        np.arange(n),
        zeros,
        zeros + 500,
        zeros.astype(np.float32),
        np.zeros(n, np.uint32),
        offsets,
        np.concatenate(peaks),
        np.ones(offsets[-1], np.float32),
    )
    residues = np.frombuffer("".join(sequences).encode(), np.uint8)
    residue_offsets = np.concatenate(([0], np.cumsum([len(sequence) for sequence in sequences])))
    charge, spectrum, tolerance = generator.integers(1, 5, n), generator.permutation(n), Tolerance(0.5, "Da")
    matched, total = count_ions(
        residue_offsets, RESIDUE_MASS[residues - 65], residues, spectrum, charge, spectra, tolerance, series, 3, Progress()
    )
    for i, sequence in enumerate(sequences):
        ions = fragment_ions(sequence, series=series, maximum_charge=max(1, min(3, int(charge[i]) - 1)))
        mz, intensity = spectra.peaks(int(spectrum[i]))
        assert (matched[i], total[i]) == (len(annotate(mz, intensity, ions, tolerance)), len(ions))


def test_imported_ion_counts_use_the_activation_of_each_spectrum(tmp_path):
    spectra = read_spectra([write_spectra(tmp_path / "run.mgf")])
    kinds = (Activation.UNKNOWN, Activation.ETD, Activation.ETHCD)
    spectra = replace(spectra, activation=np.array([kinds[i % 3] for i in range(len(spectra))], np.uint8))
    residues = np.frombuffer(b"PEPTPDEK" * len(spectra), np.uint8)
    offsets, charge = np.arange(len(spectra) + 1) * 8, np.full(len(spectra), 3)
    at = offsets, RESIDUE_MASS[residues - 65], residues, np.arange(len(spectra)), charge, spectra, Tolerance(20, "Da")
    counted = np.stack(count_ions(*at, "activation", 2, Progress()))
    alone = [np.stack(count_ions(*at, series, 2, Progress())) for series in ("by", "cz", "bycz")]
    np.testing.assert_array_equal(counted, [[alone[i % 3][k, i] for i in range(len(spectra))] for k in range(2)])
    assert len(spectra) >= 3 and (counted[0] > 0).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("K.PEM[15.9949]K.R", [(3, "Oxidation")]),
        ("PEM[147]K", [(3, "Oxidation")]),
        ("PEM[147.0354]K", [(3, "Oxidation")]),
        ("_(ac)AM(ox)K_", [(0, "Acetyl"), (2, "Oxidation")]),
        ("n[43]PEPTC[160]K", [(0, "Acetyl"), (5, "Carbamidomethyl")]),
        ("_AApSPpTK_", [(3, "Phospho"), (5, "Phospho")]),
        ("_(ac)pYM(ox)K_", [(0, "Acetyl"), (1, "Phospho"), (2, "Oxidation")]),
        ("M+15.995PEPK", [(1, "Oxidation")]),
        ("[UNIMOD:1]-PEPK", [(0, "Acetyl")]),
        (".(Acetyl)PEPK.(Amidated)", [(0, "Acetyl"), (5, "Amidated")]),
        ("_AApSM(Oxidation (M))pYK_", [(3, "Phospho"), (4, "Oxidation"), (5, "Phospho")]),
        ("_pTEK_", [(1, "Phospho")]),
        ("Q[-17.0265]EPK", [(1, "Gln->pyro-Glu")]),
        ("PS[79.966]K", [(2, "Phospho")]),
        ("PEG[+12.3456]K", [(3, "+12.3456")]),
    ],
)
def test_modification_notations_of_engines_get_the_same_names(text, expected):
    namer, peptide = Namer(), parse_peptide(text)
    placed = namer.place_modifications(peptide)
    assert [(position, namer.modifications[number].name) for position, number in placed] == expected


@pytest.mark.parametrize("text", ["PEPpK", "PEPp", "pp", "PEPpSxK", "PEP.pS"])
def test_parse_peptide_rejects_unknown_lower_case_residues(text):
    with pytest.raises(ValueError):
        parse_peptide(text)
