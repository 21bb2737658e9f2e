"""Result classes of the searches, with their tables, and functions that open projects."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from proteoscope.engine import api, views
from proteoscope.engine.api.arguments import PathLike, one_path
from proteoscope.engine.api.results import OpenProject, Result
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.files import scratch_folder
from proteoscope.engine.lazy_pyarrow import pa

if TYPE_CHECKING:
    from proteoscope.engine.api.spectra import SpectrumAnnotation
    from proteoscope.engine.views.aligned_pair import AlignedPair

__all__ = [
    "Clustering",
    "Evidence",
    "Explanation",
    "Identification",
    "ImportedResults",
    "LibrarySearch",
    "ModifiedSearch",
    "Quantification",
    "ReadAlignment",
    "SequenceSearch",
    "StructureSearch",
    "new_project",
    "open_project",
]


class _SpectrumSearchResult(Result):
    """Result of a search that matches spectra with peptides."""

    @property
    def psms(self) -> pa.Table:
        """Accepted peptide-spectrum matches; `table` returns all matches."""
        return self.table("psms")

    @property
    def peptides(self) -> pa.Table:
        """Accepted peptides."""
        return self.table("peptides")

    @property
    def proteins(self) -> pa.Table:
        """Accepted protein groups."""
        return self.table("proteins")

    def annotate(self, psm: int = 0) -> SpectrumAnnotation:
        """Return the spectrum of a match with the ions of the search, neutral losses and the precursor.

        Parameters
        ----------
        psm : int
            Row of `psms`, from 0.

        Raises
        ------
        ParameterError
            If there is no such row.
        """
        rows = self._accepted_rows(self._described("psms"))
        if isinstance(psm, bool) or not isinstance(psm, int) or not 0 <= psm < len(rows):
            raise ParameterError(f"psm = {psm!r:.100}: expected a row of psms, from 0 to {len(rows) - 1}")
        source = self.finished.tables.source("psms")
        return api.spectra.SpectrumAnnotation(views.identification.annotated_psm(source, rows[psm], self.finished))


class Identification(_SpectrumSearchResult):
    """Result of `identify`: PSMs, peptides and protein groups."""

    kind = "identify"

    def sites(self, maximum_flr: float = 0.01) -> pa.Table:
        """Return the modified residues of the proteins, from the table ``protein_sites``, without decoy residues.

        Parameters
        ----------
        maximum_flr : float
            Maximum false localisation rate. Sites in peptides without another possible site have no rate, and are always returned
            (``has_alternative`` is False).

        Raises
        ------
        ParameterError
            If the search localised no modification.
        """
        table = self.table("protein_sites")
        compute = pa.compute
        accepted = compute.fill_null(compute.less_equal(table["localisation_q_value"], maximum_flr), False)
        certain = compute.invert(table["has_alternative"])
        return table.filter(compute.and_(compute.invert(table["is_decoy"]), compute.or_(accepted, certain)))


class ImportedResults(_SpectrumSearchResult):
    """Result of `import_results`: PSMs, peptides and protein groups of another search engine."""

    kind = "import"


class ModifiedSearch(_SpectrumSearchResult):
    """Result of `modified`: PSMs with mass shifts, the modifications that explain them, peptides and protein groups."""

    kind = "modified"
    main_table = "psms"

    @property
    def modifications(self) -> pa.Table:
        """Modifications and mass shifts, with numbers of matches."""
        return self.table("modifications")


class LibrarySearch(_SpectrumSearchResult):
    """Result of `library`: matches of spectra and library entries, and the peptides and protein groups among them."""

    kind = "library"
    main_table = "matches"

    @property
    def matches(self) -> pa.Table:
        """Accepted matches of all entries, including those without a peptide."""
        return self.table("matches")


class Clustering(Result):
    """Result of `cluster`: clusters and their members."""

    kind = "cluster"
    main_table = "clusters"

    @property
    def clusters(self) -> pa.Table:
        """Clusters of two and more spectra."""
        return self.table("clusters")

    @property
    def members(self) -> pa.Table:
        """Spectra with their cluster."""
        return self.table("members")


class Explanation(Result):
    """Result of `explain`: unidentified spectra that resemble identified ones."""

    kind = "explain"

    @property
    def explained(self) -> pa.Table:
        """Accepted explanations of spectra."""
        return self.table("explained")


class Quantification(Result):
    """Result of `quantify`: quantities of proteins and peptides by sample, and changes between conditions."""

    kind = "quantify"
    main_table = "protein_quantities"

    @property
    def proteins(self) -> pa.Table:
        """Quantities of protein groups, with one row for each protein group and sample."""
        return self.table("protein_quantities")

    @property
    def peptides(self) -> pa.Table:
        """Quantities of peptides, with one row for each peptide and sample."""
        return self.table("peptide_quantities")

    @property
    def changes(self) -> pa.Table:
        """Changes of protein groups between conditions."""
        return self.table("protein_changes")

    @property
    def samples(self) -> pa.Table:
        """Samples with their files and conditions."""
        return self.table("quantified_samples")


class Evidence(Result):
    """Result of `evidence`: proteins, their most similar structures, and peptides and modified residues on these structures."""

    kind = "evidence"
    main_table = "proteins"

    @property
    def proteins(self) -> pa.Table:
        """Proteins with their coverage."""
        return self.table("proteins")

    @property
    def chains(self) -> pa.Table:
        """Chains of structures with which proteins are aligned."""
        return self.table("chains")

    @property
    def sites(self) -> pa.Table:
        """Modified residues, with their exposure."""
        return self.table("sites")


class SequenceSearch(Result):
    """Result of `align`: hits of each query."""

    kind = "align"

    @property
    def hits(self) -> pa.Table:
        """Hits of all queries, the best of each query first."""
        return self.table("hits")

    def alignment(self, hit: int = 0) -> AlignedPair:
        """Return the alignment of the hit in a row of `hits`; its method `text` returns the aligned sequences below each other.

        Raises
        ------
        ParameterError
            If there is no such hit.
        """
        _check_row("hit", hit, self.hits.num_rows)
        source = self.finished.tables.source("hits")
        return views.hits.aligned_pair(source, hit)

    def __str__(self) -> str:
        return self.alignment().text() if self.hits.num_rows else repr(self)


class StructureSearch(Result):
    """Result of `structures`: hits of each query structure."""

    kind = "structures"

    @property
    def hits(self) -> pa.Table:
        """Hits of all queries, the best of each query first."""
        return self.table("hits")


class ReadAlignment(Result):
    """Result of `reads`: alignments of reads with references."""

    kind = "reads"

    @property
    def alignments(self) -> pa.Table:
        """Alignments, in the order of the reads."""
        return self.table("alignments")


def _check_row(name: str, row: object, n_rows: int) -> None:
    if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < n_rows:
        raise ParameterError(f"{name} = {row!r:.100}: expected a row, from 0 to {n_rows - 1}" if n_rows else "there are no hits")


def new_project(path: Path | None) -> OpenProject:
    """Return the project in the folder `path`, which may not exist yet; without a path, a temporary project."""
    if path is not None:
        return OpenProject(path)
    stack = ExitStack()
    return OpenProject(stack.enter_context(scratch_folder()) / "project", stack)


def open_project(project: PathLike) -> OpenProject:
    """Open the folder of a project.

    Parameters
    ----------
    project : str or Path
        Folder, made by a search with `out`, by the window or by the command line.

    Returns
    -------
    OpenProject
        The project with its finished runs.

    Raises
    ------
    InputError
        If the folder is not a project, or is damaged.

    Examples
    --------
    >>> import proteoscope
    >>> proteoscope.open_project("no_such_folder")
    Traceback (most recent call last):
    ...
    proteoscope.engine.errors.InputError: no_such_folder: does not exist. Give the folder of a project.
    """
    opened = OpenProject(one_path("project", project))
    opened._records()  # raises an error if there is no project
    return opened
