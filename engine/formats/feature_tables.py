"""Result table of protein features, for all searches that report proteins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from proteoscope.engine.formats.features import FEATURE_KINDS
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.columns import Column, Rule, Table

if TYPE_CHECKING:
    from proteoscope.engine.formats.features import Features

__all__ = ["FEATURES", "features_table"]


def _are_ordered(first: Any, last: Any) -> bool:
    return bool(pa.compute.all(pa.compute.less_equal(first, last)).as_py() is not False)


FEATURES = Table.of(
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
