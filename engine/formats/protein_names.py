"""Columns of gene and organism in tables of proteins, derived from the descriptions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proteoscope.engine.formats.header_names import MAXIMUM_HEADER, MAXIMUM_NAME, ORGANISM_START, ORGANISM_WORDS
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.results.columns import Column

__all__ = ["GENE", "NAMES", "ORGANISM", "name_columns", "taxonomy_column"]

GENE = Column(
    "gene",
    "Gene",
    "Gene, from the description in the database: GN= of UniProt, [gene=] of NCBI",
    width=10,
    is_nullable=True,
    is_optional=True,
    is_hidden_if_absent=True,
)
ORGANISM = Column(
    "organism",
    "Organism",
    "Organism, from the description in the database: OS= of UniProt, [organism] of NCBI",
    width=20,
    is_nullable=True,
    is_optional=True,
    is_hidden_if_absent=True,
)
NAMES = (GENE, ORGANISM)


_KEY = "\x1f"
"""Mark that `name_columns` inserts before UniProt's keys. Before that, all control characters in headers are replaced by spaces."""


def name_columns(descriptions: Iterable[str | None] | pa.Array) -> dict[str, pa.Array]:
    """Return the columns of `NAMES` for rows with the given descriptions; equivalent to `header_names`, but for all rows at once.

    Parameters
    ----------
    descriptions : StringArray, or iterable of str or None
        Headers without their accessions.

    Returns
    -------
    dict of str to StringArray
        Columns; null if a description does not contain the name.
    """
    rows = (descriptions if isinstance(descriptions, pa.Array) else pa.array(descriptions, pa.string())).dictionary_encode()
    text, marked = _marked(rows.dictionary)
    genes = pa.compute.coalesce(_value(marked, "GN"), _in_brackets(text, "gene"))
    organisms = pa.compute.coalesce(_value(marked, "OS"), _in_brackets(text, "organism"), _last_in_brackets(text))
    return {column.name: values.take(rows.indices) for column, values in zip(NAMES, (genes, organisms), strict=True)}


def taxonomy_column(descriptions: Any) -> pa.Array:
    """Return the number in NCBI's taxonomy in each description (an Arrow array) as text, or null."""
    numbers = _value(_marked(descriptions)[1], "OX")
    return pa.compute.if_else(pa.compute.match_substring_regex(numbers, "^[1-9][0-9]{0,8}$"), numbers, None)


def _marked(descriptions: Any) -> tuple[Any, Any]:
    """Return the descriptions with control characters replaced by spaces, and these texts with `_KEY` inserted before UniProt's keys."""
    text = pa.compute.utf8_slice_codeunits(descriptions, 0, MAXIMUM_HEADER)
    text = pa.compute.replace_substring_regex(text, r"[\p{C}\p{Z}]", " ")
    return text, pa.compute.replace_substring_regex(text, r"(^| )(OS|OX|GN|PE|SV)=", _KEY + r"\2=")


def _value(marked: Any, key: str) -> Any:
    """Return the first non-empty value of a UniProt key in each text; null if there is none, or if this value is too long."""
    return _name(_extracted(marked, f"{_KEY}{key}=(?P<name> *[^{_KEY} ][^{_KEY}]*)"))


def _in_brackets(text: Any, key: str) -> Any:
    """Return the first non-empty value of an NCBI key in each text; null if there is none, or if this value is too long."""
    return _name(_extracted(text, rf"\[{key}=(?P<name> *[^\[\] ][^\[\]]*)\]"))


def _last_in_brackets(text: Any) -> Any:
    """Return the organism in the brackets at the end of a text, or null."""
    inside = _extracted(text, r"\[(?P<name>(?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*)\] *$")
    is_organism = pa.compute.match_substring_regex(inside, f"^{ORGANISM_START}")
    is_organism = pa.compute.and_kleene(is_organism, pa.compute.match_substring_regex(inside, f"^{ORGANISM_WORDS}$"))
    return _name(pa.compute.if_else(is_organism, inside, None))


def _extracted(text: Any, pattern: str) -> Any:
    return pa.compute.struct_field(pa.compute.extract_regex(text, pattern), "name")


def _name(values: Any) -> Any:
    """Return names without repeated spaces; null for names that are empty or too long."""
    compute = pa.compute
    names = compute.utf8_trim(compute.replace_substring_regex(values, " +", " "), " ")
    fits = compute.and_(compute.greater(compute.utf8_length(names), 0), compute.less_equal(compute.utf8_length(values), 2 * MAXIMUM_NAME))
    return compute.if_else(compute.and_(fits, compute.less_equal(compute.utf8_length(names), MAXIMUM_NAME)), names, None)
