"""Data of the clustering view: clusters, spectra and their counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.views.conditions import Condition, Selected, among, any_of, compares, contains, contains_in, given
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.mirror import Half, MirroredSpectra
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "MEMBER_DETAILS",
    "ClusterFilter",
    "ClusterSummary",
    "ComparedMember",
    "cluster_conditions",
    "cluster_summary",
    "compared_member",
    "find_consensus",
    "select_members",
]

MEMBER_DETAILS = (
    *("spectrum", "cluster", "title", "precursor_mz", "charge", "retention_time", "similarity_to_consensus", "is_consensus"),
    *("n_members", "spectrum_file"),
)
"""Columns shown about the compared spectrum."""


@dataclass(frozen=True)
class ClusterFilter:
    """Filter of clusters and spectra; bounds of the precursor m/z are in thomson, and None means no bound."""

    text: str = ""
    minimum_spectra: int = 1
    lowest_mz: float | None = None
    highest_mz: float | None = None


def cluster_conditions(chosen: ClusterFilter, table: str) -> list[Condition]:
    """Return the conditions of a filter on the table ``clusters`` or ``members``.

    The text of the filter selects, in ``clusters``, clusters whose label contains the text, or with a spectrum whose title or id contains
    it; in ``members``, spectra whose title or id contains the text.
    """
    conditions = given(
        ("n_members", ">=", chosen.minimum_spectra if chosen.minimum_spectra > 1 else None),
        ("precursor_mz", ">=", chosen.lowest_mz),
        ("precursor_mz", "<=", chosen.highest_mz),
    )
    named = contains_in(("title", "spectrum_id"), chosen.text)
    if named and table == "clusters":
        of_members = among("cluster", Selected("members", "cluster", tuple(named)))
        named = [any_of((contains("label", chosen.text.strip()), of_members))]
    return [*conditions, *named]


def select_members(cluster: int) -> list[Condition]:
    """Return the condition that selects the members of a cluster."""
    return [compares("cluster", "=", cluster)]


@dataclass(frozen=True)
class ClusterSummary:
    """Counts of a clustering: clusters, spectra in clusters and all spectra; `has_labels` is True if any cluster has a label."""

    n_clusters: int
    n_clustered: int
    n_spectra: int
    has_labels: bool


def cluster_summary(source: TableSource) -> ClusterSummary:
    """Count the clusters and spectra of a clustering; `source` is any open table of the run."""
    row = source.query(
        "SELECT (SELECT count(*) FROM clusters) AS clusters, (SELECT coalesce(sum(n_members), 0) FROM clusters) AS clustered, "
        "(SELECT count(*) FROM members) AS spectra, (SELECT count(label) FROM clusters) AS labels"
    ).to_pylist()[0]
    return ClusterSummary(row["clusters"], int(row["clustered"]), row["spectra"], row["labels"] > 0)


@dataclass(frozen=True)
class ComparedMember:
    """Spectrum of a cluster with the consensus spectrum of the cluster.

    Attributes
    ----------
    member
        Values of the columns `MEMBER_DETAILS`.
    consensus
        Result of `find_consensus`; None if the spectrum is in no cluster.
    """

    member: Mapping[str, Any]
    consensus: Mapping[str, Any] | None
    spectra: MirroredSpectra


def compared_member(source: TableSource, row: int, run: FinishedRun) -> ComparedMember:
    """Return a spectrum and the consensus spectrum of its cluster as a mirror plot; `row` is the row in the table of members.

    Raises
    ------
    ProteoscopeError
        If the run did not store the peaks, or if they are damaged.
    """
    member = source.row(row, MEMBER_DETAILS)
    upper = Half(member["title"] or "", run.peaks().peaks(member["spectrum"]))
    tolerance = Tolerance(float(run.parameters["bin_width"]), "Da")
    result = find_consensus(source, member["cluster"])
    if result is None:
        return ComparedMember(member, None, MirroredSpectra(upper.name, upper, None, tolerance))
    lower = Half(f"consensus of cluster {member['cluster']}", run.peaks("consensus").peaks(result["consensus"]))
    spectra = MirroredSpectra(f"{upper.name}, {lower.name}", upper, lower, tolerance, member["similarity_to_consensus"])
    return ComparedMember(member, result, spectra)


def find_consensus(source: TableSource, cluster: int) -> dict[str, Any] | None:
    """Return the values of a cluster, or None if there is no such cluster.

    ``consensus`` is the row of its consensus spectrum, ``title`` its title, and ``row`` its row in the table of clusters.
    """
    requested = "SELECT consensus, title, file_row_number AS row FROM clusters WHERE cluster = ?"
    result: list[dict[str, Any]] = source.query(requested, [cluster]).to_pylist()
    return result[0] if result else None
