"""Data of the view of a quantification: tables by sample, with one row per protein or peptide, and data of its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.formats.protein_names import GENE, ORGANISM
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project import Project
from proteoscope.engine.quantification.corrections import quantity_parts
from proteoscope.engine.quantification.results import TableParts, chunks_of, whole_table
from proteoscope.engine.quantification.tables import CHANGES, ION_TRACES, PEPTIDES, PEPTIDOFORMS, PROTEINS, SAMPLES, SITE_QUANTITIES
from proteoscope.engine.results.arrow import in_one, or_null
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.sequences.protein_labels import protein_label
from proteoscope.engine.views.conditions import Condition, any_of, compares, contains_in, given
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.quantity_clusters import HeatMap, cluster_quantities

__all__ = [
    "PEPTIDES_BY_SAMPLE",
    "PROTEINS_BY_SAMPLE",
    "SHOWN_TABLES",
    "SITES_BY_SAMPLE",
    "STATES",
    "Components",
    "QuantityFilter",
    "QuantityOverview",
    "Samples",
    "Sites",
    "Volcano",
    "peptides_and_comparisons",
    "principal_components",
    "put_sites",
    "quantity_conditions",
    "sample_correlations",
    "with_tables_by_sample",
]

STATES = ("measured", "transferred", "too low", "refused", "no shared ion", "not seen")
"""States of a quantity, in the order in which figures stack them."""
_LARGEST_LOG = 1100.0
_TINY = 1e-300
"""Minimum p-value and q-value in figures, to which smaller values are set."""
_FIRST_LOG = -700.0
_VERSUS = " / "
"""Text between the conditions in the name of a comparison."""
_BY_SAMPLE = Column(
    "by_sample",
    "By sample",
    "log2 quantities in all samples, in the order of the samples. Colours show the distance from the median of the row:"
    " blue lower, orange higher, empty if missing",
    "heat",
    18,
    type="list<double>",
    is_nullable=True,
)
_MEAN = Column("mean", "Mean log2", "Mean of the log2 quantities of all samples with a quantity", "number", 8, 2, is_nullable=True)
_SPREAD = Column("spread", "log2 range", "Largest minus smallest log2 quantity", "number", 7, 2, is_nullable=True)
_MISSING = Column("n_missing", "Missing", "Number of samples without a quantity", "integer", 7)
_SPECTRA = Column("n_psms", "PSMs", "Number of PSMs in all samples together", "integer", 6)
PROTEINS_BY_SAMPLE = Table(
    "proteins_by_sample",
    "Proteins by sample",
    (
        PROTEINS.by_name["accession"],
        GENE,
        _BY_SAMPLE,
        _MEAN,
        _SPREAD,
        _MISSING,
        Column("n_peptides", "Peptides", "Number of quantified peptides, in the sample with the most peptides", "integer", 8),
        _SPECTRA,
        PROTEINS.by_name["description"],
        ORGANISM,
    ),
)
PEPTIDES_BY_SAMPLE = Table(
    "peptides_by_sample",
    "Peptides by sample",
    (PEPTIDES.by_name["sequence"], _BY_SAMPLE, _MEAN, _SPREAD, _MISSING, _SPECTRA, PEPTIDES.by_name["accession"]),
    links=("accession",),
)
_OF_SITE = ("position", "residue", "modification")
SITES_BY_SAMPLE = Table(
    "sites_by_sample",
    "Sites by sample",
    (
        PROTEINS.by_name["accession"],
        GENE,
        *(SITE_QUANTITIES.by_name[name] for name in (*_OF_SITE, "site_probability")),
        Column(
            "fold_change",
            "log2 change",
            "Mean log2 ratio of the site to its protein in the first condition of the selected comparison, minus that in the reference"
            " condition; without a test",
            "number",
            10,
            3,
            is_nullable=True,
        ),
        Column(
            "relative",
            "By protein",
            "log2 ratios of the site to its protein in all samples, in the order of the samples. Colours show the distance from the"
            " median of the row: blue lower, orange higher, empty if missing",
            "heat",
            18,
            type="list<double>",
            is_nullable=True,
        ),
        _BY_SAMPLE,
        SITE_QUANTITIES.by_name["localisation_q_value"],
        Column("n_first", "Samples", "Number of samples of the first condition with a ratio of the site to its protein", "integer", 7),
        Column("n_second", "Reference samples", "Number of samples of the reference condition with such a ratio", "integer", 9),
        _MEAN,
        _SPREAD,
        _MISSING,
        SITE_QUANTITIES.by_name["n_peptidoforms"],
        PROTEINS.by_name["description"],
    ),
)
SHOWN_TABLES = (CHANGES, PROTEINS_BY_SAMPLE, PEPTIDES_BY_SAMPLE, SITES_BY_SAMPLE, ION_TRACES, SAMPLES)
"""Tables shown for a run; tables by sample have one row per protein, peptide or site, with the quantities in all samples."""
_LONG = {PROTEINS_BY_SAMPLE.name: PROTEINS, PEPTIDES_BY_SAMPLE.name: PEPTIDES}


@dataclass(frozen=True)
class QuantityFilter:
    """Filter of rows, with thresholds of q-value and log2 fold change that define a change.

    Attributes
    ----------
    comparison
        Comparison of conditions whose changes are shown, or None.
    is_changed
        True to show only proteins whose change passes the thresholds.
    """

    text: str = ""
    q_value: float = 0.01
    fold_change: float = 0.0
    comparison: str | None = None
    is_changed: bool = False


def quantity_conditions(chosen: QuantityFilter, table: str) -> list[Condition]:
    """Return the conditions of a filter on one of `SHOWN_TABLES`."""
    texts = {
        CHANGES.name: ("accession", "description"),
        PROTEINS_BY_SAMPLE.name: ("accession", "description"),
        PEPTIDES_BY_SAMPLE.name: ("sequence", "accession"),
        SITES_BY_SAMPLE.name: ("accession", "description", "modification"),
        ION_TRACES.name: ("peptide", "file", "refused"),
        SAMPLES.name: ("sample", "condition"),
    }[table]
    conditions = contains_in(texts, chosen.text)
    if table != CHANGES.name:
        return conditions
    conditions += given(("comparison", "=", chosen.comparison))
    if chosen.is_changed:
        conditions.append(compares("q_value", "<=", chosen.q_value))
        size = chosen.fold_change
        conditions.append(any_of((compares("log2_fold_change", ">=", size), compares("log2_fold_change", "<=", -size))))
    return conditions


@dataclass(frozen=True, eq=False)
class Samples:
    """Quantities of n proteins or peptides in s samples.

    Attributes
    ----------
    samples, conditions
        Names of the samples and of their conditions, s each; a condition may be ''.
    keys
        Accessions of the proteins, or sequences of the peptides, n.
    owner
        For peptides, accession of the protein to which the peptide contributes, '' for none; for proteins, the accession.
    log2
        log2 quantities, NaN if missing, shape (n, s), float64.
    state
        State of each quantity, index into `STATES`, shape (n, s), int8.
    label
        Display names, n: genes, otherwise accessions or sequences.
    """

    samples: tuple[str, ...]
    conditions: tuple[str, ...]
    keys: tuple[str, ...]
    owner: tuple[str | None, ...]
    log2: NDArray[np.float64]
    state: NDArray[np.int8]
    label: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.keys)

    def ordered(self, columns: NDArray[np.int64], *, has_conditions: bool = True) -> Samples:
        """Return the quantities of the samples `columns`, in this order, optionally without the conditions of the samples."""
        samples, conditions = (tuple(names[at] for at in columns.tolist()) for names in (self.samples, self.conditions))
        conditions = conditions if has_conditions else ("",) * len(samples)
        return replace(self, samples=samples, conditions=conditions, log2=self.log2[:, columns], state=self.state[:, columns])

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row of each key (accession or sequence)."""
        return {key: row for row, key in enumerate(self.keys)}

    def rows_of(self, protein: str) -> NDArray[np.int64]:
        """Return the rows that contribute to a protein."""
        return np.array([row for row, name in enumerate(self.owner) if name == protein], np.int64)

    @cached_property
    def has(self) -> NDArray[np.bool_]:
        """True if there is a quantity, shape (n, s)."""
        return ~np.isnan(self.log2)

    @cached_property
    def by_missing(self) -> NDArray[np.int64]:
        """Rows sorted by the number of missing quantities, (n,); rows that lack the quantities of the same samples are adjacent."""
        return np.lexsort((*(~self.has).T[::-1], (~self.has).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class Volcano:
    """Changes of m proteins with p-values between two conditions.

    Attributes
    ----------
    row : (m,) int64
        Row of each protein in the table of changes.
    fold_change : (m,) float64
        log2 fold changes.
    p_value, q_value : ndarray of float64, shape (m,)
        p-value and q-value of each protein.
    label : tuple of str
        Display names: genes, otherwise accessions.
    """

    comparison: str
    row: NDArray[np.int64]
    accession: tuple[str, ...]
    fold_change: NDArray[np.float64]
    p_value: NDArray[np.float64]
    q_value: NDArray[np.float64]
    label: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def height(self) -> NDArray[np.float64]:
        """-log10 of the p-values, (m,); p-values below `_TINY` are replaced by `_TINY`."""
        return -np.log10(np.maximum(self.p_value, _TINY))

    def changed(self, q_value: float, fold_change: float) -> NDArray[np.bool_]:
        """Return True for changes with at most the given q-value and at least the given absolute log2 fold change, (m,)."""
        return (self.q_value <= q_value) & (np.abs(self.fold_change) >= fold_change)

    def height_at(self, q_value: float) -> float:
        """Return the height (-log10 of a p-value) of the threshold `q_value` in the plot: proteins with at most this q-value are above.

        Between proteins, heights are interpolated, so that the height decreases continuously with the q-value.
        """
        q, lowest, highest = self._steps
        wanted = float(np.log10(min(max(q_value, _TINY), 1.0)))
        at = int(np.searchsorted(q, wanted, side="right"))
        fraction = (wanted - q[at - 1]) / (q[at] - q[at - 1])
        return float(-(highest[at - 1] + fraction * (lowest[at] - highest[at - 1])))

    def q_value_at(self, height: float) -> float:
        """Return the q-value at a height; inverse of `height_at`.

        A height between two proteins with the same q-value has this q-value.
        """
        q, lowest, highest = self._steps
        wanted = min(max(-height, float(lowest[0])), 0.0)
        at = min(max(int(np.searchsorted(lowest, wanted, side="right")), 1), len(q) - 1)
        fraction = max(0.0, wanted - highest[at - 1]) / max(lowest[at] - highest[at - 1], _TINY)
        return float(min(10.0 ** (q[at - 1] + fraction * (q[at] - q[at - 1])), 1.0))

    @cached_property
    def _steps(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """log10 of the distinct q-values, ascending, and log10 of the minimum and of the maximum p-value with each q-value.

        The first and last elements are end points without proteins, for the interpolation.
        """
        q, group = np.unique(np.log10(np.maximum(self.q_value, _TINY)), return_inverse=True)
        p_value = np.log10(np.maximum(self.p_value, _TINY))
        lowest, highest = np.full(len(q), np.inf), np.full(len(q), -np.inf)
        np.minimum.at(lowest, group, p_value)
        np.maximum.at(highest, group, p_value)
        # Below the first protein, q-values are proportional to p-values; after the last protein, both end at 1.
        first, last = _FIRST_LOG + (lowest[0] - q[0] if len(q) else 0.0), 1e-9
        ends = [(_FIRST_LOG, q), (first, lowest), (first, highest)]
        q, lowest, highest = (np.concatenate(([begin], values, [last])) for begin, values in ends)
        return q, lowest, highest


@dataclass(frozen=True, eq=False)
class Components:
    """First two principal components of s samples.

    `scores` has shape (s, 2), `variance_fraction` is the fraction of the variance that each component explains, and `n_items` is the
    number of proteins or peptides used.
    """

    scores: NDArray[np.float64]
    variance_fraction: tuple[float, float]
    n_items: int


@dataclass(frozen=True, eq=False)
class Sites:
    """Quantities of n sites of localised modifications in s samples.

    Attributes
    ----------
    columns
        Columns of `SITES_BY_SAMPLE` that do not depend on the comparison, by name.
    relative
        log2 ratios of the sites to their proteins, NaN if missing, shape (n, s), float64.
    conditions
        Conditions of the samples, s; a condition may be ''.
    """

    columns: Mapping[str, Any]
    relative: NDArray[np.float64]
    conditions: tuple[str, ...]

    def compared(self, comparison: str | None) -> pa.Table:
        """Return the table `SITES_BY_SAMPLE`, with the fold changes of a comparison, or without fold changes."""
        compared = [np.flatnonzero(np.array(self.conditions) == name) for name in self._conditions_of(comparison or "")]
        (mean, n_first), (reference, n_second) = (_means(self.relative[:, samples]) for samples in compared)
        changes = {"fold_change": or_null(mean - reference), "n_first": n_first, "n_second": n_second}
        return SITES_BY_SAMPLE.arrow({**self.columns, **changes})

    def _conditions_of(self, comparison: str) -> tuple[str | None, str | None]:
        """Return the two conditions of a comparison, the reference second; (None, None) if they are unknown.

        The text is ``FIRST`` + `_VERSUS` + ``REFERENCE``; names of conditions may also contain `_VERSUS`.
        """
        parts = comparison.split(_VERSUS)
        pairs = ((_VERSUS.join(parts[:i]), _VERSUS.join(parts[i:])) for i in range(1, len(parts)))
        return next((pair for pair in pairs if set(self.conditions).issuperset(pair)), (None, None))


@dataclass(frozen=True, eq=False)
class QuantityOverview:
    """Data of the figures of a quantification.

    Attributes
    ----------
    changes
        Row in the table of changes for each pair of comparison and accession.
    sites
        Sites of localised modifications; none if the run has none.
    peptidoforms
        Peptidoforms in ProForma, by sequence.
    components, correlations
        Principal components (or None) and correlations of the samples, from the quantities of proteins.
    heat_map
        Heat map of the proteins, or None if there are too few quantities.
    """

    proteins: Samples
    peptides: Samples
    volcanos: tuple[Volcano, ...]
    changes: Mapping[tuple[str, str], int]
    sites: Sites
    peptidoforms: Mapping[str, tuple[str, ...]]
    components: Components | None
    correlations: NDArray[np.float64]
    heat_map: HeatMap | None

    def volcano_of(self, comparison: str | None) -> Volcano | None:
        """Return the volcano plot data of a comparison, or None."""
        return next((volcano for volcano in self.volcanos if volcano.comparison == comparison), None)

    def peptidoforms_of(self, protein: str) -> tuple[str, ...]:
        """Return the peptidoforms, in ProForma, that contribute to a protein."""
        sequences = (self.peptides.keys[row] for row in self.peptides.rows_of(protein).tolist())
        return tuple(form for sequence in sequences for form in self.peptidoforms.get(sequence, ()))


def put_sites(run: FinishedRun, sites: Sites, comparison: str | None) -> None:
    """Replace the table `SITES_BY_SAMPLE` of a run by a table with the same rows and the fold changes of `comparison`."""
    run.tables.put(SITES_BY_SAMPLE.name, PROTEINS.name, sites.compared(comparison))


def with_tables_by_sample(run: FinishedRun, comparison: str | None = None) -> QuantityOverview:
    """Add tables by sample to a run, with manual corrections applied, and return the data of its figures.

    The table of sites has the fold changes of `comparison`, by default the first one.

    Raises
    ------
    InputError
        If a table is damaged.
    """
    tables = quantity_parts(run.project, run.run.id)
    result, wide = {}, {}
    for name, table in _LONG.items():
        result[name], wide[name] = _samples(table, tables, name)
        run.tables.put(name, table.name, wide[name])
    are_corrected = bool(run.project.row_corrections(run.run.id, ION_TRACES.name))
    for table in (CHANGES, ION_TRACES, SAMPLES):
        if are_corrected or table.name in run.tables.made:
            run.tables.put(table.name, table.name, whole_table(tables, table))
    changes = whole_table(tables, CHANGES)
    sites, comparisons = _sites(tables, wide[PROTEINS_BY_SAMPLE.name]), changes["comparison"].to_pylist()
    put_sites(run, sites, comparison or next(iter(comparisons), None))
    names = zip(comparisons, changes["accession"].to_pylist(), strict=True)
    rows = {key: row for row, key in enumerate(names)}
    forms: dict[str, dict[str, None]] = {}
    for long in chunks_of(tables[PEPTIDOFORMS.name]):
        first = long.select(["sequence", "peptide"]).take(np.arange(0, len(long), len(result[PEPTIDES_BY_SAMPLE.name].samples)))
        for sequence, peptide in zip(first["sequence"].to_pylist(), first["peptide"].to_pylist(), strict=True):
            forms.setdefault(sequence, {})[peptide] = None
    of_sequence = {sequence: tuple(form) for sequence, form in forms.items()}
    proteins, peptides = (result[name] for name in _LONG)
    components, correlations, heat_map = principal_components(proteins), sample_correlations(proteins), cluster_quantities(proteins.log2)
    return QuantityOverview(proteins, peptides, _volcanos(changes), rows, sites, of_sequence, components, correlations, heat_map)


def peptides_and_comparisons(project: Project, run: str) -> tuple[Samples, tuple[str, ...]]:
    """Return the peptide quantities of a run after manual corrections, and the names of its comparisons in order.

    Raises
    ------
    InputError
        If a table is damaged.
    """
    tables = quantity_parts(project, run)
    comparisons = whole_table(tables, CHANGES)["comparison"].to_pylist()
    return _samples(PEPTIDES, tables, PEPTIDES_BY_SAMPLE.name)[0], tuple(dict.fromkeys(comparisons))


def _samples(table: Table, tables: Mapping[str, TableParts], name: str) -> tuple[Samples, pa.Table]:
    """Return the quantities in a table of proteins or peptides, by sample, and the table `name` by sample that the window shows."""
    samples = whole_table(tables, SAMPLES)
    names, conditions = samples["sample"].to_pylist(), tuple(sample or "" for sample in samples["condition"].to_pylist())
    n, key = len(names), "sequence" if "sequence" in table.by_name else "accession"
    keys, owner, label = list[str](), list[str | None](), list[str]()
    logs, states, wide = [np.zeros((0, n))], [np.zeros((0, n), np.int8)], list[pa.Table]()
    for long in (table.schema().empty_table(), *chunks_of(tables[table.name])):
        first = np.arange(0, len(long), n)
        keys += long[key].take(first).to_pylist()
        owner += long["accession"].take(first).to_pylist()
        if table is PROTEINS:
            label += map(protein_label, keys[len(label) :], long["description"].take(first).to_pylist())
        logs.append(_logs(long["log2_quantity"], n))
        state = pa.compute.index_in(in_one(long["state"]), value_set=pa.array(STATES))
        states.append(state.to_numpy(zero_copy_only=False).astype(np.int8).reshape(-1, n))
        wide.append(_wide(long, logs[-1], name))
    joined = np.concatenate(logs), np.concatenate(states)
    return Samples(tuple(names), conditions, tuple(keys), tuple(owner), *joined, tuple(label or keys)), pa.concat_tables(wide)


def _wide(long: pa.Table, logs: NDArray[np.float64], name: str) -> pa.Table:
    """Return rows of the table by sample that the window shows."""
    n_samples = logs.shape[1]
    first = np.arange(0, len(long), n_samples)
    columns: dict[str, Any] = {
        **_summaries(logs),
        "n_psms": long["n_psms"].to_numpy().reshape(-1, n_samples).sum(axis=1),
        "accession": long["accession"].take(first),
    }
    if name == PEPTIDES_BY_SAMPLE.name:
        return PEPTIDES_BY_SAMPLE.arrow({**columns, "sequence": long["sequence"].take(first)})
    n_peptides = long["n_peptides"].to_numpy().reshape(-1, n_samples).max(axis=1, initial=0)
    described = {name: long[name].take(first) for name in ("description", GENE.name, ORGANISM.name)}
    return PROTEINS_BY_SAMPLE.arrow({**columns, "n_peptides": n_peptides, **described})


def _logs(column: pa.ChunkedArray, n_samples: int) -> NDArray[np.float64]:
    """Return log2 values by sample, (n, n_samples), NaN if missing."""
    logs = column.to_numpy().astype(np.float64).reshape(-1, n_samples)
    # Real quantities are not larger, but an untrusted table may contain any number.
    return np.where(np.abs(logs) <= _LARGEST_LOG, logs, np.nan)


def _heat(logs: NDArray[np.float64]) -> pa.Array:
    """Return the log2 values of n rows, (n, samples), as a list for each row."""
    offsets = np.arange(len(logs) + 1) * logs.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), or_null(logs))


def _summaries(logs: NDArray[np.float64]) -> dict[str, Any]:
    """Return columns for log2 quantities, (n, samples): the quantities by sample, mean, range and number of missing quantities."""
    has = ~np.isnan(logs)
    count = has.sum(axis=1)
    highest = np.where(has, logs, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(has, logs, np.inf).min(axis=1, initial=np.inf)
    spread = np.where(count > 0, highest - lowest, np.nan)
    return {
        "by_sample": _heat(logs),
        "mean": or_null(_means(logs)[0]),
        "spread": or_null(spread),
        "n_missing": logs.shape[1] - count,
    }


def _means(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the mean of the values of each row (NaN if all are missing) and the number of values of each row, both (n,)."""
    count = (~np.isnan(logs)).sum(axis=1)
    return np.divide(np.nansum(logs, axis=1), count, out=np.full(len(logs), np.nan), where=count > 0), count


def _sites(tables: Mapping[str, TableParts], proteins: pa.Table) -> Sites:
    """Return the sites of localised modifications; `proteins` is the table `PROTEINS_BY_SAMPLE`."""
    conditions = tuple(condition or "" for condition in whole_table(tables, SAMPLES)["condition"].to_pylist())
    proteins = proteins.combine_chunks()
    row_of = {accession: row for row, accession in enumerate(proteins["accession"].to_pylist())}
    names, ratios, parts = ("accession", "site_probability", "localisation_q_value", "n_peptidoforms", *_OF_SITE), list[Any](), list[Any]()
    for long in (SITE_QUANTITIES.schema().empty_table(), *chunks_of(tables.get(SITE_QUANTITIES.name, ()))):
        first = np.arange(0, len(long), len(conditions))
        ratios.append(_logs(long["log2_relative"], len(conditions)))
        protein = pa.array([row_of.get(accession) for accession in long["accession"].take(first).to_pylist()], pa.int64())
        columns: dict[str, Any] = {
            **_summaries(_logs(long["log2_quantity"], len(conditions))),
            **{name: long[name].take(first) for name in names},
            **{name: proteins[name].take(protein) for name in (GENE.name, "description")},
            "relative": _heat(ratios[-1]),
        }
        parts.append(pa.table(columns))
    every = pa.concat_tables(parts)
    return Sites({name: in_one(every[name]) for name in every.column_names}, np.concatenate(ratios), conditions)


def _volcanos(changes: pa.Table) -> tuple[Volcano, ...]:
    comparison = np.array(changes["comparison"].to_pylist(), object)
    numbers = [changes[name].to_numpy().astype(np.float64) for name in ("log2_fold_change", "p_value", "q_value")]
    accession = np.array(changes["accession"].to_pylist(), object)
    description = np.array(changes["description"].to_pylist(), object)
    has = np.isfinite(np.array(numbers)).all(axis=0)
    result = []
    for name in dict.fromkeys(comparison.tolist()):
        row = np.flatnonzero((comparison == name) & has)
        label = tuple(map(protein_label, accession[row].tolist(), description[row].tolist()))
        fold_change, p_value, q_value = (values[row] for values in numbers)
        result.append(Volcano(name, row, tuple(accession[row].tolist()), fold_change, p_value, q_value, label))
    return tuple(result)


def principal_components(samples: Samples) -> Components | None:
    """Return the first two principal components of samples, from the proteins or peptides with a quantity in every sample.

    Return None for fewer than three samples, or fewer than three such proteins or peptides. Samples without quantities have NaN scores.
    log2 quantities are centred per row, but not scaled. The sign of a component makes its largest loading positive.
    """
    used = np.asarray(samples.has.any(axis=0))
    rows = np.asarray(samples.has[:, used].all(axis=1))
    if used.sum() < 3 or rows.sum() < 3:
        return None
    values = samples.log2[rows][:, used].T
    values = values - values.mean(axis=0)
    u, s, v = np.linalg.svd(values, full_matrices=False)
    total = float((s**2).sum())
    if not total > 0:
        return None
    sign = np.sign(v[np.arange(2), np.abs(v[:2]).argmax(axis=1)])
    scores = np.full((len(used), 2), np.nan)
    scores[used] = u[:, :2] * s[:2] * sign
    return Components(scores, (float(s[0] ** 2 / total), float(s[1] ** 2 / total)), int(rows.sum()))


def sample_correlations(samples: Samples) -> NDArray[np.float64]:
    """Return the Pearson correlations of samples, (s, s), from the log2 quantities of proteins or peptides in both samples.

    Pairs with fewer than three common proteins or peptides, or with constant quantities, give NaN.
    """
    has = samples.has.astype(np.float64)
    value = np.where(samples.has, samples.log2, 0.0)
    # Centre first, so that the sums of squares stay accurate.
    centre = np.divide(value.sum(axis=0), has.sum(axis=0), out=np.zeros(value.shape[1]), where=has.sum(axis=0) > 0)
    value = np.where(samples.has, value - centre, 0.0)
    n = has.T @ has
    x, xx, xy = value.T @ has, (value**2).T @ has, value.T @ value
    with np.errstate(divide="ignore", invalid="ignore"):
        across = xy - x * x.T / n
        variation = np.maximum(xx - x**2 / n, 0.0)
        result = across / np.sqrt(variation * variation.T)
    is_defined = (n >= 3) & (variation > 1e-12 * xx) & (variation.T > 1e-12 * xx.T)
    return np.where(is_defined, np.clip(result, -1, 1), np.nan)
