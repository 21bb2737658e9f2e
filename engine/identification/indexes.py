"""Protein and peptide indexes of an identification, built according to its parameters."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.translation_parameters import create_translation
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.identification.passes import searched_modifications
from proteoscope.engine.peptides.indexes import Databases, Indexes, open_indexes
from proteoscope.engine.peptides.known_forms import SearchedForms

__all__ = ["open_search_indexes"]


def open_search_indexes(
    proteins: Sequence[Path],
    contaminants: Sequence[Path],
    digests: Mapping[str, list[str]],
    folder: Path,
    parameters: IdentificationParameters,
    resources: Resources,
) -> Indexes:
    """Open the cached indexes of the databases, or build them.

    Parameters
    ----------
    proteins, contaminants : sequence of Path
        FASTA files.
    digests : mapping of str to list of str
        SHA-256 of the files, by ``database`` and ``contaminants``.
    folder : Path
        Temporary folder for indexes that cannot be cached.
    parameters : IdentificationParameters
        Parameters of the search.
    resources : Resources
        Threads and progress.

    Returns
    -------
    Indexes
    """
    forms = None
    if parameters.known_modifications and parameters.maximum_modifications:
        compile_kernels(["known-modifications"], resources.progress)
        forms = SearchedForms(searched_modifications(parameters), parameters.maximum_modifications, parameters.maximum_forms)
    databases = Databases(
        proteins,
        contaminants,
        {kind: digests[kind] for kind in ("database", "contaminants")},
        create_translation(parameters),
        parameters.known_variants,
        forms,
    )
    return open_indexes(databases, folder, parameters, resources)
