"""What showing the peptides of a project on structures takes, told by its records and the structures' files."""

from __future__ import annotations

from engine.entry import SearchRequest
from engine.estimates import Expectation, newest_counts
from engine.evidence.chain_files import structure_source
from engine.formats.sizes import InputSize
from engine.project import Project
from engine.sequence_search.expecting import scoring_of
from engine.structure_search.structures import check_sources

__all__ = ["expected"]

_USUAL_PROTEINS, _LENGTH, _USUAL_CHAINS = 500.0, 450.0, 1.5
_BYTES_OF_CHAIN = 6000.0  # in a database
_FILE, _PROTEIN = 0.02, 5e-3  # seconds


def expected(request: SearchRequest) -> Expectation:
    """See `engine.estimates`.

    Raises
    ------
    InputError : the folder is no project, or there are no structures.
    """
    (folder,) = request.files("project")[:1]
    counts = newest_counts(Project.open(folder).folder)
    proteins = float(counts.get("protein_groups", _USUAL_PROTEINS))
    source = structure_source(request.inputs.get("structures", ()))
    check_sources(source.files)
    paths = source.paths
    size = sum(path.stat().st_size for path in paths)
    chains = max(_USUAL_CHAINS * len(paths), size / _BYTES_OF_CHAIN if len(paths) == 1 else 0.0)
    queries, subjects = (InputSize(1, 0, n * _LENGTH, n, n * _LENGTH, (round(_LENGTH),)) for n in (proteins, chains))
    host = {"read": proteins * _PROTEIN / 5, "index": len(paths) * _FILE, "plan": proteins * _PROTEIN / 5, "report": proteins * _PROTEIN}
    return Expectation((scoring_of(queries, subjects),), host, {"proteins": proteins, "chains": chains}, chains * _LENGTH * 40)
