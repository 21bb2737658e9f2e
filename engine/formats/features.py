"""Features of database proteins, such as domains and modified residues: kinds, columns, their files in an index, and the result table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, segment_offsets, take_segments
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.index_store import checked_offsets, checked_texts, open_column, read_numbers, require
from proteoscope.engine.results.columns import Column, Rule, Table

__all__ = [
    "FEATURES",
    "FEATURE_GROUPS",
    "FEATURE_KINDS",
    "FeatureKind",
    "FeatureRow",
    "Features",
    "features_table",
    "kind_code",
    "open_features",
    "write_features",
]

MAXIMUM_TEXT_LENGTH = 300
"""Maximum number of characters of a feature's description; descriptions without references have up to about 200."""


class FeatureKind(NamedTuple):
    """Kind of feature.

    Attributes
    ----------
    name : str
        Name of the kind in tables.
    group : str
        Group of the kind, from `FEATURE_GROUPS`.
    names : tuple of str
        Names of the kind in file formats: UniProt's key in text files and type in XML files, and the feature keys of GenBank and EMBL.
    """

    name: str
    group: str
    names: tuple[str, ...]


FEATURE_GROUPS = ("chain", "domain", "site", "modification", "disulfide bond", "variant", "secondary structure")
"""Groups of kinds, in the order of the rows of a figure; figures have a colour and a filter for each group."""

FEATURE_KINDS = (
    FeatureKind("signal peptide", "chain", ("SIGNAL", "sig_peptide")),
    FeatureKind("transit peptide", "chain", ("TRANSIT", "transit_peptide")),
    FeatureKind("propeptide", "chain", ("PROPEP", "propeptide", "proprotein")),
    FeatureKind("initiator methionine", "chain", ("INIT_MET",)),
    FeatureKind("chain", "chain", ("CHAIN", "mat_peptide")),
    FeatureKind("peptide", "chain", ("PEPTIDE",)),
    FeatureKind("domain", "domain", ("DOMAIN",)),
    FeatureKind("repeat", "domain", ("REPEAT",)),
    FeatureKind("zinc finger", "domain", ("ZN_FING", "zinc finger region")),
    FeatureKind("coiled coil", "domain", ("COILED", "coiled-coil region")),
    FeatureKind("motif", "domain", ("MOTIF", "short sequence motif")),
    FeatureKind("region", "domain", ("REGION", "region of interest", "Region", "misc_feature")),
    FeatureKind("compositional bias", "domain", ("COMPBIAS", "compositionally biased region")),
    FeatureKind("DNA binding", "domain", ("DNA_BIND", "DNA-binding region")),
    FeatureKind("nucleotide binding", "domain", ("NP_BIND", "nucleotide phosphate-binding region")),
    FeatureKind("calcium binding", "domain", ("CA_BIND", "calcium-binding region")),
    FeatureKind("topological domain", "domain", ("TOPO_DOM",)),
    FeatureKind("transmembrane", "domain", ("TRANSMEM", "transmembrane region")),
    FeatureKind("intramembrane", "domain", ("INTRAMEM", "intramembrane region")),
    FeatureKind("active site", "site", ("ACT_SITE",)),
    FeatureKind("binding site", "site", ("BINDING", "misc_binding", "Het")),
    FeatureKind("metal binding", "site", ("METAL", "metal ion-binding site")),
    FeatureKind("site", "site", ("SITE", "Site")),
    FeatureKind("modified residue", "modification", ("MOD_RES",)),
    FeatureKind("lipidation", "modification", ("LIPID", "lipid moiety-binding region")),
    FeatureKind("glycosylation", "modification", ("CARBOHYD", "glycosylation site")),
    FeatureKind("cross-link", "modification", ("CROSSLNK",)),
    FeatureKind("non-standard residue", "modification", ("NON_STD", "non-standard amino acid", "SE_CYS")),
    FeatureKind("disulfide bond", "disulfide bond", ("DISULFID", "Bond")),
    FeatureKind("variant", "variant", ("VARIANT", "sequence variant", "variation", "Variation")),
    FeatureKind("splice variant", "variant", ("VAR_SEQ", "splice variant", "VARSPLIC")),
    FeatureKind("mutagenesis", "variant", ("MUTAGEN", "mutagenesis site")),
    FeatureKind("sequence conflict", "variant", ("CONFLICT", "conflict")),
    FeatureKind("sequence uncertainty", "variant", ("UNSURE", "unsure residue", "unsure")),
    FeatureKind("helix", "secondary structure", ("HELIX",)),
    FeatureKind("strand", "secondary structure", ("STRAND",)),
    FeatureKind("turn", "secondary structure", ("TURN",)),
)
"""All supported kinds of features; ends of fragments and sources of sequences are not supported."""
_CODES = {name: code for code, kind in enumerate(FEATURE_KINDS) for name in (kind.name, *kind.names)}
_STRUCTURES = {"helix": "helix", "sheet": "strand", "strand": "strand", "turn": "turn"}
"""Names of kinds by value of the qualifier ``sec_str_type`` of ``SecStr`` features in GenBank."""


def kind_code(name: str, detail: str = "") -> int:
    """Return the index in `FEATURE_KINDS` of a kind, given its name in any supported format; -1 if it is unknown.

    Parameters
    ----------
    name : str
        Name of the kind in tables or in a file format.
    detail : str
        Type of secondary structure, for GenBank's ``SecStr`` features.

    Examples
    --------
    >>> FEATURE_KINDS[kind_code("SIGNAL")].name, FEATURE_KINDS[kind_code("modified residue")].name, kind_code("source")
    ('signal peptide', 'modified residue', -1)
    """
    return _CODES.get(_STRUCTURES.get(detail, "") if name == "SecStr" else name, -1)


class FeatureRow(NamedTuple):
    """Feature of a protein.

    Attributes
    ----------
    kind : int
        Index in `FEATURE_KINDS`.
    first, last : int
        First and last residue, from 1.
    text : str
        Description.
    """

    kind: int
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Features:
    """Features of n proteins as columns; the features of protein i are the rows ``offsets[i]:offsets[i + 1]``.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Boundaries of the rows of each protein.
    kind : ndarray of uint8, shape (f,)
        Indices in `FEATURE_KINDS`.
    first, last : ndarray of int32, shape (f,)
        First and last residue of each feature, from 1, both included.
    texts : Texts
        Descriptions of the f features.
    """

    offsets: NDArray[np.int64]
    kind: NDArray[np.uint8]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    texts: Texts

    @classmethod
    def none(cls, n: int) -> Features:
        """Return the columns of n proteins without features."""
        empty = np.zeros(0, np.int32)
        return cls(np.zeros(n + 1, np.int64), empty.astype(np.uint8), empty, empty, Texts.from_strings(()))

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[FeatureRow]]) -> Features:
        """Return the columns of n proteins, given the features of each protein."""
        flat = [row for protein_rows in rows for row in protein_rows]
        kind, first, last, texts = zip(*flat, strict=True) if flat else ((), (), (), ())
        offsets = segment_offsets(np.fromiter(map(len, rows), np.int64, len(rows)))
        return cls(
            offsets, np.array(kind, np.uint8), np.array(first, np.int32), np.array(last, np.int32), Texts.from_strings(map(_cut, texts))
        )

    @classmethod
    def joined(cls, parts: Sequence[Features]) -> Features:
        """Concatenate the features of consecutive sets of proteins."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        text_lengths = np.concatenate([np.diff(part.texts.offsets) for part in parts])
        kind, first, last = (np.concatenate([getattr(part, name) for part in parts]) for name in ("kind", "first", "last"))
        return cls(
            segment_offsets(lengths),
            kind,
            first,
            last,
            Texts(np.concatenate([part.texts.used for part in parts]), segment_offsets(text_lengths)),
        )

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, proteins: NDArray[np.int64]) -> Features:
        """Return the features of the proteins with the given indices, in the order of `proteins`."""
        rows, offsets = take_segments(np.arange(len(self)), self.offsets, proteins)
        return Features(offsets, self.kind[rows], self.first[rows], self.last[rows], self.texts.take(rows))


def _cut(text: str) -> str:
    """Return a description on one line, truncated to `MAXIMUM_TEXT_LENGTH` characters."""
    return " ".join(text[: 4 * MAXIMUM_TEXT_LENGTH].split())[:MAXIMUM_TEXT_LENGTH]


_FEATURE_COLUMNS = {
    "offsets": np.int64,
    "kind": np.uint8,
    "first": np.int32,
    "last": np.int32,
    "text_bytes": np.uint8,
    "text_offsets": np.int64,
}
_FEATURE_KINDS, _KINDS = "feature_kinds.json", ", ".join(kind.name for kind in FEATURE_KINDS)


def write_features(folder: Path, features: Features) -> None:
    """Write the features of proteins into a folder, one file for each column."""
    columns = (features.offsets, features.kind, features.first, features.last, features.texts.characters, features.texts.offsets)
    for name, column in zip(_FEATURE_COLUMNS, columns, strict=True):
        np.save(folder / f"feature_{name}.npy", np.asarray(column))
    (folder / _FEATURE_KINDS).write_text(json.dumps({"kinds": _KINDS}), encoding="utf-8")


def open_features(folder: Path, offsets: NDArray[np.int64]) -> Features | None:
    """Open the memory-mapped features of n proteins, written by `write_features`, after validation.

    Parameters
    ----------
    folder : Path
        Folder of the index.
    offsets : ndarray of int64, shape (n + 1,)
        Residues of protein i are ``offsets[i]:offsets[i + 1]``.

    Returns
    -------
    Features or None
        Features; None if the folder contains none.

    Raises
    ------
    InvalidIndexError
        If the columns are damaged, or were written by a version with other feature kinds.
    """
    if not (folder / _FEATURE_KINDS).exists():
        return None
    # Kinds are stored as indices in a list, which differs between versions.
    require(read_numbers(folder / _FEATURE_KINDS, (), ("kinds",))["kinds"] == _KINDS, f"{folder}: the feature kinds differ")
    of_protein, kind, first, last, symbols, ends = (
        open_column(folder / f"feature_{name}.npy", dtype) for name, dtype in _FEATURE_COLUMNS.items()
    )
    n = len(kind)
    is_as_long = len(of_protein) == len(offsets) and len(first) == len(last) == len(ends) - 1 == n
    require(is_as_long, f"{folder}: columns of the features have different lengths")
    checked_offsets(of_protein, n, f"{folder}: features")
    checked_texts(symbols, ends, f"{folder}: features")
    length = np.repeat(np.diff(offsets), np.diff(of_protein))
    is_inside = (kind < len(FEATURE_KINDS)).all() and (first >= 1).all() and (first <= last).all() and (last <= length).all()
    require(bool(is_inside), f"{folder}: a feature lies outside its protein")
    return Features(of_protein, kind, first, last, Texts(symbols, ends))


def _are_ordered(first: Any, last: Any) -> bool:
    return bool(pa.compute.all(pa.compute.less_equal(first, last)).as_py() is not False)


FEATURES = Table.from_columns(
    "features",
    "Features",
    (
        Column("accession", "Protein", "Accession of the protein", width=20),
        Column("kind", "Kind", "Kind of feature, such as domain, modified residue or variant", width=18),
        Column("first", "First", "First residue of the feature, from 1", "integer", 7, type="int32", low=1),
        Column("last", "Last", "Last residue of the feature, from 1", "integer", 7, type="int32", low=1),
        Column("description", "Description", "Description of the feature in the database", width=40),
    ),
    rules=(Rule(("first", "last"), "has features that end before they begin", _are_ordered),),
)
"""Table of the features of reported proteins, if the database has annotations."""


def features_table(accessions: list[str], features: Features) -> pa.Table:
    """Return the features of n proteins as a table.

    Parameters
    ----------
    accessions : list of str
        Accessions of the n proteins.
    features : Features
        Features of the n proteins.

    Returns
    -------
    pyarrow.Table
        Table with one row per feature and the columns of `FEATURES`.
    """
    owner = np.repeat(np.arange(len(accessions)), np.diff(features.offsets))
    kinds = pa.array([kind.name for kind in FEATURE_KINDS], pa.string())
    return FEATURES.arrow(
        {
            "accession": pa.array(accessions, pa.string()).take(pa.array(owner)),
            "kind": kinds.take(pa.array(features.kind)),
            "first": features.first,
            "last": features.last,
            "description": features.texts.arrow(),
        }
    )
