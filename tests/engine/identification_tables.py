"""Small identification tables made from random proteins, for tests of code that reads such tables.

Masses come from pyteomics and peptide positions from a plain search through the proteins: nothing here uses the tested code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyteomics import mass

PROTON = 1.00727646688
FREQUENT = "AAAACDDDEEEEFFGGGGHIIIKKKLLLLLMMNNPPQQRRRSSSTTTVVVWY"

CARBAMIDOMETHYL = ("Carbamidomethyl", 57.021464, 4)
OXIDATION = ("Oxidation", 15.994915, 35)
PHOSPHO = ("Phospho", 79.966331, 21)
ACETYL = ("Acetyl", 42.010565, 1)
AMIDATED = ("Amidated", -0.984016, 2)
CUSTOM = ("+10.5", 10.5, None)

PARAMETERS: dict[str, Any] = {
    "enzyme": "Trypsin",
    "specificity": "specific",
    "missed_cleavages": 2,
    "fixed_modifications": ("Carbamidomethyl (C)",),
    "variable_modifications": ("Oxidation (M)", "Phospho (STY)", "Acetyl (Protein N-term)", "Amidated (C-term)", "Label:+10.5 (K)"),
    "precursor_tolerance": "10 ppm",
    "fragment_tolerance": "0.02 Da",
    "isotope_errors": (0, 1),
    "decoys": "reverse",
    "decoy_prefix": "DECOY_",
    "second_pass": False,
    "fdr": 0.01,
}

PSM_TYPES = pa.schema(
    [
        ("spectrum_file", pa.string()),
        ("spectrum_id", pa.string()),
        ("scan", pa.int64()),
        ("retention_time", pa.float64()),
        ("precursor_mz", pa.float64()),
        ("charge", pa.int8()),
        ("observed_mass", pa.float64()),
        ("calculated_mass", pa.float64()),
        ("mass_error_ppm", pa.float64()),
        ("isotope_error", pa.int8()),
        ("peptide", pa.string()),
        ("sequence", pa.string()),
        ("proteins", pa.list_(pa.string())),
        ("missed_cleavages", pa.int8()),
        ("matched_ions", pa.int16()),
        ("total_ions", pa.int16()),
        ("spectral_dot_product", pa.float64()),
        ("hyperscore", pa.float64()),
        ("score", pa.float64()),
        ("delta_score", pa.float64()),
        ("q_value", pa.float64()),
        ("posterior_error_probability", pa.float64()),
        ("rank", pa.int8()),
        ("is_decoy", pa.bool_()),
        ("psm_id", pa.int64()),
        ("spectrum_index", pa.int64()),
        ("spectrum", pa.int64()),
        ("peptide_q_value", pa.float64()),
        ("search_score", pa.float64()),
        ("xcorr", pa.float64()),
        ("ksdp", pa.float64()),
        ("expectation", pa.float64()),
        ("modification_positions", pa.list_(pa.int16())),
        ("modification_names", pa.list_(pa.string())),
        ("modification_masses", pa.list_(pa.float64())),
        ("modification_unimod", pa.list_(pa.int32())),
        ("protein_starts", pa.list_(pa.int32())),
        ("residues_before", pa.list_(pa.string())),
        ("residues_after", pa.list_(pa.string())),
        ("feature_hyperscore", pa.float32()),
        ("feature_absolute_mass_error", pa.float32()),
        ("feature_length", pa.float32()),
    ]
)

PEPTIDE_TYPES = pa.schema(
    [
        ("peptide", pa.string()),
        ("sequence", pa.string()),
        ("proteins", pa.list_(pa.string())),
        ("n_psms", pa.int32()),
        ("best_score", pa.float64()),
        ("q_value", pa.float64()),
        ("is_decoy", pa.bool_()),
        ("posterior_error_probability", pa.float64()),
        ("calculated_mass", pa.float64()),
        ("best_psm", pa.int64()),
    ]
)

PROTEIN_TYPES = pa.schema(
    [
        ("group", pa.string()),
        ("accessions", pa.list_(pa.string())),
        ("description", pa.string()),
        ("n_peptides", pa.int32()),
        ("n_unique_peptides", pa.int32()),
        ("n_psms", pa.int32()),
        ("coverage", pa.float64()),
        ("score", pa.float64()),
        ("q_value", pa.float64()),
        ("is_decoy", pa.bool_()),
        ("razor_peptides", pa.int32()),
        ("posterior_error_probability", pa.float64()),
        ("length", pa.int32()),
        ("sequence", pa.string()),
    ]
)


@dataclass(frozen=True)
class Protein:
    accession: str
    description: str
    sequence: str

    @property
    def is_decoy(self) -> bool:
        return self.accession.startswith("DECOY_")


@dataclass(frozen=True)
class Identification:
    """The three tables, the searched inputs, and the proteins of the peptides."""

    psms: pa.Table
    peptides: pa.Table
    proteins: pa.Table
    database: dict[str, Protein]
    spectra: tuple[str, ...]
    parameters: dict[str, Any] = field(default_factory=lambda: dict(PARAMETERS))

    @property
    def reading_frames(self) -> pa.Table:
        """Return the proteins as reading frames of one nucleotide sequence, one after the other, every second one reversed."""
        targets = [protein for protein in self.database.values() if not protein.is_decoy]
        ends = np.cumsum([3 * len(protein.sequence) for protein in targets])
        return pa.table(
            {
                "accession": [protein.accession for protein in targets],
                "sequence": ["a chromosome; 1"] * len(targets),
                "first": [end - 3 * len(protein.sequence) + 1 for protein, end in zip(targets, ends.tolist(), strict=True)],
                "last": ends,
                "strand": ["+-"[i % 2] for i in range(len(targets))],
            }
        )

    def write(self, folder: Path, *, is_translated: bool = False) -> Path:
        """Write the tables as a run, or as a run that translated nucleotides, with their positions."""
        folder.mkdir(parents=True, exist_ok=True)
        if is_translated:
            pq.write_table(self.reading_frames, folder / "reading_frames.parquet")
        for name in ("psms", "peptides", "proteins"):
            pq.write_table(getattr(self, name), folder / f"{name}.parquet")
        return folder


def identification(n_spectra: int = 150, seed: int = 7) -> Identification:
    """Return an identification of two files: an mzML with scans and times, and an MGF with neither.

    It has decoys, shared peptides, second ranks, modified residues and ends, two modifications at one position, an unlisted modification,
    and characters to be escaped in XML and TSV. With `n_spectra` 0, nothing was identified.
    """
    random = np.random.default_rng(seed)
    database = _proteins(random)
    spectra = ("/data/a folder/run 1 & 2.mzML", "/data/a folder/späte.mgf")
    targets, decoys = _digest(database, is_decoy=False), _digest(database, is_decoy=True)
    rows: list[dict[str, Any]] = []
    for spectrum in range(n_spectra):
        for rank in (1, 2) if spectrum % 5 == 0 else (1,):
            pool = decoys if random.random() < 0.15 * rank else targets
            sequence = pool[int(random.integers(len(pool)))]
            rows.append(_psm(random, spectrum, rank, sequence, database, spectra, len(rows)))
    psms = pa.Table.from_pylist(rows, schema=PSM_TYPES)
    return Identification(psms, _peptides(rows), _protein_groups(rows, database), database, spectra)


def many_psms(small: Identification, n: int) -> pa.Table:
    """Return the PSMs of an identification repeated to `n` rows, each with its own spectrum."""
    table = pa.concat_tables([small.psms] * (n // len(small.psms) + 1)).slice(0, n).combine_chunks()
    for name in ("psm_id", "spectrum", "spectrum_index"):
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(np.arange(n)))
    return table.set_column(table.schema.get_field_index("rank"), "rank", pa.array(np.ones(n, np.int8)))


def _proteins(random: np.random.Generator) -> dict[str, Protein]:
    proteins = []
    for i in range(12):
        sequence = "M" + "".join(random.choice(list(FREQUENT), size=180))
        proteins.append(Protein(f"sp|P{i:05d}|TEST{i}_HUMAN", f"Test protein {i} OS=Homo sapiens", sequence))
    odd = "odd<&>\"'Ω|x"
    proteins[1] = Protein(odd, 'A "quoted" & <tagged> protein\x01of β-strands\twith a tab', proteins[1].sequence)
    # Two proteins share all peptides, and one shares half of them.
    proteins.append(Protein("sp|Q00001|SAME_HUMAN", "", proteins[2].sequence))
    proteins.append(Protein("sp|Q00002|HALF_HUMAN", "Half of another", proteins[3].sequence[:90] + proteins[4].sequence[90:]))
    proteins += [Protein(f"DECOY_{protein.accession}", protein.description, protein.sequence[::-1]) for protein in proteins]
    return {protein.accession: protein for protein in proteins}


def _digest(database: dict[str, Protein], *, is_decoy: bool) -> list[str]:
    peptides = set()
    for protein in database.values():
        if protein.is_decoy == is_decoy:
            segments = re.sub(r"(?<=[KR])(?!P)", "\n", protein.sequence).split("\n")
            peptides |= {"".join(segments[i : i + n]) for i in range(len(segments)) for n in (1, 2)}
    return sorted(peptide for peptide in peptides if 6 <= len(peptide) <= 30)


def _modify(random: np.random.Generator, sequence: str, is_protein_start: bool) -> list[tuple[int, str, float, int | None]]:
    """Return modifications as (position, name, mass, Unimod record), by position."""
    placed = [(i, *CARBAMIDOMETHYL) for i, residue in enumerate(sequence, start=1) if residue == "C"]
    placed += [(i, *OXIDATION) for i, residue in enumerate(sequence, start=1) if residue == "M" and random.random() < 0.5]
    placed += [(i, *PHOSPHO) for i, residue in enumerate(sequence, start=1) if residue in "STY" and random.random() < 0.15]
    if is_protein_start:
        placed.append((0, *ACETYL))
    if random.random() < 0.1:
        placed.append((len(sequence) + 1, *AMIDATED))
    if sequence.endswith("K") and random.random() < 0.3:
        placed.append((len(sequence), *CUSTOM))
    return sorted(placed, key=lambda site: site[0])


def _proforma(sequence: str, placed: list[tuple[int, str, float, int | None]]) -> str:
    tags = {position: "".join(f"[{name}]" for at, name, _, _ in placed if at == position) for position, *_ in placed}
    front = f"{tags[0]}-" if 0 in tags else ""
    back = f"-{tags[len(sequence) + 1]}" if len(sequence) + 1 in tags else ""
    return front + "".join(residue + tags.get(i, "") for i, residue in enumerate(sequence, start=1)) + back


def _psm(
    random: np.random.Generator,
    spectrum: int,
    rank: int,
    sequence: str,
    database: dict[str, Protein],
    spectra: tuple[str, ...],
    psm_id: int,
) -> dict[str, Any]:
    holders = [protein for protein in database.values() if sequence in protein.sequence]
    targets = [holder for holder in holders if not holder.is_decoy]
    holders = targets or holders
    starts = [holder.sequence.index(sequence) + 1 for holder in holders]
    placed = _modify(random, sequence, min(starts) == 1)
    calculated = mass.fast_mass(sequence) + sum(site[2] for site in placed)
    charge, isotope = int(random.integers(2, 5)), int(random.random() < 0.1)
    error = float(random.normal(0, 3))
    observed = calculated * (1 + error * 1e-6) + isotope * 1.0033548378
    is_decoy = not targets
    score = float(random.normal(20 if is_decoy else 35, 6)) / rank
    in_mgf = spectrum % 3 == 2
    ends = [start - 1 + len(sequence) for start in starts]
    return {
        "spectrum_file": spectra[1] if in_mgf else spectra[0],
        "spectrum_id": f'query "{spectrum}" <&>' if in_mgf else f"controllerType=0 controllerNumber=1 scan={spectrum + 100}",
        "scan": None if in_mgf else spectrum + 100,
        "retention_time": None if in_mgf else 60 + spectrum * 1.25,
        "precursor_mz": observed / charge + PROTON,
        "charge": charge,
        "observed_mass": observed,
        "calculated_mass": calculated,
        "mass_error_ppm": error,
        "isotope_error": isotope,
        "peptide": _proforma(sequence, placed),
        "sequence": sequence,
        "proteins": [holder.accession for holder in holders],
        "missed_cleavages": len(re.findall(r"[KR](?!P)(?=.)", sequence)),
        "matched_ions": int(random.integers(4, 20)),
        "total_ions": 2 * (len(sequence) - 1),
        "spectral_dot_product": float(random.random()),
        "hyperscore": score,
        "score": score / 10 - 2,
        "delta_score": None if rank == 2 else float(random.random()),
        "q_value": 0.5 if is_decoy or rank == 2 else float(10 ** random.uniform(-5, -1)),
        "posterior_error_probability": float(10 ** random.uniform(-12, 0)),
        "rank": rank,
        "is_decoy": is_decoy,
        "psm_id": psm_id,
        "spectrum_index": spectrum + 1,
        "spectrum": spectrum,
        "peptide_q_value": float(10 ** random.uniform(-5, -1)),
        "search_score": score,
        "xcorr": score / 15,
        "ksdp": float("nan") if spectrum == 3 else score * 2,
        "expectation": None if spectrum == 3 else float(10 ** (-score / 10)),
        "modification_positions": [site[0] for site in placed],
        "modification_names": [site[1] for site in placed],
        "modification_masses": [site[2] for site in placed],
        "modification_unimod": [site[3] for site in placed],
        "protein_starts": starts,
        "residues_before": [holder.sequence[at - 2] if at > 1 else "-" for holder, at in zip(holders, starts, strict=True)],
        "residues_after": [holder.sequence[at] if at < len(holder.sequence) else "-" for holder, at in zip(holders, ends, strict=True)],
        "feature_hyperscore": score,
        "feature_absolute_mass_error": float("nan") if spectrum == 4 else abs(error),
        "feature_length": len(sequence),
    }


def _peptides(rows: list[dict[str, Any]]) -> pa.Table:
    best: dict[str, dict[str, Any]] = {}
    for row in (row for row in rows if row["rank"] == 1):
        if row["peptide"] not in best or best[row["peptide"]]["score"] < row["score"]:
            best[row["peptide"]] = row
    return pa.Table.from_pylist(
        [
            {
                **{name: row[name] for name in ("peptide", "sequence", "proteins", "is_decoy", "calculated_mass")},
                "q_value": row["peptide_q_value"],
                "posterior_error_probability": row["posterior_error_probability"],
                "n_psms": sum(row["peptide"] == peptide and row["rank"] == 1 for row in rows),
                "best_score": row["score"],
                "best_psm": row["psm_id"],
            }
            for peptide, row in best.items()
        ],
        schema=PEPTIDE_TYPES,
    )


def _protein_groups(rows: list[dict[str, Any]], database: dict[str, Protein]) -> pa.Table:
    """Return groups of proteins with the same rank-1 peptides, without further parsimony."""
    evidence: dict[str, set[str]] = {}
    for row in (row for row in rows if row["rank"] == 1):
        for accession in row["proteins"]:
            evidence.setdefault(accession, set()).add(row["sequence"])
    groups: dict[frozenset[str], list[str]] = {}
    for accession, sequences in evidence.items():
        groups.setdefault(frozenset(sequences), []).append(accession)
    table = []
    for sequences, members in groups.items():
        first = database[members[0]]
        covered = np.zeros(len(first.sequence), bool)
        for sequence in sequences:
            start = first.sequence.index(sequence)
            covered[start : start + len(sequence)] = True
        rows_of_group = [row for row in rows if row["rank"] == 1 and members[0] in row["proteins"]]
        unique = {row["sequence"] for row in rows_of_group if set(row["proteins"]) <= set(members)}
        table.append(
            {
                "group": ";".join(members),
                "accessions": members,
                "description": first.description,
                "n_peptides": len(sequences),
                "n_unique_peptides": len(unique),
                "n_psms": len(rows_of_group),
                "coverage": float(covered.mean()),
                "score": max(row["score"] for row in rows_of_group),
                "q_value": 0.4 if first.is_decoy else 0.001 * len(table),
                "is_decoy": first.is_decoy,
                "razor_peptides": len(unique),
                "posterior_error_probability": 0.01,
                "length": len(first.sequence),
                "sequence": first.sequence,
            }
        )
    return pa.Table.from_pylist(table, schema=PROTEIN_TYPES)
