"""Tables of a real search, recomputed: masses by pyteomics, proteins from the FASTA file, and q-values by plain loops."""

import csv
import json
import math
import re
from pathlib import Path

import pytest
from pyteomics import mass

from proteoscope.engine.identification.parameters import IdentificationParameters
from tests.searching import identify

PROTON = mass.nist_mass["H+"][0][0]
ISOTOPE = mass.nist_mass["C"][13][0] - mass.nist_mass["C"][12][0]
SHIFTS = {
    "Carbamidomethyl": mass.calculate_mass(formula="C2H3NO"),
    "Oxidation": mass.calculate_mass(formula="O"),
    "Acetyl": mass.calculate_mass(formula="C2H2O"),
    "Deamidated": mass.calculate_mass(formula="O") - mass.calculate_mass(formula="NH"),
}


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture(scope="module")
def files(shared_data):
    return (
        shared_data / "spectra" / "qc_shew_qe" / "QC_Shew_18_02_Excerpt.mzXML",
        shared_data / "proteomes" / "shew.fasta",
    )


@pytest.fixture(scope="module")
def proteins(files):
    sequences = {}
    for entry in files[1].read_text().split(">")[1:]:
        header, *lines = entry.split("\n")
        sequences[header.split()[0]] = "".join(lines).strip().rstrip("*").upper()
    return sequences | {f"DECOY_{name}": sequence[::-1] for name, sequence in sequences.items()}


@pytest.fixture(scope="module")
def project(files, tmp_path_factory):
    """Return a project of a search with several variable modifications and three hits per spectrum."""
    folder = tmp_path_factory.mktemp("report") / "project"
    parameters = IdentificationParameters().changed(
        hits_per_spectrum=3,
        isotope_errors=(0,),  # all matches are in one class
        variable_modifications=("Oxidation (M)", "Acetyl (Protein N-term)", "Deamidated (NQ)"),
    )
    identify([files[0]], [files[1]], folder, parameters, threads=2)
    return folder


@pytest.fixture(scope="module")
def psms(project):
    return table(project / "exports" / "psms.tsv")


@pytest.fixture(scope="module")
def peptides(project):
    return table(project / "exports" / "peptides.tsv")


@pytest.fixture(scope="module")
def groups(project):
    return table(project / "exports" / "proteins.tsv")


def is_accepted(row):
    return row["is_decoy"] == "false" and row["q_value"] != "" and float(row["q_value"]) <= 0.01


def looped_q_values(rows, score, decoys_of=None, decoy_score=None, at_once=1):
    """Compute q-values by definition: the lowest decoys / targets of all thresholds that accept the row.

    Rows with equal scores are accepted together. The decoys expected from the tail of the decoys of `rows` (or of `decoys_of`), at most
    one, are added to the counted decoys, multiplied by `at_once`.
    """
    tail = sorted(float(row[decoy_score or score]) for row in decoys_of or rows if row["is_decoy"] == "true")
    assert len(tail) >= 10
    base = (tail[(len(tail) - 1) // 2] + tail[len(tail) // 2]) / 2
    excess = [score_of_decoy - base for score_of_decoy in tail if score_of_decoy > base]
    ranked = sorted(rows, key=lambda row: -float(row[score]))
    scores = [float(row[score]) for row in ranked]
    ratios = []
    for position in range(len(ranked)):
        last = max(i for i in range(position, min(position + 50, len(ranked))) if scores[i] == scores[position])
        accepted = ranked[: last + 1]
        decoys = sum(row["is_decoy"] == "true" for row in accepted)
        expected = len(excess) * math.exp(-max(0.0, scores[position] - base) / (sum(excess) / len(excess)))
        ratios.append(min(1.0, (decoys + at_once * min(1.0, expected)) / max(1, len(accepted) - decoys)))
    lowest, minimum = [], 1.0
    for ratio in reversed(ratios):
        minimum = min(minimum, ratio)
        lowest.append(minimum)
    return list(zip(ranked, reversed(lowest), strict=True))


def test_psm_masses_equal_pyteomics(psms):
    names = set()
    for row in psms:
        text = row["peptide"]
        assert re.sub(r"\[[^]]*\]-?", "", text) == row["sequence"]
        modifications = re.findall(r"\[([^]]*)\]", text)
        names.update(modifications)
        assert sorted(modifications) == sorted(filter(None, row["modification_names"].split(";")))
        expected = mass.calculate_mass(row["sequence"]) + sum(SHIFTS[name] for name in modifications)
        assert float(row["calculated_mass"]) == pytest.approx(expected, abs=2e-5)
        observed = (float(row["precursor_mz"]) - PROTON) * int(row["charge"])
        assert float(row["observed_mass"]) == pytest.approx(observed, abs=2e-5)
        error = (observed - int(row["isotope_error"]) * ISOTOPE - expected) / expected * 1e6
        assert float(row["mass_error_ppm"]) == pytest.approx(error, abs=0.05)
        assert abs(error) <= 10.05
    assert names == set(SHIFTS)


def test_psm_modifications_are_at_allowed_residues(psms, proteins):
    for row in psms:
        text = row["peptide"]
        assert all(residue in "C" for residue in re.findall(r"([A-Z])\[Carbamidomethyl\]", text))
        assert len(re.findall(r"C\[Carbamidomethyl\]", text)) == row["sequence"].count("C")
        assert all(residue == "M" for residue in re.findall(r"([A-Z])\[Oxidation\]", text))
        assert all(residue in "NQ" for residue in re.findall(r"([A-Z])\[Deamidated\]", text))
        assert sum(name in ("Oxidation", "Deamidated", "Acetyl") for name in row["modification_names"].split(";")) <= 3
        if "Acetyl" in text:
            assert text.startswith("[Acetyl]-")
            starts = {proteins[name].find(row["sequence"]) for name in row["proteins"].split(";")}
            assert starts & {0, 1}


def test_psm_proteins_are_all_that_contain_the_tryptic_peptide(psms, proteins):
    targets = {name: sequence for name, sequence in proteins.items() if not name.startswith("DECOY_")}
    for row in psms:
        names, sequence = row["proteins"].split(";"), row["sequence"]
        starts = [int(text) for text in row["protein_starts"].split(";")]
        before, after = row["residues_before"].split(";"), row["residues_after"].split(";")
        assert len(names) == len(starts) == len(before) == len(after)
        for name, start, left, right in zip(names, starts, before, after, strict=True):
            protein = proteins[name]
            assert name.startswith("DECOY_") == (row["is_decoy"] == "true")
            assert protein[start - 1 : start - 1 + len(sequence)] == sequence
            assert left == ("-" if start == 1 else protein[start - 2])
            assert right == ("-" if start - 1 + len(sequence) == len(protein) else protein[start - 1 + len(sequence)])
            # Trypsin cleaves after K and R, but not before P; the first methionine may be lost.
            assert left == "-" or (left in "KR" and sequence[0] != "P") or (start == 2 and left == "M")
            assert right == "-" or (sequence[-1] in "KR" and right != "P")
        assert int(row["missed_cleavages"]) == len(re.findall(r"[KR](?=[^P])", sequence)) <= 2
    for row in [row for row in psms if is_accepted(row)][::7]:
        sequence = row["sequence"]
        holding = set()
        for name, protein in targets.items():
            for match in re.finditer(f"(?={sequence})", protein):
                start, end = match.start(), match.start() + len(sequence)
                cut_before = start == 0 or (protein[start - 1] in "KR" and sequence[0] != "P") or (start == 1 and protein[0] == "M")
                if cut_before and (end == len(protein) or (sequence[-1] in "KR" and protein[end] != "P")):
                    holding.add(name)
        assert set(row["proteins"].split(";")) == holding


def test_q_values_of_psms_match_reference_loop(psms):
    first = [row for row in psms if row["rank"] == "1"]
    assert len({row["spectrum_id"] for row in first}) == len(first)
    decoys = [row for row in first if row["is_decoy"] == "true"]
    # Peptides with the same residues, except for those at which trypsin cleaves, form a family.
    best = {}
    for row in sorted(decoys, key=lambda row: float(row["score"])):
        best["".join(sorted(row["sequence"].replace("I", "L").replace("K", "").replace("R", "")))] = row
    for row, q_value in looped_q_values(first, "score", list(best.values()), at_once=len(decoys) / len(best)):
        assert float(row["q_value"]) == pytest.approx(q_value, abs=1e-9)
    assert sum(is_accepted(row) for row in first) > 150


def test_q_values_of_peptides_match_reference_loop(peptides, psms):
    best = {}
    for row in psms:
        if row["rank"] == "1":
            key = row["peptide"], row["is_decoy"]
            best[key] = max(best.get(key, -1e9), float(row["score"]))
    counted = [row for row in peptides if (row["peptide"], row["is_decoy"]) in best]
    assert len(counted) == len(best)
    for row in counted:
        assert float(row["best_score"]) == pytest.approx(best[row["peptide"], row["is_decoy"]], rel=1e-8)
    for row, q_value in looped_q_values(counted, "best_score"):
        assert float(row["q_value"]) == pytest.approx(q_value, abs=1e-9)
    for row in peptides:
        matches = [
            psm
            for psm in psms
            if psm["rank"] == "1"
            and float(psm["q_value"]) <= 0.01
            and (psm["peptide"], psm["is_decoy"]) == (row["peptide"], row["is_decoy"])
        ]
        assert int(row["n_psms"]) == len(matches)


def test_only_first_ranked_psms_have_q_values(psms, peptides):
    """Lower-ranked matches have no q-values, since they did not compete."""
    lower = [row for row in psms if row["rank"] != "1"]
    assert len(lower) > 500
    assert {(row["q_value"], row["posterior_error_probability"]) for row in lower} == {("", "")}
    first = {(row["peptide"], row["is_decoy"]) for row in psms if row["rank"] == "1"}
    for row in peptides:
        assert (row["q_value"] != "") == ((row["peptide"], row["is_decoy"]) in first)


def test_run_record_counts_equal_table_rows(project, psms, peptides, groups):
    record = json.loads((Path(project) / "run.json").read_text())
    counts, certainty = record["counts"], record["certainty"]
    for name, rows in (("psms", psms), ("peptides", peptides), ("proteins", groups)):
        accepted = [row for row in rows if row["q_value"] != "" and float(row["q_value"]) <= 0.01]
        decoys = sum(row["is_decoy"] == "true" for row in accepted)
        assert counts[name] == certainty[name]["targets"] == len(accepted) - decoys
        assert certainty[name]["decoys"] == decoys
        low, high = (certainty[name][key] for key in ("false_share_low", "false_share_high"))
        assert 0 <= low <= decoys / (len(accepted) - decoys) <= high <= 1
    assert counts["sequences"] == len({row["sequence"] for row in peptides if is_accepted(row)}) < counts["peptides"]


def test_psm_error_probabilities_rise_as_scores_fall(psms):
    ranked = sorted((row for row in psms if row["rank"] == "1"), key=lambda row: -float(row["score"]))
    errors = [float(row["posterior_error_probability"]) for row in ranked]
    assert errors == sorted(errors)
    assert 0 <= errors[0] < 0.01
    assert errors[-1] > 0.9


def test_psms_are_sorted_by_rank_and_score(psms):
    order = [(int(row["rank"]), -float(row["score"])) for row in psms]
    assert order == sorted(order)


def test_psm_ranks_follow_the_search_score(psms):
    by_spectrum = {}
    for row in psms:
        by_spectrum.setdefault(row["spectrum_id"], []).append(row)
    assert max(map(len, by_spectrum.values())) == 3
    for rows in by_spectrum.values():
        assert [int(row["rank"]) for row in rows] == list(range(1, len(rows) + 1))
        scores = [float(row["search_score"]) for row in rows]
        assert scores == sorted(scores, reverse=True)
        assert all(float(row["delta_score"]) >= 0 for row in rows)


def test_q_values_of_protein_groups_match_reference_loop(groups, peptides, psms):
    ranked = {(row["peptide"], row["is_decoy"]) for row in psms if row["rank"] == "1"}
    competing = [row for row in peptides if (row["peptide"], row["is_decoy"]) in ranked]
    for row, q_value in looped_q_values(groups, "score", competing, "best_score"):
        assert float(row["q_value"]) == pytest.approx(q_value, abs=1e-9)


def test_protein_groups_contain_all_accepted_peptides(groups, peptides, proteins):
    accepted = {row["sequence"]: set(row["proteins"].split(";")) for row in peptides if is_accepted(row)}
    members = [set(row["accessions"].split(";")) for row in groups]
    for sequence, names in accepted.items():
        assert any(names & group for group in members), sequence
    targets = [row for row in groups if row["is_decoy"] == "false"]
    for row in targets:
        first = row["accessions"].split(";")[0]
        protein = proteins[first]
        assert row["sequence"] == protein
        sequences = [sequence for sequence, names in accepted.items() if first in names]
        assert int(row["n_peptides"]) == len(sequences)
        covered = set()
        for sequence in sequences:
            for match in re.finditer(f"(?={sequence})", protein):
                covered.update(range(match.start(), match.start() + len(sequence)))
        assert float(row["coverage"]) == pytest.approx(len(covered) / len(protein), abs=1e-4)
        assert 0 <= int(row["n_unique_peptides"]) <= int(row["n_peptides"])
        assert row["group"] == row["accessions"]
    assert [float(row["score"]) for row in groups] == sorted((float(row["score"]) for row in groups), reverse=True)


def test_parquet_tables_match_tsv_tables(project, psms):
    import pyarrow.parquet as pq

    (run,) = (project / "results").iterdir()
    parquet = pq.read_table(run / "psms.parquet").to_pylist()
    assert [row["peptide"] for row in parquet] == [row["peptide"] for row in psms]
    assert [";".join(row["proteins"]) for row in parquet] == [row["proteins"] for row in psms]
    first = [row for row in psms if row["rank"] == "1"]
    assert [row["q_value"] for row in parquet[: len(first)]] == pytest.approx([float(row["q_value"]) for row in first], rel=1e-8)
    spectra = pq.read_table(run / "spectra.parquet").to_pylist()
    assert len(spectra) == json.loads((Path(project) / "run.json").read_text())["counts"]["spectra"]
    for row in parquet[:50]:
        spectrum = spectra[row["spectrum"]]
        assert (spectrum["spectrum_id"], spectrum["precursor_mz"]) == (row["spectrum_id"], row["precursor_mz"])
        assert len(spectrum["mz"]) == len(spectrum["intensity"]) > 0
