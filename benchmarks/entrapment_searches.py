"""Searches of entrapment databases with the program or a peer, whose results have a common form: q-values and false discoveries."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from benchmarks.entrapment_databases import ENTRAPMENT, EntrapmentDatabase, write_fasta
from benchmarks.entrapment_estimators import count
from proteoscope.engine.identification import passes
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.tables import ScoredMatches, identified_proteins
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.peptides.protein_index import ProteinIndex
from tests.peers.peer_datasets import Dataset
from tests.peers.peer_figures import with_q_values
from tests.peers.peer_programs import run_peer
from tests.searching import identify

__all__ = ["LEVELS", "Level", "classified", "peer_level", "search"]

Floats = NDArray[np.float64]

LEVELS = ("psm", "peptide", "group")
LOOSEST = 0.1  # rows with larger q-values are ignored


@dataclass(frozen=True)
class Level:
    """Targets of one level (PSMs, peptides or groups) with their properties; n rows, without decoys.

    `partner_q_value` and `partner_score` are those of the best row of an entrapped row's partner, NaN and -inf where it was not found; None
    for a database without pairs. `spectrum` is the number of the spectrum of a row, or of the best spectrum of several.
    """

    q_value: Floats
    score: Floats
    is_entrapped: NDArray[np.bool_]
    spectrum: NDArray[np.int64] | None = None
    partner_q_value: Floats | None = None
    partner_score: Floats | None = None

    def count(self, threshold: float, ratio: float) -> Floats:
        """See `entrapment_estimators.count`."""
        return count(self.q_value, self.score, self.is_entrapped, threshold, ratio, self.partner_q_value, self.partner_score)

    def false_spectra(self, threshold: float) -> NDArray[np.int64]:
        """Return the spectra of accepted entrapped rows, with repeats."""
        assert self.spectrum is not None
        return self.spectrum[(self.q_value <= threshold) & self.is_entrapped]


def search(
    spectra: Sequence[Path], database: EntrapmentDatabase, preset: str, threads: int, scratch: Path, **settings: Any
) -> dict[str, pa.Table]:
    """Return the tables ``psms``, ``peptides`` and ``proteins`` of a search with a preset and further parameters.

    A second pass searches only proteins that the first pass found, nearly all from the sample, so that its wrong answers would hardly ever
    be entrapped. If proteins have partners, it therefore also searches the partners of the found proteins.
    """
    parameters = IdentificationParameters.checked(dict(read_preset("identify", preset)) | settings)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        write_fasta(database.proteins, Path(folder) / "database.fasta")
        with patch.object(passes, "identified_proteins", _with_entrapment_partners if database.partners else identified_proteins):
            summary = identify(
                spectra, [Path(folder) / "database.fasta"], Path(folder) / "project", parameters, device="cpu", threads=threads
            )
        results = summary.folder / "results" / summary.run_id
        return {name: parquet.read_table(results / f"{name}.parquet", memory_map=False) for name in ("psms", "peptides", "proteins")}


def _with_entrapment_partners(scored: ScoredMatches, proteins: ProteinIndex, fdr: float) -> NDArray[np.int64]:
    """Return the result of `identified_proteins`, and the shuffled or original partner of each protein."""
    accessions = identified_proteins(scored, proteins, fdr)
    names = [proteins.proteins.accession(i) for i in range(proteins.n_targets)]
    number = {name: i for i, name in enumerate(names)}
    partners = [
        number[name.removeprefix(ENTRAPMENT) if name.startswith(ENTRAPMENT) else ENTRAPMENT + name]
        for name in (names[i] for i in accessions.tolist())
    ]
    return np.union1d(accessions, np.array(partners, np.int64))


def classified(tables: dict[str, pa.Table], database: EntrapmentDatabase, levels: Sequence[str]) -> dict[str, Level]:
    """Return the levels of a search."""
    made = {}
    if "psm" in levels:
        first = tables["psms"].filter(pc.equal(tables["psms"]["rank"], 1))
        made["psm"] = _by_sequence(first, "score", database)
    spectrum = dict(zip(tables["psms"]["psm_id"].to_pylist(), tables["psms"]["spectrum"].to_pylist(), strict=True))
    peptides = tables["peptides"].append_column("spectrum", [[spectrum[psm] for psm in tables["peptides"]["best_psm"].to_pylist()]])
    if "peptide" in levels:
        made["peptide"] = _by_sequence(peptides, "best_score", database)
    if "group" in levels:
        made["group"] = _groups(tables["proteins"], peptides, database)
    return made


def _by_sequence(table: pa.Table, score_name: str, database: EntrapmentDatabase) -> Level:
    """Return the level of PSMs or peptides; the partner of an entrapped row is the best row of the sample's peptide."""
    table = table.filter(pc.invert(table["is_decoy"]))
    q_value, score = _column(table, "q_value"), _column(table, score_name)
    sequences = [sequence.replace("I", "L") for sequence in table["sequence"].to_pylist()]
    false = [
        bool(q <= LOOSEST) and all(name.startswith(ENTRAPMENT) for name in proteins) and database.is_entrapment(sequence)
        for q, sequence, proteins in zip(q_value, sequences, table["proteins"].to_pylist(), strict=True)
    ]
    level = _with_partners(q_value, score, np.array(false, bool), sequences, database)
    return replace(level, spectrum=table["spectrum"].to_numpy().astype(np.int64))


def _with_partners(
    q_value: Floats, score: Floats, is_entrapped: NDArray[np.bool_], sequences: Sequence[str], database: EntrapmentDatabase
) -> Level:
    """Return the level of rows with these sequences (I as L)."""
    if not database.partners:
        return Level(q_value, score, is_entrapped)
    best: dict[str, int] = {}
    for row, sequence in enumerate(sequences):
        if sequence not in best or score[row] > score[best[sequence]]:
            best[sequence] = row
    partner_q_value, partner_score = np.full(len(score), np.nan), np.full(len(score), -np.inf)
    for row in np.flatnonzero(is_entrapped).tolist():
        partner = best.get(database.partner(sequences[row]))
        if partner is not None:
            partner_q_value[row], partner_score[row] = q_value[partner], score[partner]
    return Level(q_value, score, is_entrapped, None, partner_q_value, partner_score)


def _groups(groups: pa.Table, peptides: pa.Table, database: EntrapmentDatabase) -> Level:
    """Return the level of protein groups, which are entrapped if all members and the best peptide are.

    An entrapment protein may contain a peptide of the sample (I = L). The partner is the best group that contains the partner of a member.
    """
    groups = groups.filter(pc.invert(groups["is_decoy"]))
    q_value, score = _column(groups, "q_value"), _column(groups, "score")
    members = groups["accessions"].to_pylist()
    targets = peptides.filter(pc.invert(peptides["is_decoy"]))
    best_peptide: dict[str, tuple[float, str, int]] = {}
    columns = (targets[name].to_pylist() for name in ("proteins", "sequence", "spectrum"))
    for names, sequence, spectrum, value in zip(*columns, _column(targets, "best_score").tolist(), strict=True):
        for name in names:
            best_peptide[name] = max(best_peptide.get(name, (-np.inf, "", -1)), (value, sequence, spectrum))
    best_of_group = [max(best_peptide[name] for name in names) for names in members]
    spectra = np.array([spectrum for _, _, spectrum in best_of_group], np.int64)
    false = np.array(
        [
            all(name.startswith(ENTRAPMENT) for name in names) and database.is_entrapment(sequence)
            for names, (_, sequence, _) in zip(members, best_of_group, strict=True)
        ],
        bool,
    )
    if not database.partners:
        return Level(q_value, score, false, spectra)
    best: dict[str, int] = {}
    for row, names in enumerate(members):
        for name in names:
            if name not in best or score[row] > score[best[name]]:
                best[name] = row
    partner_q_value, partner_score = np.full(len(score), np.nan), np.full(len(score), -np.inf)
    for row in np.flatnonzero(false).tolist():
        partners = [best[name.removeprefix(ENTRAPMENT)] for name in members[row] if name.removeprefix(ENTRAPMENT) in best]
        if partners:
            partner = max(partners, key=score.__getitem__)
            partner_q_value[row], partner_score[row] = q_value[partner], score[partner]
    return Level(q_value, score, false, spectra, partner_q_value, partner_score)


def peer_level(
    program: str, dataset: Dataset, data: Path, database: EntrapmentDatabase, seed: int, isotope_errors: int, threads: int, scratch: Path
) -> Level:
    """Return the PSMs of a peer's search of the database, ranked by E-value. A peer's results are cached by their inputs."""
    path = scratch / f"{dataset.name}-{seed}.fasta"
    write_fasta(database.proteins, path)
    # Joining an absolute path to the data folder does not change it.
    entrapped = replace(dataset, name=f"{dataset.name}-entrapment-{seed}", database=str(path))
    matches = run_peer(program, entrapped, data, threads=threads, isotope_errors=isotope_errors).matches
    path.unlink()
    targets = [match for match in with_q_values(matches) if not match.is_decoy]
    sequences = [match.peptide.replace("I", "L") for match in targets]
    false = np.array([match.q_value <= LOOSEST and database.is_entrapment(match.peptide) for match in targets], bool)
    q_value, score = (np.array([getattr(match, name) for match in targets], np.float64) for name in ("q_value", "score"))
    return _with_partners(q_value, score, false, sequences, database)


def _column(table: pa.Table, name: str) -> Floats:
    """Return a column of numbers, NaN where it is empty."""
    return table[name].cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
