"""Data of the evidence view: a protein with its peptides, sites and similar chains, aligned by residue.

Residues of the protein are indexed from 0. Every selection is converted to these indices, which select peptides, alignment columns and
chain residues.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow, ProteinRow
from proteoscope.engine.chemistry.peptidoforms import parse
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.evidence.structure_files import find_structure
from proteoscope.engine.sequences.matrices import encode, read_matrix
from proteoscope.engine.structure_search.hit_chains import ChainInFile
from proteoscope.engine.structures.colouring import MAXIMUM_HITS, ChainEvidence
from proteoscope.engine.structures.database import open_database
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.structures.sources import DATABASE_FILE
from proteoscope.engine.views.aligned_pair import IDENTICAL, MISMATCH, AlignedPair
from proteoscope.engine.views.conditions import Condition, Selected, among, compares, contains_in
from proteoscope.engine.views.coverage import CarriedModification, Coverage, PlacedPeptide, covered_by
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.peptide_quantities import LinkedQuantities, PeptideQuantities
from proteoscope.engine.views.tables import TableSource
from proteoscope.engine.views.traces import Trace, create_query_trace, superpose_chain

__all__ = [
    "ChainPair",
    "MappedChain",
    "ProteinEvidence",
    "ShownStructure",
    "find_peptide_position",
    "link_quantities",
    "over_residue",
    "protein_conditions",
    "protein_evidence",
    "read_shown_structure",
    "refer_to_proteins",
    "refers_to_protein",
    "superpose_other_chains",
]

_REMEDY = "Restore the file, or map the peptides onto structures again"
_DASH, _X = "-", "X"
_MAXIMUM_SKIPPED = 100_000  # maximum number of unaligned residues of a chain that an alignment shows
_SAME_MASS = 0.001  # Da, maximum difference between the masses of a peptide's modification and its site
_UNSURE = ("distant", "remote")  # kinds of chains whose structure may differ from the protein's
_NEAREST_ATOMS = 3  # minimum number of residue pairs for a superposition


@dataclass(frozen=True, eq=False)
class MappedChain:
    """Chain that is similar to a protein, from the tables of the run.

    Attributes
    ----------
    row
        Row in the table of chains.
    values
        Values of the row by column name.
    position
        Indices of the k aligned residues of the protein, from 0, ascending, (k,).
    chain_residue
        Indices of the k aligned residues of the chain, from 0, (k,).
    residues
        Symbols of the k aligned residues of the chain.
    labels
        Residue numbers of the k aligned residues in the structure file, as texts.
    exposure
        Solvent exposure of the k aligned residues of the chain, 0 to 1, NaN if unknown, (k,).
    unseen
        Residues of the protein (from 0) that are aligned with chain residues without coordinates, (u,).
    """

    row: int
    values: Mapping[str, Any]
    position: NDArray[np.int64]
    chain_residue: NDArray[np.int64]
    residues: str
    labels: tuple[str, ...]
    exposure: NDArray[np.float64]
    unseen: NDArray[np.int64]

    @property
    def name(self) -> str:
        """Name of the chain, followed by the kind of similarity if its structure may differ from the structure of the protein."""
        kind = self.values["kind"]
        return f"{self.values['chain']} ({kind})" if kind in _UNSURE else str(self.values["chain"])


@dataclass(frozen=True, eq=False)
class ProteinEvidence:
    """A protein of r residues with its evidence: peptides, sites and similar chains.

    Attributes
    ----------
    row
        Row of the table of proteins.
    accession
        Name of the protein.
    coverage
        Peptides along the protein; the `row` of a peptide is its row in the table of peptide positions.
    n_psms
        Number of PSMs that cover each residue, shape (r,).
    is_modified
        True for modified residues, shape (r,).
    probabilities
        Highest site probability of modified residues whose sites were localised, by index of the residue, from 0.
    alternatives
        Site probability of residues at which a modification is possible, but less likely than at another residue, by index, from 0.
    conservation
        Conservation of each residue among homologues, 0 to 1, NaN if unknown, shape (r,).
    quantities
        Peptide quantities of the same identification, or None.
    sites
        First row in the table of sites by index of the modified residue, from 0.
    chains
        Chains that are similar to the protein, most similar first.
    """

    row: ProteinRow
    accession: str
    coverage: Coverage
    n_psms: NDArray[np.int64]
    is_modified: NDArray[np.bool_]
    conservation: NDArray[np.float64]
    sites: Mapping[int, int]
    chains: tuple[MappedChain, ...]
    quantities: PeptideQuantities | None = None
    probabilities: Mapping[int, float] = field(default_factory=dict)
    alternatives: Mapping[int, float] = field(default_factory=dict)

    @cached_property
    def quantity(self) -> NDArray[np.float64] | None:
        """Mean quantity of the peptides that cover each residue, NaN without peptides, (r,); None if there are no quantities."""
        return None if self.quantities is None else self.quantities.mean_by_residue(self.coverage)

    def __len__(self) -> int:
        return len(self.coverage.sequence)

    def name_of(self, position: int) -> str:
        """Return the name of the residue with index `position`, such as ``K45``."""
        return f"{self.coverage.sequence[position]}{position + 1}"

    def site_text(self, position: int) -> str:
        """Return the name of a modified residue, followed by the probability of the site if known."""
        for chances, text in ((self.probabilities, "site probability"), (self.alternatives, "alternative site, probability")):
            if position in chances:
                return f"{self.name_of(position)}, {text} {chances[position]:.2f}"
        return self.name_of(position)

    def first_over(self, position: int) -> PlacedPeptide | None:
        """Return the peptide with the lowest row index among those that cover the residue with index `position`, or None."""
        start, end, row = self._spans
        over = np.flatnonzero((start <= position) & (position < end))
        return self.coverage.peptides[int(over[np.argmin(row[over])])] if len(over) else None

    @cached_property
    def _spans(self) -> NDArray[np.int64]:
        """First residue, end (exclusive) and row of each of the p peptides, (3, p)."""
        return np.array([(peptide.start, peptide.end, peptide.row) for peptide in self.coverage.peptides], np.int64).reshape(-1, 3).T


def protein_evidence(source: TableSource, protein: ProteinRow, quantities: PeptideQuantities | None = None) -> ProteinEvidence:
    """Return the evidence of the protein in a row of the table of proteins, including peptide quantities if given.

    Raises
    ------
    InputError
        If there is no such row, or a table is damaged.
    """
    result = source.query("SELECT accession, description, sequence FROM proteins WHERE file_row_number = ?", [protein]).to_pylist()
    if not result:
        raise InputError(source.path, f"has no protein '{protein}'", remedy="Map the peptides onto structures again")
    accession, sequence = result[0]["accession"], result[0]["sequence"]
    n = len(sequence)
    peptides = source.query(
        'SELECT file_row_number AS row, peptide, sequence, n_psms, q_value, "first", "last" FROM peptide_places '
        "WHERE protein = ? ORDER BY row",
        [protein],
    ).to_pylist()
    # Check bounds here: a query relies on the statistics in a file, which may be wrong in an untrusted file.
    positions = [(peptide["first"] - 1, peptide["last"], peptide) for peptide in peptides if 1 <= peptide["first"] <= peptide["last"] <= n]
    residues = source.query("SELECT position, n_psms, conservation FROM residues WHERE protein = ?", [protein])
    position = residues["position"].to_numpy().astype(np.int64)
    is_there = (position >= 1) & (position <= n)
    n_psms = _scattered(n, position[is_there] - 1, residues["n_psms"].to_numpy()[is_there], 0)
    conservation = _scattered(n, position[is_there] - 1, residues["conservation"].to_numpy()[is_there], np.nan)
    # Runs whose sites were not localised have no alternatives.
    column = "is_alternative" if "is_alternative" in source.sibling("sites").types else "FALSE"
    every = source.query(
        f"SELECT file_row_number AS row, position, mass, site_probability, {column} AS is_alternative FROM sites WHERE protein = ? "
        "ORDER BY row DESC",
        [protein],
    ).to_pylist()
    every = [row for row in every if 1 <= row["position"] <= n]
    rows = [row for row in every if not row["is_alternative"]]
    is_modified = _scattered(n, np.array([row["position"] - 1 for row in rows], np.int64), True, False)
    # Modifications without a site, such as fixed modifications, are not marked.
    carried: dict[int, list[float]] = {}
    for row in rows:
        carried.setdefault(row["position"] - 1, []).append(row["mass"])

    def makes_a_site(modification: CarriedModification) -> bool:
        return any(abs(mass - modification.mass) <= _SAME_MASS for mass in carried.get(modification.residue, ()))

    coverage = covered_by(accession, sequence, positions, result[0]["description"], makes_a_site)
    sites = {row["position"] - 1: row["row"] for row in (*(row for row in every if row["is_alternative"]), *rows)}
    chains = tuple(_mapped_chains(source, protein, n))
    probabilities = _best_probabilities(rows)
    alternatives = {at: chance for at, chance in _best_probabilities(every).items() if not is_modified[at]}
    return ProteinEvidence(
        protein, accession, coverage, n_psms, is_modified, conservation, sites, chains, quantities, probabilities, alternatives
    )


def _best_probabilities(rows: list[dict[str, Any]]) -> dict[int, float]:
    """Return the highest known site probability of each residue, from 0."""
    result: dict[int, float] = {}
    for row in rows:
        if row["site_probability"] is not None:
            result[row["position"] - 1] = max(row["site_probability"], result.get(row["position"] - 1, 0.0))
    return result


def _mapped_chains(source: TableSource, protein: ProteinRow, n: int) -> list[MappedChain]:
    rows = source.query('SELECT file_row_number AS row, * FROM chains WHERE protein = ? ORDER BY "rank", row', [protein]).to_pylist()
    mapped = source.query(
        "SELECT chain_row, position, chain_residue, author_number, chain_letter, exposure FROM mapped_residues "
        "WHERE chain_row IN (SELECT file_row_number FROM chains WHERE protein = ?) ORDER BY chain_row, position, chain_residue",
        [protein],
    )
    of_chain, position = (mapped[name].to_numpy().astype(np.int64) for name in ("chain_row", "position"))
    residue, exposure = (mapped[name].cast("float64").to_numpy() for name in ("chain_residue", "exposure"))
    symbols, labels = (mapped[name].to_pylist() for name in ("chain_letter", "author_number"))
    is_inside = (position >= 1) & (position <= n)
    chains = []
    for chain in rows:
        first, last = np.searchsorted(of_chain, chain["row"]), np.searchsorted(of_chain, chain["row"], "right")
        inside = first + np.flatnonzero(is_inside[first:last])
        is_seen = np.isfinite(residue[inside])
        seen, unseen = inside[is_seen], inside[~is_seen]
        chains.append(
            MappedChain(
                chain["row"],
                chain,
                position[seen] - 1,
                residue[seen].astype(np.int64),
                "".join(symbols[row] or _X for row in seen.tolist()),
                tuple(labels[row] or "" for row in seen.tolist()),
                exposure[seen],
                position[unseen] - 1,
            )
        )
    return chains


@dataclass(frozen=True, kw_only=True)
class ChainPair(AlignedPair):
    """Alignment of a protein with a similar chain.

    Attributes
    ----------
    protein_residue, residue
        Residues of the protein and of the chain in each column, from 0, or -1 for a gap, (columns,).
    author
        Residue numbers of the chain in the structure file.
    unseen
        Residues of the protein (from 0) that are aligned with chain residues without coordinates.
    """

    protein_residue: NDArray[np.int64]
    residue: NDArray[np.int64]
    author: Mapping[int, str]
    unseen: frozenset[int]

    titles: ClassVar[tuple[str, str]] = ("Protein", "Chain")

    @cached_property
    def kinds(self) -> NDArray[np.uint8]:
        """Kind of each column, (columns,), as for `AlignedPair`, except that X matches no residue."""
        kinds = super().kinds.copy()
        kinds[[symbol == _X and kind == IDENTICAL for symbol, kind in zip(self.query, kinds.tolist(), strict=True)]] = MISMATCH
        return kinds

    def columns_of(self, positions: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the columns that contain selected residues of the protein.

        `positions` is True for the selected residues, shape (residues of the protein,).
        """
        is_there = self.protein_residue >= 0
        is_there[is_there] = positions[self.protein_residue[is_there]]
        return np.flatnonzero(is_there)

    def labels(self, first: int, last: int) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the first and last residue numbers of both sequences: protein residues count from 1, chain residues as in the file."""
        (query, _), rows = super().labels(first, last), self.residue[first:last]
        authors = [self.author.get(row, "?") for row in rows[rows >= 0].tolist()]
        return query, (authors[0], authors[-1]) if authors else ("", "")

    @cached_property
    def widest_label(self) -> int:
        """Length of the longest label in characters."""
        return max(len(str(self.query_start + len(self.query))), max(map(len, self.author.values()), default=1))

    def column_text(self, column: int) -> str:
        """Return the tooltip of a column: both residues, or why one is missing."""
        position, row = int(self.protein_residue[column]), int(self.residue[column])
        protein = f"Protein {self.query[column]}{position + 1}" if position >= 0 else "Protein: gap"
        if row >= 0:
            chain = f"chain {self.subject[column]} {self.author.get(row, '?')}"
        else:
            chain = "in the chain's sequence, but not observed" if position in self.unseen else "chain: gap"
        return f"{protein}, {chain}: {self.kind_names[int(self.kinds[column])]}"


@dataclass(frozen=True, eq=False)
class ShownStructure:
    """Displayed chain with its alignment to the protein.

    Attributes
    ----------
    trace
        Cα trace of the chain from its file, or None if the file is missing.
    note
        Why the trace is missing, or ''.
    """

    near: MappedChain
    pair: ChainPair
    trace: Trace | None
    note: str = ""

    def rows_of(self, positions: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the residues of the chain that are aligned with selected residues of the protein.

        `positions` is True for the selected residues, shape (residues of the protein,).
        """
        rows: NDArray[np.int64] = self.near.chain_residue[positions[self.near.position]]
        return rows


def link_quantities(run: FinishedRun) -> LinkedQuantities:
    """Return an object that reads the peptide quantities of the identification on which an evidence run is based."""
    return LinkedQuantities(run.project, str(run.project.record(run.run.id).get("source_run")))


def read_shown_structure(run: FinishedRun, protein: ProteinEvidence, near: MappedChain) -> ShownStructure:
    """Return a similar chain with its alignment to the protein; without a trace if the file of the chain is missing."""
    try:
        result = _found(run, near)
    except InputError as error:
        return ShownStructure(near, _pair(protein, near, None), None, str(error))
    return ShownStructure(
        near, _pair(protein, near, result), create_query_trace(result, _evidence(protein, near, len(result.chains.residue)))
    )


def superpose_other_chains(run: FinishedRun, protein: ProteinEvidence, shown: ShownStructure) -> tuple[list[Trace], list[str]]:
    """Superpose the other similar chains of a protein on the displayed chain, by residues that are aligned with the same protein residues.

    Returns the superposed chains, and messages about chains that cannot be superposed.
    """
    traces, reported = [], []
    if shown.trace is None:
        return [], [shown.note]
    others = [near for near in protein.chains if near.row != shown.near.row]
    for near in others[:MAXIMUM_HITS]:
        common, here, other = np.intersect1d(shown.near.position, near.position, return_indices=True)
        if len(common) < _NEAREST_ATOMS:
            reported.append(f"{near.values['chain']} has no residues in common with {shown.near.values['chain']}")
            continue
        try:
            result = _found(run, near)
        except InputError as error:
            reported.append(str(error))
            continue
        rows = np.stack([shown.near.chain_residue[here], near.chain_residue[other]], axis=1)
        traces.append(superpose_chain(shown.trace, result, rows, _evidence(protein, near, len(result.chains.residue))))
    return traces, reported


def _evidence(protein: ProteinEvidence, near: MappedChain, n: int) -> ChainEvidence:
    position = _scattered(n, near.chain_residue, near.position, -1)
    exposure = _scattered(n, near.chain_residue, near.exposure, np.nan)
    # Residues outside the protein have the index -1, which selects the appended value.
    n_psms, is_modified = np.append(protein.n_psms, 0)[position], np.append(protein.is_modified, False)[position]
    conservation = np.append(protein.conservation, np.nan)[position]
    if protein.quantities is None or protein.quantity is None:
        return ChainEvidence(position, n_psms, is_modified, exposure, conservation)
    quantity = np.append(protein.quantity, np.nan)[position]
    return ChainEvidence(position, n_psms, is_modified, exposure, conservation, quantity, protein.quantities.scale)


def _scattered(n: int, positions: NDArray[np.int64], values: NDArray[Any] | bool, none: float | bool) -> NDArray[Any]:
    """Return an array, (n,), of the type of `none`, with `values` at the indices `positions` and `none` elsewhere."""
    column = np.full(n, none)
    column[positions] = values
    return column


def _found(run: FinishedRun, near: MappedChain) -> ChainInFile:
    """Return the chain `near` from its structure file or from a structure database.

    Raises
    ------
    InputError
        If the file no longer exists or has changed, and no database contains the chain.
    """
    name = near.values["chain"]
    wanted = dict(zip(near.chain_residue.tolist(), near.residues, strict=True))
    inputs = [given for kind, given in run.inputs if kind == "structures"]
    path = find_structure(near.values["path"], [given for given in inputs if given.name != DATABASE_FILE]) or Path(near.values["path"])
    try:
        run.check_input(path)
        chains = read_structure(path).chains
        if name not in chains.names:
            raise InputError(path, f"has no chain '{name}'", remedy=_REMEDY)
        alone = chains.taken([chains.names.index(name)])
    except InputError:
        databases = [file.parent for file in inputs if file.name == DATABASE_FILE]
        if not databases:
            raise
        # A database contains the drawn chains, even if its source files have moved.
        database = open_database(databases[0])
        positions = [position for position, chain_name in enumerate(database.chains.names) if chain_name == name]
        if not positions or not wanted:
            raise
        sources = [Path(database.content.sources[int(database.content.source[position])].path) for position in positions]
        read = find_structure(near.values["path"], sources)
        position = positions[0 if read is None else sources.index(read)]
        alone, path = database.chains.taken([position]), database.file_of(position)
    symbols = alone.sequence(ChainRow(0))
    if any(row >= len(symbols) or symbols[row] != symbol for row, symbol in wanted.items()):
        raise InputError(path, f"no longer contains the chain {name} with the sequence that was searched", remedy=_REMEDY)
    return ChainInFile(alone, path)


def _pair(protein: ProteinEvidence, near: MappedChain, chain: ChainInFile | None) -> ChainPair:
    """Return the alignment from the first to the last aligned pair of residues; residues between pairs are aligned with gaps."""
    sequence, symbols = protein.coverage.sequence, chain.chains.sequence(ChainRow(0)) if chain else ""
    symbol_of = dict(zip(near.chain_residue.tolist(), near.residues, strict=True))
    columns: list[tuple[int, int]] = []
    before: tuple[int, int] | None = None
    # The limit is needed because residue numbers in untrusted files may be huge.
    workspace = _MAXIMUM_SKIPPED
    for position, row in zip(near.position.tolist(), near.chain_residue.tolist(), strict=True):
        if before is not None and (position <= before[0] or row <= before[1]):
            continue  # pairs of an alignment ascend in both sequences
        if before is not None:
            columns += [(residue, -1) for residue in range(before[0] + 1, position)]
            skipped = range(before[1] + 1, min(row, before[1] + 1 + workspace))
            workspace -= len(skipped)
            columns += [(-1, residue) for residue in skipped]
        columns.append((position, row))
        before = position, row
    at, rows = (np.array([column[k] for column in columns], np.int64) for k in (0, 1))
    upper = "".join(sequence[residue] if residue >= 0 else _DASH for residue in at.tolist())
    lower = "".join(_DASH if row < 0 else symbol_of.get(row) or (symbols[row] if row < len(symbols) else _X) for row in rows.tolist())
    author = dict(zip(near.chain_residue.tolist(), near.labels, strict=True))
    if chain is not None:
        codes = chain.chains.insertion.tolist()
        author = {row: f"{number}{chr(codes[row]) if codes[row] else ''}" for row, number in enumerate(chain.chains.author_number.tolist())}
    values = near.values
    facts = (
        f"{values['kind']}, {values['identity'] * 100:.1f} % identity of {values['n_aligned']:,} aligned residues, {values['n_gaps']:,} in"
        f" gaps, {values['n_unseen']:,} not observed in the structure",
        _certainty(values),
    )
    start = (int(at[0]) + 1, int(rows[0]) + 1) if len(columns) else (1, 1)
    return ChainPair(
        query_name=protein.accession,
        subject_name=values["chain"],
        description=values["description"],
        query_start=start[0],
        subject_start=start[1],
        query=upper,
        middle=_middle(upper, lower),
        subject=lower,
        facts=facts,
        protein_residue=at,
        residue=rows,
        author=author,
        unseen=frozenset(near.unseen.tolist()),
    )


def _certainty(values: Mapping[str, Any]) -> str:
    """Return a text with the scores of a chain's similarity to the protein: TM-score, or E-value and bit score."""
    if values["tm_score"] is not None:
        return f"found by the similarity to the fold of {values['through']}, TM-score {values['tm_score']:.3f}; aligned by superposition"
    facts = [f"E-value {values['e_value']:.2g}"] if values["e_value"] is not None else []
    return ", ".join([*facts, *([f"{values['bit_score']:.1f} bits"] if values["bit_score"] is not None else [])])


def _middle(query: str, subject: str) -> str:
    if not query:
        return ""
    scores = read_matrix("BLOSUM62").scores
    a, b = (encode(np.frombuffer(line.replace(_DASH, _X).encode(), np.uint8)) for line in (query, subject))
    is_positive = (scores[a, b] > 0).tolist()
    return "".join(
        " " if _DASH in (first, other) else first if first == other != _X else "+" if positive else " "
        for first, other, positive in zip(query, subject, is_positive, strict=True)
    )


def refers_to_protein(row: ProteinRow) -> list[Condition]:
    """Return the condition that selects, in a table with a column ``protein``, the rows that refer to the protein with the given row."""
    return [compares("protein", "=", row)]


def over_residue(row: ProteinRow, position: int) -> list[Condition]:
    """Return the conditions that select the peptide positions that cover a residue (from 0) of a protein."""
    return [*refers_to_protein(row), compares("first", "<=", position + 1), compares("last", ">=", position + 1)]


def protein_conditions(text: str) -> list[Condition]:
    """Return the conditions that select the proteins with a text in the accession, description or nearest chain."""
    text = text.strip()
    return contains_in(("accession", "description", "chain"), text) if text else []


def refer_to_proteins(text: str) -> list[Condition]:
    """Return the conditions that select, in a table with a column ``protein``, the rows of all proteins that `protein_conditions` finds."""
    conditions = protein_conditions(text)
    return [among("protein", Selected("proteins", "file_row_number", tuple(conditions)))] if conditions else []


def find_peptide_position(source: TableSource, peptide: str) -> tuple[ProteinRow, int] | None:
    """Return the first position of a ProForma peptide in a protein, as (row of the protein, row in the table of peptide positions).

    If this peptidoform has no position, another peptidoform with the same residues is used; if this has none either, return None.
    """
    try:
        sequence = parse(peptide).sequence
    except ParameterError:
        sequence = peptide
    rows = source.query(
        "SELECT protein, file_row_number AS row FROM peptide_places WHERE sequence = ? ORDER BY peptide <> ?, row LIMIT 1",
        [sequence, peptide],
    ).to_pylist()
    return (rows[0]["protein"], rows[0]["row"]) if rows else None
