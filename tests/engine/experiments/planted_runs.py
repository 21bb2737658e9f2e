"""Projects whose runs have planted matches with planted truth, without spectra or a search."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyteomics import mass

from proteoscope.engine.experiments.table import ExperimentRow
from proteoscope.engine.project import Project
from proteoscope.engine.project.records import RunInput
from proteoscope.engine.searches import search_of_kind

PREFIX = "DECOY_"
Rows = dict[str, list[Any]]


@dataclass
class Planted:
    """Peptides of an experiment: those at the front are in the sample, and every third is in two proteins."""

    n_true: int
    n_absent: int
    seed: int = 0
    peptides: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng, used = np.random.default_rng(self.seed), set[str]()
        while len(self.peptides) < self.n_true + self.n_absent:
            text = "".join(rng.choice(list("ACDEFGHLMNPQSTVWY"), rng.integers(7, 13))) + str(rng.choice(["K", "R"]))
            if (composition := "".join(sorted(text[:-1]))) not in used:
                used.add(composition)
                self.peptides.append(text)

    def proteins(self, peptide: int) -> list[str]:
        """Proteins of a peptide: four peptides are in a protein."""
        return [f"P{peptide // 4:05d}", *([f"P{peptide // 4:05d}B"] if peptide % 12 == 0 else [])]

    def run(self, seed: int, n: int, share: float = 0.5, separation: float = 6.0, match_class: str = "specific") -> Rows:
        """Return the matches of a run; the false ones are of random peptides, half of them decoys."""
        rng = np.random.default_rng((self.seed, seed))
        is_true = rng.random(n) < share
        peptide = np.where(is_true, rng.integers(0, self.n_true, n), self.n_true + rng.integers(0, max(1, self.n_absent), n))
        is_decoy = ~is_true & (rng.random(n) < 0.5)
        score = np.where(is_true, rng.normal(separation * rng.uniform(0.7, 1.3), 1.5, n), rng.normal(0, 1, n))
        return self.rows(peptide.tolist(), is_decoy.tolist(), score.tolist(), match_class)

    def rows(self, peptide: Sequence[int], is_decoy: Sequence[bool], score: Sequence[float], match_class: str = "specific") -> Rows:
        """Return matches as columns of the table of PSMs, with the q-values of one list."""
        forward = [self.peptides[i] for i in peptide]
        texts = [text[-2::-1] + text[-1] if decoy else text for text, decoy in zip(forward, is_decoy, strict=True)]
        lists = [[PREFIX + name if decoy else name for name in self.proteins(i)] for i, decoy in zip(peptide, is_decoy, strict=True)]
        return {
            "peptide": texts,
            "sequence": texts,
            "proteins": lists,
            "calculated_mass": [mass.fast_mass(text) for text in texts],
            "score": list(score),
            "q_value": plain_q_values(score, is_decoy),
            "rank": [1] * len(texts),
            "is_decoy": list(is_decoy),
            "psm_id": list(range(len(texts))),
            "match_class": [match_class] * len(texts),
        }


def plain_q_values(score: Sequence[float], is_decoy: Sequence[bool]) -> list[float]:
    """Return q-values by definition, with one added decoy; no two scores may be equal."""
    order = sorted(range(len(score)), key=lambda i: -score[i])
    rates, decoys = [], 1
    for place, i in enumerate(order):
        decoys += is_decoy[i]
        rates.append(min(1.0, decoys / max(1, place + 2 - decoys)))
    result = [0.0] * len(score)
    lowest = 1.0
    for place in reversed(range(len(order))):
        lowest = min(lowest, rates[place])
        result[order[place]] = lowest
    return result


def joined(*parts: Rows) -> Rows:
    """Return the matches of several classes of a run."""
    rows = {name: [value for part in parts for value in part[name]] for name in parts[0]}
    return rows | {"psm_id": list(range(len(rows["peptide"])))}


TYPES = {
    "rank": pa.int8(),
    "proteins": pa.list_(pa.string()),
    "psm_id": pa.int64(),
    "is_decoy": pa.bool_(),
    "modification_names": pa.list_(pa.string()),
    "modification_masses": pa.list_(pa.float64()),
    **dict.fromkeys(("peptide", "sequence", "match_class", "shift_kind"), pa.string()),
    **dict.fromkeys(("score", "q_value", "calculated_mass", "observed_mass", "mass_difference"), pa.float64()),
}


def of_search(rows: Rows, kind: str, shifts: Sequence[float] | None = None) -> Rows:
    """Return matches as those of an open modification search or a library search, with unnamed mass shifts (Da) of the first residue."""
    shifts = shifts or [0.0] * len(rows["peptide"])
    names = [[f"{shift:+.6f}".rstrip("0").rstrip(".")] if shift else [] for shift in shifts]
    result = {column: values for column, values in rows.items() if column != "match_class"}
    result["peptide"] = [f"{text[0]}[{name[0]}]{text[1:]}" if name else text for text, name in zip(rows["peptide"], names, strict=True)]
    result["calculated_mass"] = [calculated + shift for calculated, shift in zip(rows["calculated_mass"], shifts, strict=True)]
    result |= {"modification_names": names, "modification_masses": [[shift] if shift else [] for shift in shifts]}
    if kind == "modified":
        return result | {"shift_kind": ["unnamed" if shift else "none" for shift in shifts]}
    return result | {"mass_difference": list(shifts), "observed_mass": result["calculated_mass"]}


def add_run(project: Project, name: str, rows: Rows, folder: Path, *, kind: str = "identify", **settings: Any) -> ExperimentRow:
    """Add a finished run with these matches to a project, and return its row of the experiment."""
    spectra, database = folder / f"{name}.mgf", folder / "proteins.fasta"
    spectra.write_text(name)
    database.write_text(">P\nPEPTIDEK\n")
    parameters = search_of_kind(kind).model.checked(settings).model_dump(mode="json")
    with project.run(kind, parameters, [RunInput(spectra, "spectra"), RunInput(database, "database")], name=name) as run:
        run.write_table("psms", pa.table({column: pa.array(values, TYPES.get(column)) for column, values in rows.items()}))
    return ExperimentRow(name, str(spectra), name, sha256=hashlib.sha256(name.encode()).hexdigest())


def forge(project: Project, run: str, name: str, content: bytes) -> None:
    """Replace a table of a run and its registered digest, as the author of an untrusted project can."""
    path = project.folder / "results" / run / f"{name}.parquet"
    path.write_bytes(content)
    with sqlite3.connect(project.folder / "project.sqlite") as database:
        values = (hashlib.sha256(content).hexdigest(), len(content), run, name)
        assert database.execute("UPDATE results SET sha256 = ?, bytes = ? WHERE run = ? AND name = ?", values).rowcount == 1
