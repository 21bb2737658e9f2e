"""Searches for modified peptides from files to tables, on spectra with known peptides and modifications.

The spectra are simulated: unmodified peptides, peptides with an unnamed modification, and noise.
"""

import csv
import gzip
import json
from pathlib import Path, PurePath

import numpy as np
import pyarrow.parquet as pq
import pytest
from lxml import etree
from pyteomics import mzid, parser, pepxml

from proteoscope.engine.chemistry.modifications import unimod, write_mass
from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.matches.pass_records import passes_of_run
from proteoscope.engine.modified_search import error_rates
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters, shift_range
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project import Project
from tests.engine.formats.entry_files import swiss_prot_entry
from tests.engine.identification.test_databases import CODONS
from tests.engine.matches.writers.test_mzidentml import LEFT_OPEN
from tests.engine.simulation import Simulation, proteins_of
from tests.searching import find_modified

REPOSITORY = Path(__file__).resolve().parents[3]
SAMPLE = REPOSITORY / "resources" / "samples" / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"
SHIFTS = (("Oxidation", "M"), ("Phospho", "STY"), ("Acetyl", "K"), ("Deamidated", "N"), ("GG", "K"), ("Methyl", "DE"))
N_PLAIN, N_SHIFTED, N_NOISE = 60, 120, 60
RESIDUES = set("ADEFGHIKLMNPQRSTVWY")


class Made:
    """Spectra, proteins, and the planted sequence, name and site by title of the spectrum."""

    def __init__(self, folder):
        proteins = proteins_of(SAMPLE)
        self.database = folder / "proteins.fasta"
        self.database.write_text("".join(f">{name} a protein\n{sequence}\n" for name, sequence in proteins.items()))
        every = {peptide for protein in proteins.values() for peptide in parser.cleave(protein, "trypsin")}
        peptides = sorted(peptide for peptide in every if 9 <= len(peptide) <= 20 and set(peptide) <= RESIDUES)
        random = np.random.default_rng(5)
        chosen = random.permutation(peptides).tolist()
        made = Simulation(5, 4, 8)
        for sequence in chosen[:N_PLAIN]:
            made.add(sequence, int(random.integers(2, 4)))
        self.planted = {}
        for number, sequence in enumerate(chosen[N_PLAIN:]):
            name, residues = SHIFTS[number % len(SHIFTS)]
            sites = [k + 1 for k, residue in enumerate(sequence) if residue in residues]
            if not sites or len(self.planted) == N_SHIFTED:
                continue
            site = int(random.choice(sites))
            title = f"known {len(made.entries)}"
            made.add(sequence, int(random.integers(2, 4)), {site: unimod().by_name(name).mass})
            self.planted[title] = sequence, name, site
        for _ in range(N_NOISE):
            made.add_noise(float(random.uniform(900, 2200)), 2)
        self.plain = {title: peptide for title, peptide in made.known.items() if title not in self.planted}
        self.spectra = made.write(folder / "spectra.mgf")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("modified"))


@pytest.fixture(scope="module")
def project(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("found") / "p"
    find_modified([made.spectra], [made.database], folder, ModifiedSearchParameters(), device="cpu", threads=2)
    return folder


def rows_of(project, name="psms"):
    with (project / "exports" / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def accepted(rows):
    return [row for row in rows if row["rank"] == "1" and row["is_decoy"] == "false" and float(row["q_value"] or "nan") <= 0.01]


def test_modified_search_names_and_localises_modifications(made, project):
    rows = {row["spectrum_id"]: row for row in accepted(rows_of(project))}
    right = {title: rows[title] for title, (sequence, *_) in made.planted.items() if rows.get(title, {}).get("sequence") == sequence}
    assert len(right) >= 0.9 * len(made.planted)
    named = [title for title, row in right.items() if row["modification"] == made.planted[title][1]]
    sited = [title for title, row in right.items() if int(row["shift_position"]) == made.planted[title][2]]
    assert len(named) >= 0.85 * len(right) and len(sited) >= 0.85 * len(right)
    for title, row in right.items():
        assert float(row["mass_shift"]) == pytest.approx(unimod().by_name(made.planted[title][1]).mass, abs=0.02)
    wrong = [row for row in rows.values() if row["spectrum_id"].startswith("noise")]
    assert len(wrong) <= 7  # Each group is accepted down to about its first decoy.


def test_modified_search_gives_unmodified_peptides_no_mass_shift(made, project):
    rows = {row["spectrum_id"]: row for row in accepted(rows_of(project))}
    plain = [title for title, sequence in made.plain.items() if rows.get(title, {}).get("sequence") == sequence]
    assert len(plain) >= 0.9 * len(made.plain)
    retained = [title for title in plain if rows[title]["shift_kind"] == "none" and not rows[title]["modification"]]
    assert len(retained) >= 0.95 * len(plain)
    # Error rates of peptides are estimated in the same groups, from the same tails.
    peptides = {row["sequence"] for row in rows_of(project, "peptides") if float(row["q_value"] or 1) <= 0.01}
    assert len({rows[title]["sequence"] for title in plain} & peptides) >= 0.9 * len(plain)


def test_modified_search_localises_named_shifts(made, project):
    (results,) = (project / "results").iterdir()
    psms, sites, peptidoforms = (
        pq.read_table(results / f"{name}.parquet").to_pylist() for name in ("psms", "psm_sites", "peptidoform_sites")
    )
    right, wrong = 0, 0
    for site in sites:
        psm = psms[site["psm"]]
        usual = dict(SHIFTS).get(site["modification"], "")
        assert psm["rank"] == 1 and not psm["is_decoy"] and psm["q_value"] <= 0.01
        assert psm["modification"] == site["modification"] and f"[{site['modification']}]" in site["peptide"]
        assert sum(site["probabilities"]) == pytest.approx(1, abs=1e-4)
        residues = {psm["sequence"][at - 1] for at in site["possible_positions"] if 0 < at <= len(psm["sequence"])}
        assert set(usual) & set(psm["sequence"]) <= residues
        sequence, name, position = made.planted.get(psm["spectrum_id"], ("", "", 0))
        if site["has_alternative"] and (sequence, name) == (psm["sequence"], site["modification"]):
            right, wrong = right + (site["position"] == position), wrong + (site["position"] != position)
    assert {site["modification"] for site in sites} >= {"Phospho", "Acetyl", "Deamidated", "Methyl"}
    assert right >= 40 and wrong <= 0.1 * right
    assert all(row["residue"] in "AL" for row in peptidoforms if row["is_decoy"])
    named = {row["psm_id"] for row in psms if row["modification"] == "Phospho" and row["rank"] == 1 and (row["q_value"] or 1) <= 0.01}
    assert {row for row in named if not psms[row]["is_decoy"]} == {site["psm"] for site in sites if site["modification"] == "Phospho"}
    record = {entry["modification"]: entry for entry in json.loads((project / "run.json").read_text())["localisation"]}
    assert record["Phospho"]["psms"] == len({site["psm"] for site in sites if site["modification"] == "Phospho"})


def test_modifications_table_counts_the_psms(project):
    rows = accepted(rows_of(project))
    table = {row["name"]: row for row in rows_of(project, "modifications")}
    assert next(iter(table)) in dict(SHIFTS) and set(dict(SHIFTS)) <= set(table)
    for name in dict(SHIFTS):
        of_name = [row for row in rows if row["modification"] == name]
        assert int(table[name]["psms"]) == len(of_name)
        assert int(table[name]["peptides"]) == len({row["sequence"] for row in of_name})
    counts = json.loads((project / "run.json").read_text())["counts"]
    assert counts["psms"] == len(rows) == sum(counts[kind] for kind in ("plain", "named", "ends", "unnamed"))


def test_possible_names_start_with_the_selected_name(project):
    rows = [row for row in rows_of(project) if row["shift_kind"] != "none"]
    for row in rows:
        leading = row["possible_names"].split("; ")[0].split(" or ")[0]
        is_named = not row["modification"].startswith(("+", "-"))
        assert leading == (f"{row['modification']} ({float(row['carried_mass']):+.4f})" if is_named else "")
    phosphates = [row for row in rows if row["modification"] == "Phospho" and row["site"][0] in "STY"]
    for row in phosphates:
        error = abs(float(row["mass_shift"]) - unimod().by_name("Sulfo").mass) - 10e-6 * float(row["observed_mass"])
        assert abs(error) < 1e-4 or ("Phospho (+79.9663) or Sulfo (+79.9568)" in row["possible_names"]) == (error < 0)
    assert any(" or " in row["possible_names"] for row in phosphates)
    assert all(not row["possible_names"] for row in rows_of(project) if row["shift_kind"] == "none")


def test_modified_peptide_proforma_has_name_or_mass(project):
    for row in rows_of(project):
        assert parse(row["peptide"]).mass == pytest.approx(float(row["calculated_mass"]), abs=1e-3)
        if row["modification"] in unimod():
            assert f"[{row['modification']}]" in row["peptide"]
        elif row["modification"]:
            assert f"[{write_mass(float(row['carried_mass']))}]" in row["peptide"]


def test_modified_search_tables_are_equal_on_any_threads(made, project, tmp_path):
    find_modified([made.spectra], [made.database], tmp_path / "p", ModifiedSearchParameters(), device="cpu", threads=1)
    for name in ("psms", "peptides", "proteins", "modifications"):
        first, second = (folder / "exports" / f"{name}.tsv" for folder in (project, tmp_path / "p"))
        assert first.read_bytes() == second.read_bytes()


def test_modified_search_tables_are_equal_for_a_split_index(made, project, tmp_path, monkeypatch):
    monkeypatch.setattr("proteoscope.engine.modified_search.passes._MB", 20_000)
    find_modified([made.spectra], [made.database], tmp_path / "p", ModifiedSearchParameters(index_memory=64), device="cpu", threads=2)
    assert (tmp_path / "p" / "exports" / "psms.tsv").read_bytes() == (project / "exports" / "psms.tsv").read_bytes()


@pytest.mark.filterwarnings(*LEFT_OPEN)
def test_exported_mass_shift_is_read_as_mass_difference(project, tmp_path):
    for name, target in (("pepxml", tmp_path / "x.pep.xml"), ("mzid", tmp_path / "x.mzid"), ("pin", tmp_path / "x.pin")):
        assert main(["export", str(project), "--format", name, "--out", str(target)]) == 0
    assert main(["export", str(project), "--format", "tsv", "--out", str(tmp_path / "tables")]) == 0
    for name in ("psms", "peptides", "proteins", "modifications"):
        assert (tmp_path / "tables" / f"{name}.tsv").read_bytes() == (project / "exports" / f"{name}.tsv").read_bytes()
    rows = {(row["spectrum_id"], row["charge"]): row for row in rows_of(project)}
    with pepxml.read(str(tmp_path / "x.pep.xml")) as reader:
        for query in reader:
            (hit,) = query["search_hit"]
            row = rows[query["spectrumNativeID"], str(query["assumed_charge"])]
            bare = float(row["calculated_mass"]) - float(row["carried_mass"])
            assert hit["calc_neutral_pep_mass"] == pytest.approx(bare, abs=1e-5)
            assert hit["massdiff"] == pytest.approx(float(row["observed_mass"]) - bare, abs=1e-5)
            assert len(hit["modifications"]) == row["sequence"].count("C")  # These are the fixed modifications.
    carrying = 0
    with mzid.read(str(tmp_path / "x.mzid"), retrieve_refs=True) as reader:
        for result in reader:
            (item,) = result["SpectrumIdentificationItem"]
            carrying += len(item.get("Modification", []))
    assert carrying == sum((row["modification"] != "") + row["sequence"].count("C") for row in rows.values())


def test_unidentified_spectra_of_a_project_are_searched(made, tmp_path):
    command = ["identify", str(made.spectra), "--database", str(made.database), "--out", str(tmp_path / "first"), "--quiet"]
    assert main([*command, "--device", "cpu", "--set", "variable_modifications="]) == 0
    out = tmp_path / "second"
    assert main(["modified", "--from-project", str(tmp_path / "first"), "--out", str(out), "--quiet", "--device", "cpu"]) == 0
    identified = {row["spectrum_id"] for row in accepted(rows_of(tmp_path / "first"))}
    rows = rows_of(out)
    assert identified and not identified & {row["spectrum_id"] for row in rows}
    right = [row for row in accepted(rows) if made.planted.get(row["spectrum_id"], ("",))[0] == row["sequence"]]
    proteins = Path(Project.open(tmp_path / "first").folder) / "exports" / "proteins.tsv"
    assert proteins.is_file() and len(right) >= 2  # These are peptides of the identified proteins.
    record = json.loads((out / "run.json").read_text())
    assert record["source_run"] == Project.open(tmp_path / "first").runs()[0].id
    assert record["counts"]["spectra"] == N_PLAIN + len(made.planted) + N_NOISE
    (done,) = passes_of_run(Project.open(out), "modified-0001")
    assert (done.proteins, done.source_run, done.mass_shift) == ("found", record["source_run"], (-150.0, 500.0))
    assert [PurePath(name).name for name in (*done.databases, *done.spectra)] == [made.database.name, made.spectra.name]
    assert done.n_spectra == record["counts"]["searched"] and done.n_proteins == record["counts"]["proteins_in_database"]
    assert main(["export", str(out), "--format", "mzid", "--out", str(tmp_path / "left.mzid")]) == 0
    root = etree.parse(tmp_path / "left.mzid").getroot()
    locations = [element.get("location") for name in ("SearchDatabase", "SpectraData") for element in root.iterfind(f".//{{*}}{name}")]
    assert [PurePath(location).name for location in locations] == [made.database.name, made.spectra.name]
    assert root.find(".//{*}DatabaseFilters") is not None
    # With a database, all of it is searched.
    again = tmp_path / "third"
    command = ["modified", "--from-project", str(tmp_path / "first"), "--database", str(made.database), "--out", str(again), "--quiet"]
    assert main([*command, "--run", record["source_run"], "--device", "cpu"]) == 0
    wide = [row for row in accepted(rows_of(again)) if made.planted.get(row["spectrum_id"], ("",))[0] == row["sequence"]]
    assert len(wide) >= 0.8 * len(made.planted)


def test_published_preset_ranks_by_matching_masses_only(made, tmp_path):
    parameters = ModifiedSearchParameters.checked(read_preset("modified", "published"))
    find_modified([made.spectra], [made.database], tmp_path / "p", parameters, device="cpu", threads=2)
    rows = [row for row in rows_of(tmp_path / "p") if row["rank"] == "1"]
    assert all(float(row["score"]) == int(float(row["score"])) for row in rows)
    expected = {**made.plain, **{title: peptide[0] for title, peptide in made.planted.items()}}
    right = [row for row in rows if expected.get(row["spectrum_id"]) == row["sequence"]]
    assert len(right) >= 0.5 * len(expected)
    oxidised = [row for row in right if row["modification"] == "Oxidation"]
    assert oxidised and {row["shift_kind"] for row in oxidised} == {"named"}


def test_peptide_and_its_decoy_are_rescored_in_the_same_fold(made, tmp_path, monkeypatch):
    """Check the numbers that split training and scoring: one for each sequence (I = L) together with its decoy."""
    numbers = {}

    def collected(matches, peptides, proteins, variable):
        psms = collect_psms(matches, peptides, proteins, variable)
        rows = zip(psms.position.tolist(), (psms.position + psms.length).tolist(), strict=True)
        sequences = [bytes(proteins.proteins.residues[start:stop]).replace(b"I", b"L").decode() for start, stop in rows]
        numbers["sequence"] = [
            min(sequence, sequence[-2::-1] + sequence[-1]) if sequence[-1] in "KR" else sequence for sequence in sequences
        ]
        return psms

    def rescored(features, is_decoy, peptide, *others):
        numbers["number"] = peptide.tolist()
        return rescore(features, is_decoy, peptide, *others)

    collect_psms, rescore = error_rates.collect_psms, error_rates.rescore
    monkeypatch.setattr(error_rates, "collect_psms", collected)
    monkeypatch.setattr(error_rates, "rescore", rescored)
    find_modified([made.spectra], [made.database], tmp_path / "p", ModifiedSearchParameters(), device="cpu", threads=2)
    pairs = set(zip(numbers["sequence"], numbers["number"], strict=True))
    n_sequences = len(set(numbers["sequence"]))
    assert n_sequences < len(numbers["number"])  # Some have several matches.
    assert len(pairs) == n_sequences


def cancelled_search(made, folder, stage):
    progress = Progress(lambda event: event.stage == stage and progress.cancel())
    find_modified([made.spectra], [made.database], folder, ModifiedSearchParameters(), device="cpu", progress=progress)


def test_cancelled_modified_search_leaves_no_files(made, tmp_path):
    for stage in ("Counting matches", "Placing mass shifts", "Writing results"):
        with pytest.raises(Cancelled):
            cancelled_search(made, tmp_path / "p", stage)
    assert all(run.status != "done" for run in Project.open(tmp_path / "p").runs())
    assert not (tmp_path / "p" / "exports").exists()


def test_modified_search_rejects_unsearchable_input(made, tmp_path):
    search = {"device": "cpu", "threads": 1}
    with pytest.raises(ParameterError, match="spectra"):
        find_modified([], [made.database], tmp_path / "p", ModifiedSearchParameters(), **search)
    with pytest.raises(ParameterError, match="database"):
        find_modified([made.spectra], [], tmp_path / "p", ModifiedSearchParameters(), **search)
    with pytest.raises(ParameterError, match="given twice"):
        find_modified([made.spectra], [], tmp_path / "p", ModifiedSearchParameters(), from_project=tmp_path, **search)
    with pytest.raises(ParameterError, match="--from-project"):
        find_modified([made.spectra], [made.database], tmp_path / "p", ModifiedSearchParameters(), run="x", **search)
    with pytest.raises(InputError):
        find_modified([], [], tmp_path / "p", ModifiedSearchParameters(), from_project=tmp_path / "none", **search)
    empty = tmp_path / "empty.mgf"
    empty.write_text("BEGIN IONS\nTITLE=a\nPEPMASS=500\nCHARGE=2+\n100.1 1\nEND IONS\n")
    with pytest.raises(InputError, match="none of the 1 spectra"):
        find_modified([empty], [made.database], tmp_path / "q", ModifiedSearchParameters(), **search)


@pytest.mark.parametrize("text", ["", "x", "5", "5..", "500..-150", "-1e9..5", "nan..5", "0..inf", "1...2..3"])
def test_modified_search_rejects_empty_range_of_mass_shifts(text):
    with pytest.raises(ParameterError):
        shift_range(text)
    with pytest.raises(ParameterError):
        ModifiedSearchParameters().changed(mass_shift=text)


def test_modified_search_without_decoys_has_no_q_values(made, tmp_path):
    parameters = ModifiedSearchParameters(decoys="none")
    summary = find_modified([made.spectra], [made.database], tmp_path / "p", parameters, device="cpu", threads=2)
    rows = rows_of(tmp_path / "p")
    assert summary.n_psms == len(rows) and {row["q_value"] for row in rows} == {""}
    assert len(rows_of(tmp_path / "p", "modifications")) > 0


def test_modified_search_accepts_gzipped_spectra(made, tmp_path):
    packed = tmp_path / "spectra.mgf.gz"
    packed.write_bytes(gzip.compress(made.spectra.read_bytes()))
    out = tmp_path / "p"
    command = [
        "modified",
        str(packed),
        "--database",
        str(made.database),
        "--out",
        str(out),
        "--mass-shift=10..20",
        "--hits-per-spectrum",
        "2",
        "--json",
    ]
    assert main([*command, "--device", "cpu"]) == 0
    rows = rows_of(out)
    assert {row["rank"] for row in rows} == {"1", "2"}
    shifts = [float(row["mass_shift"]) for row in rows if row["shift_kind"] != "none"]
    assert shifts and min(shifts) > 9.9 and max(shifts) < 20.1


def test_modified_search_stores_features_of_found_proteins(made, tmp_path):
    entries = list(proteins_of(SAMPLE).items())
    feature = 'FT   DOMAIN          2..30\nFT                   /note="First"\n'
    text = "".join(swiss_prot_entry(f"A0A{i:07d}", f"P{i}_X", sequence, feature) for i, (_, sequence) in enumerate(entries))
    (tmp_path / "same.dat").write_text(text)
    parameters = ModifiedSearchParameters()
    summary = find_modified([made.spectra], [tmp_path / "same.dat"], tmp_path / "project", parameters, threads=2)
    features = pq.read_table(Project.open(tmp_path / "project").table("features", summary.run_id)).to_pylist()
    assert features and {(row["kind"], row["first"], row["last"], row["description"]) for row in features} == {("domain", 2, 30, "First")}


def test_modified_search_translates_nucleotide_database(made, tmp_path):
    genes = ["".join(CODONS[residue] for residue in protein if residue in CODONS) for protein in proteins_of(SAMPLE).values()]
    (tmp_path / "genome.fasta").write_text(">one\nAC" + "TAA".join(genes[:400]) + "TAA\n")
    parameters = ModifiedSearchParameters(translation="forward", minimum_frame=20)
    summary = find_modified([made.spectra], [tmp_path / "genome.fasta"], tmp_path / "project", parameters, threads=2)
    frames = pq.read_table(Project.open(tmp_path / "project").table("reading_frames", summary.run_id)).to_pylist()
    assert frames and all(row["accession"] == f"one:{row['first']}-{row['last']}(+)" for row in frames)
    assert main(["export", str(tmp_path / "project"), "--format", "bed", "--out", str(tmp_path / "places.bed")]) == 0
    lines = [line.split("\t") for line in (tmp_path / "places.bed").read_text().splitlines()]
    assert lines and all(line[0] == "one" and line[5] == "+" for line in lines)


def test_project_without_unidentified_spectra_is_rejected(made, tmp_path, monkeypatch, capsys):
    command = ["identify", str(made.spectra), "--database", str(made.database), "--out", str(tmp_path / "first"), "--quiet"]
    assert main([*command, "--device", "cpu", "--set", "variable_modifications="]) == 0
    monkeypatch.setattr("proteoscope.engine.modified_search.search.identified_spectra", lambda psms, n, fdr: range(n))
    out = tmp_path / "second"
    assert main(["modified", "--from-project", str(tmp_path / "first"), "--out", str(out), "--quiet", "--device", "cpu"]) == 2
    assert "run 'identify-0001' identified all of its" in capsys.readouterr().err
