"""Cleavage agents of the PSI-MS vocabulary (children of MS:1001045), and the digestion of proteins.

The vocabulary defines each agent by a regular expression. Except for two agents, the expression depends only on the two residues of a bond,
so that an agent is a table of 26 x 26 bonds, which is all that a digestion kernel needs. The two agents that depend on a third residue
(`glutamyl endopeptidase`, `proline endopeptidase`) are defined here by the residues of the bond only, as comments explain.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from proteoscope.engine.errors import ParameterError, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ENZYMES", "SPECIFICITIES", "Enzyme", "PeptideSpan", "Specificity", "cleavage_sites", "digest", "enzyme"]

Specificity = Literal["specific", "semi-specific", "non-specific"]
SPECIFICITIES: tuple[Specificity, ...] = ("specific", "semi-specific", "non-specific")

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Enzyme:
    """Cleavage agent.

    Attributes
    ----------
    name : str
        PSI-MS name.
    accession : str
        PSI-MS accession, such as ``MS:1001251``.
    after : str
        Residues after which the agent cuts, unless the next residue is in `not_before`.
    not_before : str
        Residues before which the agent does not cut, although they follow a residue in `after`.
    before : str
        Residues before which the agent cuts, whatever the preceding residue.
    synonyms : tuple of str
        Other names in use.
    """

    name: str
    accession: str
    after: str = ""
    not_before: str = ""
    before: str = ""
    synonyms: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    @cached_property
    def _table(self) -> NDArray[np.bool_]:
        import numpy as np  # slow to import: parameters, which name enzymes, are listed without it

        table = np.zeros((26, 26), dtype=np.bool_)
        table[_indices(self.after), :] = True
        table[:, _indices(self.not_before)] = False
        table[:, _indices(self.before)] = True
        table.flags.writeable = False
        return table

    def cleavage_table(self) -> NDArray[np.bool_]:
        """Return a read-only table with True for the bonds that the agent cuts.

        Returns
        -------
        ndarray of bool, shape (26, 26)
            Indexed by [residue before the bond - 'A', residue after the bond - 'A'].
        """
        return self._table

    @property
    def is_unspecific(self) -> bool:
        """True if the agent cuts every bond, so that missed cleavages are meaningless."""
        return self.after == _ALPHABET and not self.not_before

    @property
    def rule(self) -> str:
        """Rule in words, such as ``after K, R; not before P``."""
        if self.is_unspecific:
            return "at every bond"
        parts = []
        if self.after:
            parts.append(f"after {', '.join(self.after)}")
        if self.not_before:
            # Hydroxylamine cuts before one residue only: naming this residue is shorter.
            allowed = [residue for residue in _ALPHABET if residue not in self.not_before]
            if len(allowed) < len(self.not_before):
                parts.append(f"only before {', '.join(allowed)}")
            else:
                parts.append(f"not before {', '.join(self.not_before)}")
        if self.before:
            parts.append(f"before {', '.join(self.before)}")
        return "; ".join(parts) or "nowhere"


def _indices(residues: str) -> list[int]:
    return [ord(residue) - ord("A") for residue in residues]


_ALL = (
    Enzyme("Trypsin", "MS:1001251", after="KR", not_before="P"),
    Enzyme("Trypsin/P", "MS:1001313", after="KR"),
    Enzyme("Arg-C", "MS:1001303", after="R", not_before="P", synonyms=("Trypsin/R", "Clostripain")),
    Enzyme("Asp-N", "MS:1001304", before="BD"),
    Enzyme("Asp-N_ambic", "MS:1001305", before="DE"),
    Enzyme("Chymotrypsin", "MS:1001306", after="FYWL", not_before="P"),
    Enzyme("CNBr", "MS:1001307", after="M", synonyms=("Cyanogen bromide",)),
    Enzyme("Formic_acid", "MS:1001308", after="D", before="D"),
    Enzyme("Lys-C", "MS:1001309", after="K", not_before="P", synonyms=("Trypsin/K",)),
    Enzyme("Lys-C/P", "MS:1001310", after="K"),
    Enzyme("Lys-N", "MS:1003093", before="K"),
    Enzyme("LysargiNase", "MS:1002708", before="KR", synonyms=("Tryp-N",)),
    Enzyme("PepsinA", "MS:1001311", after="FL"),
    Enzyme("TrypChymo", "MS:1001312", after="FYWLKR", not_before="P"),
    Enzyme("V8-DE", "MS:1001314", after="BDEZ", not_before="P"),
    Enzyme("V8-E", "MS:1001315", after="EZ", not_before="P"),
    # In the vocabulary, the agent cuts consecutive E only after the first; here every E is a site, so that all their peptides are found.
    Enzyme("glutamyl endopeptidase", "MS:1001917", after="E", synonyms=("Glu-C", "staphylococcal protease")),
    Enzyme("leukocyte elastase", "MS:1001915", after="ALIV", not_before="P"),
    # The vocabulary requires H, K or R before the P; the enzyme (EC 3.4.21.26) cuts after every P.
    Enzyme("proline endopeptidase", "MS:1001916", after="P", not_before="P"),
    Enzyme("2-iodobenzoate", "MS:1001918", after="W"),
    Enzyme("AlphaLP", "MS:1003434", after="TASV", synonyms=("alpha-lytic protease", "alpha-lytic endopeptidase")),
    Enzyme("peptidase K", "MS:1003981", before="AEFILTVWY", synonyms=("proteinase K", "endopeptidase K")),
    Enzyme("hydroxylamine", "MS:1003983", after="N", not_before=_ALPHABET.replace("G", "")),
    Enzyme("no cleavage", "MS:1001955"),
    Enzyme("unspecific cleavage", "MS:1001956", after=_ALPHABET),
)

ENZYMES: dict[str, Enzyme] = {agent.name: agent for agent in _ALL}
"""All agents by PSI-MS name."""

_BY_ANY_NAME = {
    name.lower(): agent for agent in _ALL for name in (agent.name, agent.accession, agent.name.replace("_", " "), *agent.synonyms)
}


def enzyme(name: str) -> Enzyme:
    """Return the agent with a PSI-MS name, accession or synonym, in any case.

    Raises
    ------
    ParameterError
        If there is no such agent; the message lists similar names.
    """
    agent = _BY_ANY_NAME.get(name.strip().lower())
    if agent is not None:
        return agent

    near = dict.fromkeys(_BY_ANY_NAME[match].name for match in get_close_matches(name.strip().lower()[:100], _BY_ANY_NAME, n=3, cutoff=0.5))
    hint = f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(ENZYMES)}"
    raise ParameterError(f"There is no enzyme {shortened(repr(name))}; {hint}")


class PeptideSpan(NamedTuple):
    """Range of a peptide in its protein.

    Attributes
    ----------
    start, stop : int
        Start and end index (exclusive): the peptide is ``sequence[start:stop]``.
    missed_cleavages : int
        Number of sites within the peptide that are not cut.
    """

    start: int
    stop: int
    missed_cleavages: int


def cleavage_sites(sequence: str, agent: Enzyme) -> NDArray[np.int64]:
    """Return the positions at which an agent cuts, ascending.

    Position i is between residues i - 1 and i; the ends of the protein are not included. Bonds of characters outside A-Z (``*``) are never
    cut.

    Parameters
    ----------
    sequence : str
        Residues of the protein.
    agent : Enzyme
        Cleavage agent.

    Returns
    -------
    ndarray of int64, shape (sites,)
        Positions.
    """
    import numpy as np  # slow to import: parameters are described without it

    codes = np.frombuffer(sequence.encode("ascii", "replace"), dtype=np.uint8).astype(np.int64) - ord("A")
    is_residue = (codes >= 0) & (codes < 26)
    codes[~is_residue] = 0
    cut = agent.cleavage_table()[codes[:-1], codes[1:]] & is_residue[:-1] & is_residue[1:]
    return np.flatnonzero(cut) + 1


def digest(
    sequence: str,
    agent: Enzyme,
    missed_cleavages: int = 0,
    specificity: Specificity = "specific",
    minimum_length: int = 1,
    maximum_length: int | None = None,
    clip_methionine: bool = False,
) -> list[PeptideSpan]:
    """Return every peptide of a protein once, ordered by start and stop; tests compare the kernels with this implementation.

    A specific peptide begins and ends at a site or at an end of the protein; a semi-specific peptide does so on at least one side; a
    non-specific peptide need not. Missed cleavages are counted but not limited for non-specific peptides and for an agent that cuts every
    bond. With `clip_methionine`, peptides may also begin after an initial M; for peptides that include the M, this is not a missed
    cleavage.

    Parameters
    ----------
    sequence : str
        Residues of the protein, capitals A-Z.
    agent : Enzyme
        Cleavage agent.
    missed_cleavages : int
        Maximum number of sites within a peptide.
    specificity : str
        One of `SPECIFICITIES`.
    minimum_length, maximum_length : int
        Minimum and maximum number of residues; None for no maximum.
    clip_methionine : bool
        True to digest the protein also without its initial methionine.

    Returns
    -------
    list of PeptideSpan
        Peptides.

    Raises
    ------
    ParameterError
        If the specificity is unknown or a number is out of bounds.
    """
    if specificity not in SPECIFICITIES:
        raise ParameterError(f"specificity {specificity!r} is unknown; expected one of {', '.join(SPECIFICITIES)}")
    if missed_cleavages < 0 or minimum_length < 1:
        raise ParameterError(f"{missed_cleavages} missed cleavages and peptides of {minimum_length} residues are not possible")
    length = len(sequence)
    sites = {int(site) for site in cleavage_sites(sequence, agent)}
    starts = sites | {0}
    if clip_methionine and sequence.startswith("M"):
        starts.add(1)
    stops = sites | {length}
    unlimited = specificity == "non-specific" or agent.is_unspecific
    peptides = []
    for start in range(length):
        missed = 0
        for stop in range(start + 1, min(length, start + (maximum_length or length)) + 1):
            missed += stop - 1 in sites and stop - 1 > start
            if missed > missed_cleavages and not unlimited:
                break
            ends_at_sites = (start in starts) + (stop in stops)
            required = {"specific": 2, "semi-specific": 1, "non-specific": 0}[specificity]
            if ends_at_sites >= required and stop - start >= minimum_length:
                peptides.append(PeptideSpan(start, stop, missed))
    return peptides
