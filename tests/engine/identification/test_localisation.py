"""Sites of simulated phosphopeptides: tables, record and Python API, whatever the number of threads."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from pyteomics import mass, parser

import proteoscope
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.searches import run_search
from tests.engine.simulation import Simulation, proteins_of
from tests.searching import identify, import_results

SAMPLES = Path(__file__).resolve().parents[3] / "resources" / "samples"
PHOSPHO = mass.calculate_mass(formula="HPO3")
CYSTEINE = mass.calculate_mass(formula="C2H3NO")
TABLES = ("psm_sites", "peptidoform_sites", "protein_sites")


@pytest.fixture(scope="module")
def proteins():
    return proteins_of(SAMPLES / "18Protein_SoCe_Tr_detergents_trace.fasta.gz")


@pytest.fixture(scope="module")
def searched(proteins, tmp_path_factory):
    """Return the folder of the inputs, and the sequence and phosphorylated sites of each spectrum by its title."""
    folder, random = tmp_path_factory.mktemp("localised"), np.random.default_rng(8)
    (folder / "proteins.fasta").write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in proteins.items()))
    peptides = sorted(
        {
            peptide
            for sequence in proteins.values()
            for peptide in parser.cleave(sequence, "trypsin", missed_cleavages=1, min_length=9)
            if len(peptide) <= 22 and set(peptide) <= set(mass.std_aa_mass) - set("UO") and sum(map(peptide.count, "STY")) >= 2
        }
    )
    simulation, truth = Simulation(3, 5, 8), {}
    for number, sequence in enumerate(random.choice(peptides, 90, replace=False).tolist()):
        possible = [i for i, residue in enumerate(sequence, 1) if residue in "STY"]
        sites = sorted(random.choice(possible, 2 if number % 5 == 0 and len(possible) > 1 else 1, replace=False).tolist())
        shifts = {i: CYSTEINE for i, residue in enumerate(sequence, 1) if residue == "C"} | dict.fromkeys(sites, PHOSPHO)
        simulation.add(sequence, 2 + number % 2, shifts)
        truth[f"known {len(simulation.entries) - 1}"] = sequence, sites
        simulation.add_noise(mass.calculate_mass(sequence) + 3.0, 2)
    simulation.write(folder / "spectra.mgf")
    return folder, truth


def search(searched, project, threads=2, preset="phospho", **changes):
    folder, _ = searched
    parameters = IdentificationParameters.checked(read_preset("identify", preset)).changed(**changes)
    identify([folder / "spectra.mgf"], [folder / "proteins.fasta"], project, parameters, threads=threads, advice="none")
    (results,) = (project / "results").iterdir()
    return {path.stem: parquet.read_table(path).to_pylist() for path in results.glob("*.parquet")}


def run_messages(project):
    return proteoscope.open_project(project).run().messages


@pytest.fixture(scope="module")
def tables(searched, tmp_path_factory):
    project = tmp_path_factory.mktemp("project")
    return project, search(searched, project)


def test_most_sites_are_correct_and_probabilities_add_up(searched, tables):
    _, truth = searched
    _, rows = tables
    right = rated = 0
    by_psm = {}
    for site in rows["psm_sites"]:
        psm = rows["psms"][site["psm"]]
        sequence, sites = truth[psm["spectrum_id"]]
        if psm["sequence"].replace("I", "L") != sequence.replace("I", "L"):
            continue
        assert site["residue"] == sequence[site["position"] - 1] and site["residue"] in "STY"
        assert site["has_alternative"] == (len(site["possible_positions"]) > len(sites))
        by_psm.setdefault(site["psm"], []).append(site["position"])
        number = psm["modification_names"].count("Phospho")
        assert sum(site["probabilities"]) == pytest.approx(number, abs=1e-4)
        assert max(site["probabilities"]) >= site["site_probability"] - 1e-9
        assert site["peptide"].count("[Phospho]") == number
        if site["has_alternative"]:
            rated += 1
            right += site["position"] in sites
    assert rated >= 60
    assert right >= 0.9 * rated
    for psm, positions in by_psm.items():
        assert len(positions) == rows["psms"][psm]["modification_names"].count("Phospho")


def test_protein_sites_table_has_one_row_per_residue(proteins, tables):
    _, rows = tables
    keys = [(row["protein"], row["position"], row["modification"]) for row in rows["protein_sites"]]
    assert len(keys) == len(set(keys)) >= 60
    counted = {}
    for site in rows["psm_sites"]:
        for protein, position in zip(site["proteins"], site["protein_positions"], strict=True):
            counted.setdefault((protein, position), set()).add(site["psm"])
    for row in rows["protein_sites"]:
        assert proteins[row["protein"]][row["position"] - 1] == row["residue"]
        if not row["is_decoy"]:
            assert row["residue"] in "STY"
            assert row["n_psms"] == len(counted.pop((row["protein"], row["position"])))
        else:
            assert row["residue"] in "AL"
        sequence, place = f"{7 * '_'}{proteins[row['protein']]}{7 * '_'}", row["position"]
        assert row["sequence_window"] == sequence[place - 1 : place + 14]
    assert not counted


def test_run_record_has_false_localisation_rates(tables):
    project, rows = tables
    record = json.loads((project / "run.json").read_text())["localisation"]
    (of_phospho,) = record
    assert of_phospho["modification"] == "Phospho"
    assert of_phospho["psms"] == len({site["psm"] for site in rows["psm_sites"]})
    assert any(text.startswith(f"Phospho: {of_phospho['accepted'][0]['sites']} peptide sites at 1 %") for text in run_messages(project))
    for level in of_phospho["accepted"]:
        accepted = [
            row
            for row in rows["peptidoform_sites"]
            if not row["is_decoy"] and (row["localisation_q_value"] or 0) <= level["false_localisation_rate"] and row["has_alternative"]
        ]
        assert level["sites"] == len(accepted) > 0
        assert level["by_alanine"] == pytest.approx(max(row["q_value_by_alanine"] for row in accepted), abs=1e-6)


def test_spectra_of_two_isomers_are_marked_and_others_are_not(searched, tables, tmp_path):
    folder, truth = searched
    _, rows = tables
    assert sum(site["mixed_with"] is not None for site in rows["psm_sites"]) <= 0.01 * len(rows["psm_sites"])
    first, second = Simulation(3, 5, 8), Simulation(4, 5, 8)
    wide = [(sequence, [sequence.index(x) + 1 for x in "ST"]) for sequence, _ in truth.values() if {"S", "T"} <= set(sequence)]
    wide = [(sequence, sites) for sequence, sites in wide if abs(sites[0] - sites[1]) >= 4]
    for sequence, sites in wide:
        for simulation, site in zip((first, second), sites, strict=True):
            shifts = {i: CYSTEINE for i, residue in enumerate(sequence, 1) if residue == "C"} | {site: PHOSPHO}
            simulation.add(sequence, 2, shifts)
    joined = [  # the peaks of both spectra, in the header of the first
        "\n".join(
            [
                *a.splitlines()[:4],
                *sorted(a.splitlines()[4:-1] + b.splitlines()[4:-1], key=lambda line: float(line.split()[0])),
                "END IONS\n",
            ]
        )
        for a, b in zip(first.entries, second.entries, strict=True)
    ]
    (tmp_path / "spectra.mgf").write_text("\n".join(joined) + (folder / "spectra.mgf").read_text().replace("TITLE=known", "TITLE=pure"))
    (tmp_path / "proteins.fasta").write_text((folder / "proteins.fasta").read_text())
    rows = search((tmp_path, None), tmp_path / "project")
    pairs = {f"known {number}": set(sites) for number, (_, sites) in enumerate(wide)}
    mixed = [site for site in rows["psm_sites"] if rows["psms"][site["psm"]]["spectrum_id"] in pairs]
    marked = [site for site in mixed if site["mixed_with"] is not None]
    assert len(mixed) >= 15 and len(marked) >= 0.5 * len(mixed)
    right = [{site["position"], site["mixed_with"]} == pairs[rows["psms"][site["psm"]]["spectrum_id"]] for site in marked]
    assert sum(right) >= 0.7 * len(right)
    every = sum(site["mixed_with"] is not None for site in rows["psm_sites"])
    assert sum(site["n_mixed"] for site in rows["peptidoform_sites"]) == every
    assert all(site["n_mixed"] <= site["n_psms"] for name in TABLES[1:] for site in rows[name])


def test_site_tables_do_not_depend_on_threads(searched, tables, tmp_path):
    project, _ = tables
    search(searched, tmp_path, threads=1)
    for name in TABLES:
        first, second = (next((folder / "results").glob(f"*/{name}.parquet")) for folder in (project, tmp_path))
        assert parquet.read_table(first).equals(parquet.read_table(second))
        assert first.read_bytes() == second.read_bytes()


def test_search_localises_only_the_requested_modifications(searched, tmp_path):
    assert TABLES[0] not in search(searched, tmp_path / "off", localise="none")
    rows = search(searched, tmp_path / "oxidation", preset="high-resolution", second_pass=True)
    assert not set(TABLES) & rows.keys(), "only the second pass searches deamidation"


def test_ubiquitin_is_never_localised_to_the_last_residue(proteins, searched, tmp_path):
    folder, _ = searched
    remnant, random = mass.calculate_mass(formula="C4H6N2O2"), np.random.default_rng(5)
    ends = {sequence[-12:] for sequence in proteins.values()}
    peptides = sorted(
        {
            peptide
            for sequence in proteins.values()
            for peptide in parser.cleave(sequence, "trypsin", missed_cleavages=1, min_length=9)
            if len(peptide) <= 22 and set(peptide) <= set(mass.std_aa_mass) - set("CUO") and "K" in peptide[1:-1] and peptide[-1] == "K"
            if not any(end.endswith(peptide[-8:]) for end in ends)
        }
    )
    simulation, truth = Simulation(5, 5, 8), {}
    for sequence in random.choice(peptides, 40, replace=False).tolist():
        site = int(random.choice([i for i, residue in enumerate(sequence[:-1], 1) if residue == "K"]))
        truth[f"known {len(simulation.entries)}"] = sequence, site
        simulation.add(sequence, 2, {site: remnant})
        simulation.add_noise(mass.calculate_mass(sequence) + 3.0, 2)
    (tmp_path / "inputs").mkdir()
    simulation.write(tmp_path / "inputs" / "spectra.mgf")
    (tmp_path / "inputs" / "proteins.fasta").write_text((folder / "proteins.fasta").read_text())
    rows = search((tmp_path / "inputs", None), tmp_path / "project", preset="ubiquitin")
    modified = [psm for psm in rows["psms"] if "GG" in psm["modification_names"] and psm["rank"] == 1]
    for psm in modified:
        places = zip(psm["modification_names"], psm["modification_positions"], strict=True)
        at_end = any(name == "GG" and position == len(psm["sequence"]) for name, position in places)
        assert not at_end or "-" in psm["residues_after"], "only at the end of a protein"
    assert sum(psm["sequence"] == truth.get(psm["spectrum_id"], ("",))[0] for psm in modified) >= 30
    of_gg = [site for site in rows["psm_sites"] if site["modification"] == "GG"]
    right = sum(site["position"] == truth.get(rows["psms"][site["psm"]]["spectrum_id"], ("", 0))[1] for site in of_gg)
    assert len(of_gg) >= 30 and right >= 0.9 * len(of_gg)
    assert all(len(rows["psms"][site["psm"]]["sequence"]) not in site["possible_positions"] for site in of_gg)


def test_python_api_sites_are_accepted_or_without_alternative(tables):
    project, rows = tables
    result = proteoscope.open_project(project).run()
    assert {*TABLES} <= {*result.tables}
    sites = result.sites(maximum_flr=0.05).to_pylist()
    expected = [
        row
        for row in rows["protein_sites"]
        if not row["is_decoy"]
        and (not row["has_alternative"] or (row["localisation_q_value"] is not None and row["localisation_q_value"] <= 0.05))
    ]
    assert sites == expected
    assert 0 < len(result.sites(maximum_flr=0.0)) < len(rows["protein_sites"])


def test_site_tables_are_exported_if_the_run_has_sites(searched, tables, tmp_path):
    project, rows = tables
    result = proteoscope.open_project(project).run()
    written = {path.name: path for path in result.export(tmp_path / "all", format="tsv")}
    targets = {path.name: path for path in result.export(tmp_path / "accepted", format="tsv", accepted_only=True)}
    for name in TABLES:
        lines, without_decoys = (files[f"{name}.tsv"].read_text().splitlines() for files in (written, targets))
        assert len(lines) == 1 + len(rows[name])
        assert len(without_decoys) == 1 + sum(not row.get("is_decoy") for row in rows[name])
    assert lines[0].split("\t")[:4] == ["protein", "position", "residue", "modification"]
    search(searched, tmp_path / "off", localise="none")
    (tmp_path / "none").mkdir()
    written = proteoscope.open_project(tmp_path / "off").run().export(tmp_path / "none", format="tsv")
    assert sorted(path.name for path in written) == ["peptides.tsv", "proteins.tsv", "psms.tsv"]


def test_python_api_rejects_sites_of_run_without_localisation(searched, tmp_path):
    search(searched, tmp_path, localise="none")
    with pytest.raises(ParameterError, match="no table 'protein_sites'"):
        proteoscope.open_project(tmp_path).run().sites()


def test_site_peptides_leave_fixed_modifications_of_equal_name(tmp_path):
    """A fixed modification stays where it is, also if a variable one of the same name is localised."""
    simulation, random = Simulation(3, 5, 8), np.random.default_rng(5)
    methyl, sequence = mass.calculate_mass(formula="CH2"), "GASDECVTDMSFLNETHAAEYVLR"
    proteins = {"one": sequence + "AAAWQGEDIVK", "two": "".join(random.choice(list("ADEFGHILNPSTVYK"), 300))}
    (tmp_path / "proteins.fasta").write_text("".join(f">{name}\n{text}\n" for name, text in proteins.items()))
    for site in (4, 5, 15, 4, 5, 15):
        simulation.add(sequence, 2, {6: methyl, site: methyl})
    simulation.write(tmp_path / "spectra.mgf")
    changes = {"fixed_modifications": ("Methyl (C)",), "variable_modifications": ("Methyl (DE)",), "decoys": "none", "second_pass": False}
    rows = search((tmp_path, None), tmp_path / "project", preset="high-resolution", **changes)
    assert len(rows["psm_sites"]) >= 4
    for site in rows["psm_sites"]:
        assert site["peptide"].count("[Methyl]") == 2 and "C[Methyl]" in site["peptide"]
        assert site["peptide"][: site["peptide"].index("C[Methyl]") + 1].replace("[Methyl]", "") == sequence[:6]


def test_imported_matches_have_the_same_sites_as_the_search(searched, tables, tmp_path):
    """Matches that are exported and imported again get the same sites as in the search that found them."""
    folder, _ = searched
    project, rows = tables
    proteoscope.open_project(project).run().export(tmp_path / "found.mzid")
    import_results([tmp_path / "found.mzid"], [folder / "spectra.mgf"], tmp_path / "project", [folder / "proteins.fasta"])
    (results,) = (tmp_path / "project" / "results").iterdir()
    psms, sites, of_proteins = (
        parquet.read_table(results / f"{name}.parquet").to_pylist() for name in ("psms", "psm_sites", "protein_sites")
    )

    def by_spectrum(psms, sites):
        result = {}
        for site in sites:
            result.setdefault(psms[site["psm"]]["spectrum_index"], {})[site["position"]] = site
        return result

    searched_sites, imported_sites = by_spectrum(rows["psms"], rows["psm_sites"]), by_spectrum(psms, sites)
    assert imported_sites.keys() == searched_sites.keys()
    equal = [spectrum for spectrum, of_spectrum in searched_sites.items() if imported_sites[spectrum].keys() == of_spectrum.keys()]
    assert len(equal) >= 0.95 * len(searched_sites)
    differences = []
    for spectrum in equal:
        for position, site in searched_sites[spectrum].items():
            other = imported_sites[spectrum][position]
            assert (other["modification"], other["residue"]) == ("Phospho", site["residue"])
            assert other["possible_positions"] == site["possible_positions"] and other["has_alternative"] == site["has_alternative"]
            assert sorted(zip(other["proteins"], other["protein_positions"], strict=True)) == sorted(
                zip(site["proteins"], site["protein_positions"], strict=True)
            )
            differences.append(abs(other["site_probability"] - site["site_probability"]))
    assert np.mean(differences) < 0.02
    assert {site["sequence_window"] for site in of_proteins if not site["is_decoy"]} & {
        site["sequence_window"] for site in rows["protein_sites"]
    }
    (record,) = json.loads((tmp_path / "project" / "run.json").read_text())["localisation"]
    assert record["psms"] == len(imported_sites)


def test_imported_matches_are_not_localised_without_a_database(searched, tables, tmp_path):
    folder, _ = searched
    proteoscope.open_project(tables[0]).run().export(tmp_path / "found.mzid")
    import_results([tmp_path / "found.mzid"], [folder / "spectra.mgf"], tmp_path / "project")
    (results,) = (tmp_path / "project" / "results").iterdir()
    assert not (results / "psm_sites.parquet").exists()
    assert any("not localised without the database" in text for text in run_messages(tmp_path / "project"))


def test_library_search_localises_modifications_of_its_matches(searched, tables, tmp_path, monkeypatch):
    folder, truth = searched
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    proteoscope.open_project(tables[0]).run().export(tmp_path / "library.msp")
    inputs = {"spectra": [folder / "spectra.mgf"], "library": [tmp_path / "library.msp"], "database": [folder / "proteins.fasta"]}
    run_search("library", inputs, project=tmp_path / "project", device="cpu", threads=2, fragment_tolerance="20 ppm")
    (results,) = (tmp_path / "project" / "results").iterdir()
    psms, sites = (parquet.read_table(results / f"{name}.parquet").to_pylist() for name in ("psms", "psm_sites"))
    right = []
    for site in sites:
        sequence, planted = truth[psms[site["psm"]]["spectrum_id"]]
        assert site["modification"] == "Phospho" and site["proteins"]
        if site["has_alternative"] and site["peptide"].replace("[Phospho]", "").replace("[Carbamidomethyl]", "") == sequence:
            right.append(site["position"] in planted)
    assert len(right) > 40 and np.mean(right) > 0.85
    assert json.loads((tmp_path / "project" / "run.json").read_text())["localisation"][0]["psms"] == len({site["psm"] for site in sites})
