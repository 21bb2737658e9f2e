"""Searches from end to end of spectra with known peptides: each preset on its type of data, without further settings.

Spectra are simulated from masses that pyteomics computes: two thirds of the b and y ions with errors as the preset allows, noise peaks,
and the same number of pure noise spectra.
"""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from pyteomics import mass, parser

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.identification import IDENTIFICATION, report
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.class_counts import CLASSES
from proteoscope.engine.matches.tables import FEWEST_FOR_EXPECTATION
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from tests.engine.simulation import Simulation, proteins_of
from tests.searching import identify
from tests.shim.shim_gpu import ShimGpu, missing_compiler

REPOSITORY = Path(__file__).resolve().parents[3]

CARBAMIDOMETHYL, PHOSPHO, TMT = (mass.calculate_mass(formula=formula) for formula in ("C2H3NO", "HPO3", "H20C8C[13]4NN[15]O2"))
RESIDUES = set("ACDEFGHIKLMNPQRSTVWY")
N_KNOWN = 60


@pytest.fixture(scope="module")
def proteins():
    return proteins_of(REPOSITORY / "resources" / "samples" / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


@pytest.fixture(scope="module")
def database(proteins, tmp_path_factory):
    path = tmp_path_factory.mktemp("database") / "proteins.fasta"
    path.write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in proteins.items()))
    return path


def search(spectra, database, folder, preset, *, advice=None, **changes):
    parameters = IdentificationParameters.checked(read_preset("identify", preset)).changed(**changes)
    spectra = spectra if isinstance(spectra, list) else [spectra]
    summary = identify(spectra, [database], folder, parameters, threads=2, advice=advice)
    with (Path(folder) / "exports" / "psms.tsv").open(encoding="utf-8", newline="") as file:
        return summary, list(csv.DictReader(file, delimiter="\t"))


def accepted(rows, level=0.01):
    return [row for row in rows if row["rank"] == "1" and row["is_decoy"] == "false" and float(row["q_value"] or "nan") <= level]


def same(sequence, other_sequence):
    return sequence.replace("I", "L") == other_sequence.replace("I", "L")


def assert_found(simulation, rows, share):
    """Check that at 1 % FDR at least `share` of the known spectra are identified, and hardly anything else.

    Among fewer than 100 matches, 1 % FDR accepts matches up to the first decoy. Wrong targets before it are like heads before the first
    tail: more than seven occur once in 256 times.
    """
    psms = accepted(rows)
    right = [row for row in psms if same(simulation.known.get(row["spectrum_id"], ""), row["sequence"])]
    assert len(right) >= share * len(simulation.known)
    assert len(psms) - len(right) <= 7
    return right


def tryptic(proteins, seed, n=N_KNOWN, needs=""):
    peptides = {
        peptide
        for sequence in proteins.values()
        for peptide in parser.cleave(sequence, "trypsin", missed_cleavages=1, min_length=9)
        if len(peptide) <= 20
        and set(peptide) <= set(mass.std_aa_mass) - set("UO")
        and all(any(c in peptide for c in group) for group in needs)
    }
    return np.random.default_rng(seed).choice(sorted(peptides), n, replace=False).tolist()


def fixed(sequence):
    return {i + 1: CARBAMIDOMETHYL for i, residue in enumerate(sequence) if residue == "C"}


CASES = {
    # preset: precursor error, fragment error, true if in ppm
    "high-resolution": (6, 10, True),
    "low-resolution": (0.005, 0.25, False),
    "ion-trap": (0.5, 0.25, False),
    "maldi-tof-tof": (0.2, 0.15, False),
    "phospho": (6, 10, True),
    "tmt": (6, 10, True),
    "non-specific": (6, 10, True),
    "open": (6, 10, True),
}


@pytest.mark.parametrize("preset", CASES)
def test_each_preset_identifies_spectra_of_its_instrument_type(preset, proteins, database, tmp_path):
    simulation = Simulation(3, *CASES[preset][:2], relative=CASES[preset][2])
    charges = (1,) if preset == "maldi-tof-tof" else (2, 3)
    # TOF/TOF peak lists seldom have charges.
    options = {"write_charge": preset != "maldi-tof-tof"}
    peptides = tryptic(proteins, 5, needs=("STY",) if preset == "phospho" else ("K",) if preset == "tmt" else ())
    sites = {}
    for number, sequence in enumerate(peptides):
        charge = charges[number % len(charges)]
        shifts = fixed(sequence)
        if preset == "phospho":
            site = 1 + simulation.random.choice([i for i, residue in enumerate(sequence) if residue in "STY"])
            shifts[site] = PHOSPHO
        elif preset == "tmt":
            shifts |= {0: TMT} | {i + 1: TMT for i, residue in enumerate(sequence) if residue == "K"}
        elif preset == "open":
            site = simulation.random.integers(1, len(sequence) + 1)
            shifts[site] = shifts.get(site, 0.0) + simulation.random.uniform(12, 400)
        elif preset == "non-specific":
            name = simulation.random.choice(sorted(proteins))
            whole = "".join(residue if residue in mass.std_aa_mass and residue not in "CUO" else " " for residue in proteins[name])
            stretches = [part for part in whole.split() if len(part) >= 14]
            sequence = stretches[simulation.random.integers(len(stretches))][2 : 2 + simulation.random.integers(9, 13)]
            shifts = {}
        simulation.add(sequence, charge, shifts, **options)
        simulation.add_noise(mass.calculate_mass(sequence) + 3.0, charge, **options)
        sites[f"known {2 * number}"] = [place for place in shifts if shifts[place] == PHOSPHO]
    _, rows = search(simulation.write(tmp_path / "a.mgf"), database, tmp_path / "project", preset)
    right = assert_found(simulation, rows, 0.6 if preset in ("open", "ion-trap", "maldi-tof-tof") else 0.8)
    if preset == "tmt":
        assert all(row["peptide"].startswith("[TMT6plex]-") and "K[TMT6plex]" in row["peptide"] for row in right)
    if preset == "phospho":
        assert all(row["peptide"].count("[Phospho]") == 1 for row in right)
        placed = [int(row["modification_positions"].split(";")[row["modification_names"].split(";").index("Phospho")]) for row in right]
        as_made = sum(place in sites[row["spectrum_id"]] for place, row in zip(placed, right, strict=True))
        assert as_made >= 0.8 * len(right)


@pytest.fixture(scope="module")
def plain(proteins, tmp_path_factory):
    """Simulate high-resolution data and write its file."""
    simulation = Simulation(11, 6, 10)
    for number, sequence in enumerate(tryptic(proteins, 12)):
        simulation.add(sequence, 2 + number % 2, fixed(sequence))
        simulation.add_noise(mass.calculate_mass(sequence) + 3.0, 2 + number % 2)
    return simulation, simulation.write(tmp_path_factory.mktemp("plain") / "plain.mgf")


def test_spectra_without_charge_are_searched_at_several_charges(plain, database, tmp_path):
    simulation, path = plain
    lines = [line for line in path.read_text().splitlines() if not line.startswith("CHARGE")]
    (tmp_path / "none.mgf").write_text("\n".join(lines))
    summary, rows = search(tmp_path / "none.mgf", database, tmp_path / "project", "high-resolution")
    assert summary.n_searched == summary.n_spectra == 2 * N_KNOWN
    right = assert_found(simulation, rows, 0.8)
    assert {row["charge"] for row in right} == {"2", "3"}
    assert all(int(row["charge"]) == 2 + int(row["spectrum_id"].split()[1]) // 2 % 2 for row in right)
    assert all(len([row for row in rows if row["spectrum_id"] == identifier]) == 1 for identifier in simulation.known)


def test_best_hit_does_not_depend_on_hits_per_spectrum(plain, database, tmp_path):
    _, path = plain
    _, single = search(path, database, tmp_path / "project", "high-resolution")
    _, several = search(path, database, tmp_path / "project", "high-resolution", hits_per_spectrum=3)
    by_spectrum = {}
    for row in several:
        by_spectrum.setdefault(row["spectrum_id"], []).append(row)
    assert {spectrum: rows[0]["peptide"] for spectrum, rows in by_spectrum.items()} == {
        row["spectrum_id"]: row["peptide"] for row in single
    }
    assert max(map(len, by_spectrum.values())) == 3
    for rows in by_spectrum.values():
        assert [int(row["rank"]) for row in rows] == list(range(1, len(rows) + 1))
        scores = [float(row["search_score"]) for row in rows]
        assert scores == sorted(scores, reverse=True)
        assert len({row["peptide"] for row in rows}) == len(rows)
        assert float(rows[0]["delta_score"]) >= 0
        if len(rows) > 1 and rows[1]["sequence"] != rows[0]["sequence"]:
            assert float(rows[0]["delta_score"]) == pytest.approx(scores[0] - scores[1], abs=1e-4)


def test_existing_and_generated_decoys_give_equal_results(plain, proteins, database, tmp_path):
    _, path = plain
    both = tmp_path / "both.fasta"
    decoys = "".join(f">REV_{name} a protein\n{sequence[::-1]}\n" for name, sequence in proteins.items())
    both.write_text(decoys + database.read_text())
    _, made = search(path, database, tmp_path / "made", "high-resolution", decoy_prefix="REV_")
    _, brought = search(path, both, tmp_path / "brought", "high-resolution", decoys="existing", decoy_prefix="REV_")
    names = ("spectrum_id", "peptide", "score", "q_value", "is_decoy")
    assert [[row[name] for name in names] for row in made] == [[row[name] for name in names] for row in brought]
    assert [sorted(row["proteins"].split(";")) for row in made] == [sorted(row["proteins"].split(";")) for row in brought]


def test_q_values_are_scaled_for_incomplete_decoys(plain, proteins, database, tmp_path):
    _, path = plain
    half = tmp_path / "half.fasta"
    decoys = "".join(f">REV_{name}\n{proteins[name][::-1]}\n" for name in sorted(proteins)[::2])
    half.write_text(decoys + database.read_text())
    summary, rows = search(path, half, tmp_path / "half", "high-resolution", decoys="existing", decoy_prefix="REV_")
    record = Project.open(tmp_path / "half").record(summary.run_id)
    ratio = record["decoy_ratio"]
    assert ratio == pytest.approx(0.5, abs=0.1)
    assert any("scaled by the number of decoys in the database" in message for message in summary.messages)
    assert any("no second pass" in message for message in summary.messages), "the identified proteins have no decoys"
    ranked = sorted((row for row in rows if row["rank"] == "1"), key=lambda row: -float(row["score"]))
    is_decoy = np.array([row["is_decoy"] == "true" for row in ranked])
    by_definition = np.cumsum(is_decoy) / ratio / np.maximum(1, np.cumsum(~is_decoy))
    least = np.minimum.accumulate(np.minimum(by_definition, 1.0)[::-1])[::-1]
    assert len({row["score"] for row in ranked}) == len(ranked), "the definition above does not handle ties"
    np.testing.assert_allclose([float(row["q_value"]) for row in ranked], least, atol=1e-4)


def test_identify_rejects_database_with_too_few_decoys(plain, proteins, database, tmp_path):
    _, path = plain
    few = tmp_path / "few.fasta"
    decoys = "".join(f">REV_{name}\n{proteins[name][::-1]}\n" for name in sorted(proteins)[::10])
    few.write_text(decoys + database.read_text())
    with pytest.raises(InputError, match=r"few\.fasta: there are [\d,]+ decoy peptides and [\d,]+ target peptides, too few decoys"):
        search(path, few, tmp_path / "few", "high-resolution", decoys="existing", decoy_prefix="REV_")


def test_psm_e_values_are_empty_for_few_candidates(plain, database, tmp_path):
    _, path = plain
    search(path, database, tmp_path / "project", "high-resolution", second_pass=False)
    (table,) = (tmp_path / "project" / "results").glob("*/psms.parquet")
    rows = parquet.read_table(table, columns=["expectation", "feature_log_candidates"]).to_pylist()
    few = [round(np.expm1(row["feature_log_candidates"])) < FEWEST_FOR_EXPECTATION for row in rows]
    assert any(few) and not all(few)
    assert [row["expectation"] is None for row in rows] == few


def test_identify_without_decoys_reports_no_error_rate(plain, database, tmp_path):
    _, path = plain
    summary, rows = search(path, database, tmp_path / "project", "high-resolution", decoys="none", fdr=0.5)
    assert {(row["q_value"], row["posterior_error_probability"], row["is_decoy"]) for row in rows} == {("", "", "false")}
    assert any("no false discovery rate can be estimated" in message for message in summary.messages)
    assert summary.n_psms == len(rows) and summary.n_peptides == len({row["peptide"] for row in rows}), "all are counted"
    assert {(certainty["false_share_low"], certainty["false_share_high"]) for certainty in summary.certainty.values()} == {(0, 1)}


def test_identify_searches_and_labels_contaminants(plain, proteins, database, tmp_path):
    simulation, path = plain
    names = sorted(proteins)
    half, other = tmp_path / "half.fasta", tmp_path / "other.fasta"
    half.write_text("".join(f">{name}\n{proteins[name]}\n" for name in names[::2]))
    other.write_text("".join(f">{name}\n{proteins[name]}\n" for name in names[1::2]))
    summary, rows = search(path, half, tmp_path / "project", "high-resolution", contaminants=(str(other),))
    right = assert_found(simulation, rows, 0.8)
    contaminants = set(names[1::2])
    for row in right:
        for accession in row["proteins"].split(";"):
            assert accession.startswith("CONT_") == (accession.removeprefix("CONT_") in contaminants)
    assert any("CONT_" in row["proteins"] for row in right)
    kinds = [load["kind"] for load in json.loads((summary.folder / "run.json").read_text())["inputs"]]
    assert kinds == ["spectra", "database", "contaminants"]


def test_identify_joins_several_files_in_one_search(plain, database, tmp_path):
    simulation, path = plain
    text = path.read_text().split("\n\n")
    first, second = tmp_path / "one.mgf", tmp_path / "other.mgf"
    first.write_text("\n\n".join(text[:N_KNOWN]))
    second.write_text("\n\n".join(text[N_KNOWN:]))
    _, whole = search(path, database, tmp_path / "project", "high-resolution")
    _, parts = search([first, second], database, tmp_path / "project", "high-resolution")
    assert {row["spectrum_file"] for row in parts} == {first.name, second.name}
    assert {(row["spectrum_id"], row["peptide"]) for row in parts} == {(row["spectrum_id"], row["peptide"]) for row in whole}
    assert_found(simulation, parts, 0.8)


def test_identify_rejects_broken_spectra_in_strict_mode(plain, database, tmp_path):
    simulation, path = plain
    broken = tmp_path / "broken.mgf"
    broken.write_text(path.read_text().replace("TITLE=known 4\n", "TITLE=known 4\n100.5 not_a_number\n"))
    parameters = IdentificationParameters()
    with pytest.raises(InputError, match=r"broken\.mgf, line \d+"):
        identify([broken], [database], tmp_path / "project", parameters, strict=True)
    summary = identify([broken], [database], tmp_path / "project", parameters)
    assert summary.n_spectra == 2 * N_KNOWN - 1
    assert any(f"1 of {2 * N_KNOWN} MS2 spectra left out" in message for message in summary.messages)
    assert len(simulation.known) == N_KNOWN


def test_second_pass_psms_have_separate_q_values(shared_data, tmp_path):
    """The second pass accepts more; no q-value is below the decoy-to-target ratio of its class, computed in a loop over the matches.

    Results of the first pass remain unless the second pass has a better match of that spectrum.
    """
    spectra = shared_data / "spectra" / "qc_shew_qe" / "QC_Shew_18_02_Excerpt.mzXML"
    database = shared_data / "proteomes" / "shew.fasta"
    _, first = search(spectra, database, tmp_path / "project", "high-resolution", second_pass=False)
    summary, rows = search(spectra, database, tmp_path / "project", "high-resolution", second_pass=True)
    of_first, of_both = ({row["spectrum_id"]: row for row in some} for some in (first, rows))
    assert len(of_both) == len(rows)
    assert of_both.keys() >= of_first.keys()
    assert {row["match_class"] for row in first} == {"specific", "isotope error"}
    assert {row["match_class"] for row in rows} == {"specific", "isotope error", "second pass"}
    retained = [row for row in accepted(first) if of_both[row["spectrum_id"]]["match_class"] != "second pass"]
    assert len(retained) == len(accepted(first)) > 300
    for row in retained:
        assert of_both[row["spectrum_id"]]["peptide"] == row["peptide"]
    rows.sort(key=lambda row: -float(row["score"]))
    for name in ("specific", "isotope error", "second pass"):
        of_class = [row for row in rows if row["match_class"] == name]
        decoys = targets = 0
        ratios = []
        for row in of_class:
            decoys += row["is_decoy"] == "true"
            targets += row["is_decoy"] == "false"
            ratios.append(decoys / max(targets, 1))
        for place, row in enumerate(of_class):
            assert float(row["q_value"]) >= min(1.0, *ratios[place:], 1.0) - 1e-9
        counts = next(counts for counts in summary.classes if counts.name == name)
        assert (counts.method, counts.targets_of_any_score) == ("transferred" if targets < 100 else "group-walk", targets)
        assert counts.certainty["targets"] == len(accepted(of_class))
    assert accepted(of_class)  # the second pass finds more
    # Only proteins that the first pass found, and their decoys.
    before = {accession for row in accepted(first) for accession in row["proteins"].split(";")}
    second = [row for row in rows if row["match_class"] == "second pass"]
    for row in second:
        assert all(accession.removeprefix("DECOY_") in before for accession in row["proteins"].split(";"))


def test_run_records_messages_of_gpus(plain, database, tmp_path, monkeypatch):
    """Messages of background steps and of functions deep inside the search are recorded too."""

    def gpus(device, progress, **_):
        progress.message("cuda:0 failed: its driver is too old; it is not used")
        return []

    def compile_kernels(groups, progress, processes):
        progress.message("cuda:1 is lost")

    monkeypatch.setattr("proteoscope.engine.search_run.open_gpus", gpus)
    monkeypatch.setattr("proteoscope.engine.search_run.compile_kernels", compile_kernels)
    monkeypatch.setattr("proteoscope.kernels.cpu.signatures.is_compiled", lambda group: False)
    summary = identify([plain[1]], [database], tmp_path / "project", IdentificationParameters())
    expected = ("cuda:1 is lost", "cuda:0 failed: its driver is too old; it is not used")
    assert summary.messages[:2] == expected
    assert tuple(json.loads((tmp_path / "project" / "run.json").read_text())["messages"][:2]) == expected
    assert tuple(entry.text for entry in Project.open(tmp_path / "project").log(summary.run_id)[:2]) == expected


class LimitedGpu(ShimGpu):
    """GPU of the shim with the interface that a run uses."""

    def limit_memory(self, n_bytes):
        """Ignore the limit."""


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
def test_identify_reports_lost_gpu_once_and_stops_using_it(plain, database, tmp_path, monkeypatch):
    """In a run with two passes, the record names the device that was used in the end."""
    chosen = Device("cuda:0", "a GPU", 1 << 33, True, numbers=(0,))
    monkeypatch.setattr("proteoscope.engine.execution.device_lookup.resolve_device", lambda *_: chosen)
    devices = {}
    for lost, failing_launch in ((False, -1), (True, 0)):
        gpu = LimitedGpu(failing_launch=failing_launch)
        monkeypatch.setattr("proteoscope.engine.search_run.open_gpus", lambda *_, gpu=gpu, **__: [gpu])
        folder = tmp_path / str(lost)
        summary = identify([plain[1]], [database], folder, IdentificationParameters(second_pass=True), threads=2, device="cuda")
        assert sum("lost" in message for message in summary.messages) == lost
        assert (gpu.n_launches <= 1) == lost
        devices[lost] = {summary.device, json.loads((folder / "run.json").read_text())["device"], Project.open(folder).runs()[0].device}
    assert devices == {False: {gpu.name}, True: {"cpu"}}


def features_of(summary):
    table = parquet.read_table(summary.folder / "results" / summary.run_id / "psms.parquet")
    return {name: table[name].to_numpy() for name in table.column_names if name.startswith("feature_")}, table


def test_predicted_intensity_features_can_be_disabled(plain, database, tmp_path):
    _, path = plain
    on, _ = search(path, database, tmp_path / "on", "high-resolution", rescoring="off")
    off, _ = search(path, database, tmp_path / "off", "high-resolution", rescoring="off", predicted_intensities=False)
    (with_them, table), (without, plain_table) = features_of(on), features_of(off)
    names = {"feature_intensity_cosine", "feature_intensity_correlation", "feature_intensity_entropy_similarity"}
    assert set(with_them) - set(without) == names
    # Nothing else changes without training.
    assert table.drop_columns(sorted(names)).equals(plain_table)
    for name in names:
        assert np.isfinite(with_them[name]).all()
        assert (np.abs(with_them[name]) <= 1.0).all()
        assert np.median(with_them[name]) > 0.0, name
    assert any("fragment intensities" in message for message in on.messages)
    assert not any("fragment intensities" in message for message in off.messages)
    request = ExportRequest(on.run_id, "pin", tmp_path / "out.pin")
    IDENTIFICATION.export(Project.open(tmp_path / "on"), request, Progress())
    assert names <= set((tmp_path / "out.pin").read_text().split("\n", 1)[0].split("\t"))


def test_intensities_are_not_predicted_with_tmt_label(plain, database, tmp_path):
    _, path = plain
    summary, _ = search(path, database, tmp_path / "project", "high-resolution", variable_modifications=("TMT6plex (K)",))
    assert not any("intensity" in name for name in features_of(summary)[0])
    assert any("fragment intensities are not predicted: the label TMT6plex" in message for message in summary.messages)


def test_second_pass_label_disables_predicted_intensities(plain, database, tmp_path):
    """Matches of both passes are scored by a model trained on those of the first."""
    _, path = plain
    changes = {"second_pass": True, "second_pass_modifications": ("TMT6plex (K)",)}
    summary, rows = search(path, database, tmp_path / "project", "high-resolution", **changes)
    assert rows and len(summary.passes) == 2
    assert not any("intensity" in name for name in features_of(summary)[0])
    assert any("a label of the second pass changes them" in message for message in summary.messages)


def test_second_pass_has_predicted_intensities(plain, database, tmp_path):
    _, path = plain
    summary, _ = search(path, database, tmp_path / "project", "high-resolution", second_pass=True)
    features, table = features_of(summary)
    assert np.isfinite(features["feature_intensity_cosine"]).all()
    assert len(features["feature_intensity_cosine"]) == len(table)


@pytest.mark.parametrize(("name", "is_searched_again"), [("specific", False), ("isotope error", False), ("semi-specific", True)])
def test_second_pass_searches_semi_specific_matches_again(plain, database, tmp_path, monkeypatch, name, is_searched_again):
    """Matches that are accepted in a class after isotope errors compete with those of the second pass."""
    monkeypatch.setattr(report, "classify_matches", lambda psms, *_, **__: np.full(len(psms), CLASSES.index(name)))
    _, path = plain
    _, first = search(path, database, tmp_path / "first", "high-resolution")
    summary, _ = search(path, database, tmp_path / "project", "high-resolution", second_pass=True)
    n_accepted = len([row for row in first if row["rank"] == "1" and float(row["q_value"] or "nan") <= 0.01])
    assert n_accepted > 20
    assert summary.passes[1].n_spectra == summary.passes[0].n_spectra - (0 if is_searched_again else n_accepted)


def test_variable_modification_replaces_fixed_label_at_same_site(shared_cases, tmp_path):
    """Scans 1000 to 1007 have modified termini and lysines, each with and without the label; only possible forms are found."""
    folder = shared_cases / "variable_on_top_of_fixed_label"
    parameters = IdentificationParameters(
        fixed_modifications=("Carbamidomethyl (C)", "TMT6plex (K)", "TMT6plex (N-term)"),
        variable_modifications=(
            "Oxidation (M)",
            "Acetyl (Protein N-term)",
            "Gln->pyro-Glu (N-term Q)",
            "Acetyl (K)",
            "GG (K)",
        ),
    )
    identify([folder / "tmt.mzML"], [folder / "tmt.fasta"], tmp_path / "project", parameters)
    with (tmp_path / "project" / "exports" / "psms.tsv").open() as file:
        peptides = {int(row["scan"]): row["peptide"] for row in csv.DictReader(file, delimiter="\t")}
    assert peptides[1000].startswith("[Acetyl]-S") and peptides[1002].startswith("Q[Gln->pyro-Glu]V")
    assert "K[Acetyl]Q" in peptides[1004] and "K[GG][TMT6plex]Q" in peptides[1006]
    assert not any(both in peptide for peptide in peptides.values() for both in ("[Acetyl][TMT6plex]", "[TMT6plex][Acetyl]"))


def test_identify_reports_identical_spectrum_files(shared_cases, tmp_path):
    folder = shared_cases / "only_first_selected_ion"
    files = [tmp_path / name for name in ("r1.mzML", "r2.mzML")]
    for file in files:
        file.write_bytes((folder / "charges_2_and_3_as_two_ions.mzML").read_bytes())
    summary = identify(files, [folder / "small.fasta"], tmp_path / "project", IdentificationParameters())
    (message,) = [text for text in summary.messages if "byte for byte" in text]
    assert message == f"{files[1]} is byte for byte the same as r1.mzML: its spectra would be counted twice. Give the file once"
    assert summary.counts()[0].number == 120
