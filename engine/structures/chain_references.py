"""A chain as people name it: a file, and after a colon the chain, as ``1lcd.cif:A``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from proteoscope.engine.errors import InputError
from proteoscope.engine.files import is_there
from proteoscope.engine.structures.reading import Models, StructureFile, read_structure

__all__ = ["ChainPlace", "parse_chain_place", "read_chain", "read_chains"]


@dataclass(frozen=True)
class ChainPlace:
    """A file with an author chain name, or None for all chains."""

    path: Path
    chain: str | None = None


def parse_chain_place(requested: str) -> ChainPlace:
    """Parse a user's text; ``:CHAIN`` at its end is a chain only if the whole is not a file.

    >>> parse_chain_place("no_such_file.cif:A").chain
    'A'
    """
    path = Path(requested)
    name, colon, chain = requested.rpartition(":")
    return ChainPlace(path) if is_there(path) or not colon or not name or "/" in chain else ChainPlace(Path(name), chain)


def read_chains(requested: str, *, minimum_plddt: float = 0.0, models: Models = "first") -> StructureFile:
    """Read the protein chains that a user named: one, or all of the file.

    Raises
    ------
    InputError
        The file cannot be read, holds no protein, or not this chain; the message lists those that it has.
    """
    place = parse_chain_place(requested)
    result = read_structure(place.path, minimum_plddt=minimum_plddt, models=models)
    if not len(result.chains):
        raise result.why_empty()
    if place.chain is None:
        return result
    if place.chain in result.chain_names:
        number = result.chain_names.index(place.chain)
        return StructureFile(result.path, result.chains.taken([number]), (place.chain,), result.skipped, result.messages)
    reason = next(
        (f"chain {place.chain} {skipped.reason}" for skipped in result.skipped if skipped.chain == place.chain),
        f"has no chain {place.chain}",
    )
    raise InputError(place.path, reason, remedy=_remedy(result))


def read_chain(requested: str, models: Models = "first") -> StructureFile:
    """Read the single protein chain that a user named.

    Raises
    ------
    InputError
        See `read_chains`; also if the file has several and none was named.
    """
    result = read_chains(requested, models=models)
    if len(result.chains) > 1:
        raise InputError(result.path, f"has {len(result.chains)} protein chains, and one is needed", remedy=_remedy(result))
    return result


def _remedy(structure_file: StructureFile) -> str:
    names = ", ".join(name or "one without a name" for name in structure_file.chain_names[:20])
    more = f" and {len(structure_file.chain_names) - 20} more" if len(structure_file.chain_names) > 20 else ""
    return f"It has the protein chains {names}{more}; name one as {structure_file.path.name}:{structure_file.chain_names[0]}"
