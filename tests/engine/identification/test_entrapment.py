"""Real error rates at 1 % FDR: searches of databases that are mostly foreign to the sample, and of spectra with known peptides."""

import csv
import math
import re
import shutil

import numpy as np
import pytest

from benchmarks.entrapment_databases import paired_databases, write_fasta
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches import rescoring, tables
from proteoscope.engine.parameters import read_preset
from tests.searching import identify

SETS = {
    # name: spectra, proteome of the sample, preset
    "Shewanella": (
        ["spectra/qc_shew_qe/QC_Shew_18_02_Excerpt.mzXML"],
        "spectra/qc_shew_qe/Shewanella_oneidensis_MR1_2010-04-22_Tryp_Pig_Bov.fasta",
        "high-resolution",
    ),
    "yeast": (["spectra/SmallCalibratible_Yeast.mzML"], "proteomes/yeast_2021_04_reviewed_UPS.fasta", "high-resolution"),
    "human": (
        ["spectra/hela_velos/TaGe_SA_HeLa_04_subset_longestSeq.mzML", "spectra/hela_velos/TaGe_SA_A549_3_snip.mzML"],
        "proteomes/human.small.comet.fasta",
        "high-resolution",
    ),
    "E. coli": (["spectra/Ecoli_MS2_small.mzML"], "proteomes/ecoli_13spiked_2021_04.fasta", "low-resolution"),
}
CONTAMINANT = re.compile(r"TRYP|TRY\d_|K[12]C|KRT|KRHB|KR[AB]|ALBU_|ALBO_|CAS[123AKB]+_|LYSC_", re.IGNORECASE)
"""Proteins common in all samples: trypsin, keratins, albumins, caseins, lysozyme."""
N_FOLDS = 5


@pytest.fixture(autouse=True)
def without_advice(monkeypatch):
    """Skip the advice on runs with few identifications: it changes no result and would take most of the time here."""
    monkeypatch.setattr("proteoscope.engine.identification.advice.explain_low_yield", lambda *_: None)


def proteins_of(path):
    sequences = {}
    for entry in path.read_text().split(">")[1:]:
        header, *lines = entry.split("\n")
        sequences[header.split()[0]] = "".join(lines).strip().rstrip("*").upper()
    return sequences


def accepted(spectra, database, folder, preset):
    parameters = IdentificationParameters.checked(read_preset("identify", preset))
    identify(spectra, [database], folder, parameters, threads=2)
    with (folder / "exports" / "psms.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [row for row in rows if row["is_decoy"] == "false" and float(row["q_value"] or "nan") <= 0.01]


def most_by_chance(expected):
    """Return the number that a Poisson variable of this mean exceeds in less than 1 of 100 cases."""
    most, below = 0, math.exp(-expected)
    while below < 0.99:
        most += 1
        below += math.exp(-expected) * expected**most / math.factorial(most)
    return most


def test_few_foreign_peptides_are_accepted_at_1_percent_fdr(shared_data, known_peptides, tmp_path):
    """Foreign peptides are few among the matches at 1 % FDR of all four samples, searched in five proteomes and the known peptides.

    The known peptides of another test are included so that both tests share one index.
        At most 1.5 % are foreign, with a margin for chance: the number that a Poisson variable of that mean reaches in 99 of 100 cases. A
        peptide is foreign when no protein of the sample and no contaminant contains it (I = L).
    """
    _, database, added = known_peptides
    eighteen = proteins_of(shared_data / "proteomes" / "18Protein_SoCe_Tr_detergents_trace.fasta")
    everything = proteins_of(database)
    harmless = [sequence for name, sequence in everything.items() if CONTAMINANT.search(name)]
    # That file contains a proteome, the proteins of the standard and contaminants.
    harmless += [sequence for name, sequence in eighteen.items() if "_SORC5" not in name]
    harmless += set(added.values())
    n_accepted = foreign = 0
    for spectra, proteome, preset in SETS.values():
        rows = accepted([shared_data / name for name in spectra], database, tmp_path / "project", preset)
        explained = " ".join([*proteins_of(shared_data / proteome).values(), *harmless]).replace("I", "L")
        n_accepted += len(rows)
        foreign += sum(row["sequence"].replace("I", "L") not in explained for row in rows)
    assert n_accepted > 400
    assert foreign <= most_by_chance(0.015 * n_accepted), f"{foreign} of {n_accepted}"


@pytest.fixture
def seen_copies(monkeypatch):
    """Return a list with the number, for each model, of scored matches that have a copy in its training data."""
    rescoring_features, learn, score = tables.rescoring_features, rescoring._learn, rescoring.score_matches
    numbers, learnt_from, counts = {}, {}, []

    def numbered(psms, systematic):
        matches = np.column_stack((psms.observed_mass, psms.calculated_mass, psms.position, psms.score))
        number = [numbers.setdefault(match, len(numbers)) for match in map(tuple, matches.tolist())]
        return {"match": np.array(number, np.float64), **rescoring_features(psms, systematic)}

    def learning(table, is_decoy, is_seen, settings, model):
        learn(table, is_decoy, is_seen, settings, model)
        learnt_from[model[:-2].tobytes()] = set(table[0][is_seen].tolist())

    def scoring(table, mean, spread, models, fold, scores):
        values = (table[0] - mean[0]) / spread[0]  # standardised like the table that a model learns from
        for division, number in np.ndindex(models.shape[:2]):
            scored = set(values[fold[division] == number].tolist())
            counts.append(len(scored & learnt_from[models[division, number, :-2].tobytes()]))
        score(table, mean, spread, models, fold, scores)

    for name, replaced in (("_learn", learning), ("score_matches", scoring)):
        monkeypatch.setattr(rescoring, name, replaced)
    monkeypatch.setattr(tables, "rescoring_features", numbered)
    return counts


def test_few_entrapment_peptides_are_accepted_in_five_replicates(shared_data, tmp_path, seen_copies):
    """Replicates: a model trained on a spectrum of one copy must not score the same spectrum of another copy.

    Each peptide of the sample has one entrapment partner with shuffled residues. Twice as many matches as fall on partners are false.
    """
    spectra, proteome, preset = SETS["Shewanella"]
    (database,) = paired_databases(proteins_of(shared_data / proteome), [1])
    write_fasta(database.proteins, tmp_path / "paired.fasta")
    copies = [shutil.copy(shared_data / spectra[0], tmp_path / f"copy{number}.mzXML") for number in range(5)]
    rows = accepted(copies, tmp_path / "paired.fasta", tmp_path / "project", preset)
    matches = {(row["spectrum_id"], row["sequence"]) for row in rows}
    entrapped = {match for match in matches if database.is_entrapment(match[1])}
    assert len(matches) > 300
    # The five copies of a match are not independent: counted once.
    assert len(entrapped) <= most_by_chance(0.015 / 2 * len(matches)), f"{len(entrapped)} of {len(matches)}"
    assert len(seen_copies) >= N_FOLDS
    assert sum(seen_copies) == 0


@pytest.mark.parametrize(
    ("name", "foreign", "preset", "score"),
    [
        ("Shewanella", "proteomes/yeast_2021_04_reviewed_UPS.fasta", "high-resolution", "hyperscore"),
        ("Shewanella", "proteomes/yeast_2021_04_reviewed_UPS.fasta", "high-resolution", "ksdp"),
        pytest.param(*("Shewanella", "proteomes/yeast_2021_04_reviewed_UPS.fasta", "tmt", "hyperscore"), marks=pytest.mark.long),
        ("E. coli", "proteomes/yeast_2021_04_reviewed_UPS.fasta", "low-resolution", "hyperscore"),
        ("E. coli", "proteomes/human.small.comet.fasta", "ion-trap", "hyperscore"),
    ],
)
def test_e_values_in_another_organism_are_calibrated(shared_data, tmp_path, name, foreign, preset, score):
    """At most 1.5 % of the spectra of one organism have E <= 0.01 in proteins of another, with a margin for chance."""
    import pyarrow.parquet as pq

    spectra, proteome, _ = SETS[name]
    explained = " ".join(proteins_of(shared_data / proteome).values()).replace("I", "L")
    parameters = IdentificationParameters.checked({**read_preset("identify", preset), "score": score})
    identify([shared_data / spectrum for spectrum in spectra], [shared_data / foreign], tmp_path / "project", parameters, threads=2)
    (table,) = (tmp_path / "project" / "results").glob("*/psms.parquet")
    rows = pq.read_table(table, columns=["expectation", "sequence"]).to_pylist()
    rated = [row for row in rows if row["expectation"] is not None]
    assert len(rated) > 0.8 * len(rows)
    expectations = [row["expectation"] for row in rated if row["sequence"].replace("I", "L") not in explained]
    assert len(expectations) > 100
    assert sum(value <= 0.01 for value in expectations) <= most_by_chance(0.015 * len(expectations))


@pytest.fixture(scope="module")
def known_peptides(shared_data, tmp_path_factory):
    """Write spectra with known peptides, and five proteomes with these peptides added; return the peptides by title too."""
    folder = tmp_path_factory.mktemp("known")
    texts, peptides = [], {}
    lines = (shared_data / "spectra" / "known_ids" / "massivekb_selected_500.peprec").read_text().splitlines()
    listed = {line.split()[0]: line.split()[2] for line in lines}
    for name in ("massivekb_selected_500", "proteometools_171_kuester_test", "pride_cluster_1001_small"):
        for entry in (shared_data / "spectra" / "known_ids" / f"{name}.mgf").read_text().split("BEGIN IONS\n")[1:]:
            title = re.search(r"^TITLE=(.*)$", entry, re.MULTILINE)[1].strip()
            named = re.search(r"^SEQ=(\w+)", entry, re.MULTILINE) or re.search(r"sequence=\[(\w+)\]$", title)
            if named is None and title not in listed:
                continue  # a cluster with several peptides
            peptides[title] = named[1] if named else listed[title]
            texts.append(f"BEGIN IONS\n{entry.split('END IONS')[0]}END IONS\n")
    (folder / "known.mgf").write_text("\n".join(texts))
    proteomes = (shared_data / "proteomes" / "combo.fasta").read_text().rstrip()
    added = "".join(f">KNOWN_{i}\n{peptide}\n" for i, peptide in enumerate(sorted(set(peptides.values()))))
    (folder / "known.fasta").write_text(f"{proteomes}\n{added}")
    return folder / "known.mgf", folder / "known.fasta", peptides


def test_accepted_peptides_agree_with_known_peptides(known_peptides, tmp_path):
    """Spectra of known peptides are searched in five proteomes with these peptides.

    The reference is the result of another program and may be wrong too. A fourth of the spectra of one file carry modifications that are
    not searched, so that only wrong answers are possible for them. At least 96 of 100 accepted peptides at 1 % FDR are the known ones
    (I = L), and all of them where the peptide was synthesised.
    """
    spectra, database, peptides = known_peptides
    rows = accepted([spectra], database, tmp_path / "project", "high-resolution")
    right = [row for row in rows if row["sequence"].replace("I", "L") == peptides[row["spectrum_id"]].replace("I", "L")]
    assert len(right) >= 550
    assert len(right) / len(rows) >= 0.96
    synthetic = [row for row in rows if row["spectrum_id"].startswith("id=PXD004732")]
    assert len(synthetic) >= 165
    assert all(row in right for row in synthetic)
