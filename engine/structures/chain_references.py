"""Parsing and reading of chains that the user gives as a file and an optional chain name, such as ``1lcd.cif:A``."""

from dataclasses import dataclass
from pathlib import Path

from proteoscope.engine.errors import InputError
from proteoscope.engine.files import is_there
from proteoscope.engine.structures.reading import Models, StructureFile, read_structure

__all__ = ["ChainReference", "parse_chain_reference", "read_chain", "read_chains"]


@dataclass(frozen=True)
class ChainReference:
    """File and chain given by a user.

    Attributes
    ----------
    path : Path
        Structure file.
    chain : str or None
        Author name of the chain; None for all chains.
    """

    path: Path
    chain: str | None = None


def parse_chain_reference(requested: str) -> ChainReference:
    """Split a text such as ``1lcd.cif:A`` into file and chain; ``:A`` is a chain name only if no file has the whole text as path.

    Examples
    --------
    >>> parse_chain_reference("no_such_file.cif:A").chain
    'A'
    """
    path = Path(requested)
    name, colon, chain = requested.rpartition(":")
    return ChainReference(path) if is_there(path) or not colon or not name or "/" in chain else ChainReference(Path(name), chain)


def read_chains(requested: str, *, minimum_plddt: float = 0.0, models: Models = "first") -> StructureFile:
    """Read the requested protein chain of a file, or all its protein chains.

    Parameters
    ----------
    requested : str
        Path of a file, with or without ``:CHAIN``.
    minimum_plddt : float
        Minimum pLDDT of residues to use, from 0 to 100.
    models : Models
        Models to read (see `read_structure`).

    Returns
    -------
    StructureFile
        File with the requested chains only.

    Raises
    ------
    InputError
        If the file cannot be read, or contains no protein chain or not the requested chain; the message lists the chains of the file.
    """
    position = parse_chain_reference(requested)
    result = read_structure(position.path, minimum_plddt=minimum_plddt, models=models)
    if not len(result.chains):
        raise result.empty_error()
    if position.chain is None:
        return result
    if position.chain in result.chain_names:
        number = result.chain_names.index(position.chain)
        return StructureFile(result.path, result.chains.taken([number]), (position.chain,), result.skipped, result.messages)
    reason = next(
        (f"chain {position.chain} {skipped.reason}" for skipped in result.skipped if skipped.chain == position.chain),
        f"has no chain '{position.chain}'",
    )
    raise InputError(position.path, reason, remedy=_remedy(result))


def read_chain(requested: str, models: Models = "first") -> StructureFile:
    """Read the requested protein chain of a file, or its only protein chain.

    Parameters
    ----------
    requested : str
        Path of a file, with or without ``:CHAIN``.
    models : Models
        Models to read (see `read_structure`).

    Returns
    -------
    StructureFile
        File with the requested chain only.

    Raises
    ------
    InputError
        If `read_chains` fails, or if the file has several chains and none was requested.
    """
    result = read_chains(requested, models=models)
    if len(result.chains) > 1:
        raise InputError(result.path, f"has {len(result.chains)} protein chains, but exactly one is needed", remedy=_remedy(result))
    return result


def _remedy(structure_file: StructureFile) -> str:
    names = ", ".join(name or "one without a name" for name in structure_file.chain_names[:20])
    more = f" and {len(structure_file.chain_names) - 20} more" if len(structure_file.chain_names) > 20 else ""
    return f"It has the protein chains {names}{more}; select one, such as {structure_file.path.name}:{structure_file.chain_names[0]}"
