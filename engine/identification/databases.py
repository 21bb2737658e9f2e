"""Databases of an identification, as its parameters say how they are searched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proteoscope.engine.chemistry.modifications import parse_modification, replacing_fixed
from proteoscope.engine.formats.translation_parameters import translation_of
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.peptides.indexes import Databases
from proteoscope.engine.peptides.known_forms import SearchedForms

__all__ = ["searched_databases"]


def searched_databases(
    proteins: Sequence[Path], contaminants: Sequence[Path], digests: dict[str, list[str]], parameters: IdentificationParameters
) -> Databases:
    """Return the databases with the forms that are searched.

    Parameters
    ----------
    proteins, contaminants : sequence of Path
        Files.
    digests : dict
        Their SHA-256, by ``database`` and ``contaminants``.
    parameters : IdentificationParameters
        Parameters of the search.
    """
    forms = None
    if parameters.known_modifications and parameters.maximum_modifications:
        variable, fixed = (
            tuple(map(parse_modification, names)) for names in (parameters.variable_modifications, parameters.fixed_modifications)
        )
        forms = SearchedForms(replacing_fixed(variable, fixed), parameters.maximum_modifications, parameters.maximum_forms)
    return Databases(
        proteins, contaminants, {kind: digests[kind] for kind in ("database", "contaminants")}, translation_of(parameters),
        parameters.known_variants, forms,
    )  # fmt: skip
