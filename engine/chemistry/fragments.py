"""Fragment ions of a peptide, and their matches to the peaks of a spectrum.

Series are named as in Roepstorff & Fohlman 1984 (Biomed. Mass Spectrom. 11:601) and Biemann 1988. With S, the sum of the masses of a
fragment's residues and modifications, the neutral masses are a = S - CO, b = S, c = S + NH3, x = S + H2O + CO - 2 H, y = S + H2O, and for
the radical z• of electron transfer (also called z+1) S + H2O - NH2. An ion of charge n has n protons; precursor ions are the whole peptide.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges
from proteoscope.engine.chemistry.formulas import formula_mass
from proteoscope.engine.chemistry.masses import AMMONIA_MASS, HYDROGEN_MASS, PROTON_MASS, WATER_MASS, residue_masses
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.chemistry.peptidoforms import Peptidoform
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError

__all__ = [
    "IMMONIUM",
    "PRECURSOR",
    "SERIES",
    "SERIES_MASS",
    "Annotation",
    "FragmentIons",
    "annotate",
    "fragment_ions",
    "immonium_ions",
    "modification_losses",
]

SERIES = "abcxyzpi"
"""Ion series; the code of a series is its index in this text. p is the precursor, i an immonium ion."""
PRECURSOR, IMMONIUM = SERIES.index("p"), SERIES.index("i")
_PEPTIDE_SERIES = SERIES[:IMMONIUM]

_CARBON_MONOXIDE_MASS = formula_mass("CO")

# Mass of a neutral fragment minus the mass of its residues.
SERIES_MASS = {
    "a": -_CARBON_MONOXIDE_MASS,
    "b": 0.0,
    "c": AMMONIA_MASS,
    "x": WATER_MASS + _CARBON_MONOXIDE_MASS - 2 * HYDROGEN_MASS,
    "y": WATER_MASS,
    "z": WATER_MASS - AMMONIA_MASS + HYDROGEN_MASS,
    "p": WATER_MASS,
}

# Residues that readily lose a molecule (Steen & Mann 2004, Nat. Rev. Mol. Cell Biol. 5:699); other losses are possible at any residue.
_LOSS_RESIDUES = {"H2O": "STED", "NH3": "RKNQ"}

# Series whose ions lose small molecules: series of collisions, not of electron transfer.
_SERIES_WITH_LOSSES = "abyp"

# Unimod has losses of modifications as masses; common losses are shown as formulas.
_NAMED_LOSSES = {formula: formula_mass(formula) for formula in ("H3PO4", "HPO3", "CH4OS", "SO3")}


@dataclass(frozen=True)
class FragmentIons:
    """Theoretical ions as columns, n of them, ordered by series, charge, loss and number.

    Attributes
    ----------
    mz : ndarray of float64, shape (n,)
        m/z in thomson.
    series : ndarray of int8, shape (n,)
        Code of the series of each ion, an index in `SERIES`.
    number : ndarray of int16, shape (n,)
        Number of residues of the fragment; for a precursor, the peptide length; for an immonium ion, the position of the residue, from 1.
    charge : ndarray of int8, shape (n,)
        Charges.
    loss : ndarray of int16, shape (n,)
        Index of the loss of each ion in `loss_names`; 0 without a loss.
    position : ndarray of int16, shape (n,)
        Bond that breaks, as the number of residues before it; for a precursor, the peptide length; for an immonium ion, the position of the
        residue.
    loss_names : tuple of str
        Names of losses; the first is ''.
    loss_masses : tuple of float
        Masses of losses in dalton; the first is 0.
    residues : tuple of str
        For immonium ions, all residues of the peptide with their modifications, such as ``C[Carbamidomethyl]``.
    """

    mz: NDArray[np.float64]
    series: NDArray[np.int8]
    number: NDArray[np.int16]
    charge: NDArray[np.int8]
    loss: NDArray[np.int16]
    position: NDArray[np.int16]
    loss_names: tuple[str, ...]
    loss_masses: tuple[float, ...]
    residues: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.mz)

    def label(self, i: int) -> str:
        """Return the name of the ion with index `i` in mzPAF notation: ``b5``, ``y7-H2O``, ``y7-H3PO4^2``, ``p^2``, ``IY``."""
        if self.series[i] == IMMONIUM:
            return f"I{self.residues[self.number[i] - 1]}"
        number = "" if self.series[i] == PRECURSOR else str(self.number[i])
        loss = f"-{self.loss_names[self.loss[i]]}" if self.loss[i] else ""
        charge = f"^{self.charge[i]}" if self.charge[i] > 1 else ""
        return f"{SERIES[self.series[i]]}{number}{loss}{charge}"

    def labels(self) -> list[str]:
        """Return the names of all ions."""
        return [self.label(i) for i in range(len(self))]


def fragment_ions(
    sequence: str,
    modifications: Mapping[int, float] | None = None,
    *,
    series: str = "by",
    maximum_charge: int = 2,
    neutral_losses: Sequence[str] = (),
    losses_of_modifications: Mapping[int, Iterable[float]] | None = None,
) -> FragmentIons:
    """Return the theoretical fragment ions of a peptide.

    An ion has at most one loss: water from a fragment with S, T, E or D, ammonia from a fragment with R, K, N or Q, any other formula from
    any fragment, and a loss of a modification from a fragment with this modification. Only a, b, y and precursor ions have losses. The c
    and z ions of the bond before proline are left out, since its ring connects both parts.

    Parameters
    ----------
    sequence : str
        Residues of the peptide, capitals A-Z without B, X and Z.
    modifications : mapping of int to float, optional
        Masses (dalton) by position: 0 the N-terminus, 1 to L the residues, L + 1 the C-terminus.
    series : str
        Characters of `SERIES` except ``i``; ``p`` adds the precursor.
    maximum_charge : int
        Maximum charge of ions, from 1 to 100.
    neutral_losses : sequence of str
        Formulas of neutral losses.
    losses_of_modifications : mapping of int to iterable of float, optional
        Masses of losses (dalton) by position, from `modification_losses`.

    Returns
    -------
    FragmentIons
        Ions.

    Raises
    ------
    ParameterError
        If a series, residue or formula is unknown, a position is outside the peptide, or the maximum charge is out of bounds.

    Examples
    --------
    >>> ions = fragment_ions("PEK", maximum_charge=1)
    >>> [f"{label} {mz:.3f}" for label, mz in zip(ions.labels(), ions.mz)]
    ['b1 98.060', 'b2 227.103', 'y2 276.155', 'y1 147.113']
    """
    length = len(sequence)
    if maximum_charge < 1 or maximum_charge > 100:
        raise ParameterError(f"fragments of up to {maximum_charge} charges are not possible; expected 1 to 100")
    unknown = [code for code in series if code not in _PEPTIDE_SERIES]
    if unknown:
        raise ParameterError(f"there is no ion series {unknown[0]!r}; expected characters of {_PEPTIDE_SERIES} (p is the precursor)")
    masses = _position_masses(sequence, modifications or {})
    losses = _losses(sequence, neutral_losses, losses_of_modifications or {})

    # Sums of the first i positions: the N-terminus and i residues precede the bond after residue i.
    sums = np.cumsum(masses)
    bonds = np.arange(1, length)
    charges = np.arange(1, maximum_charge + 1)
    columns = []
    for symbol in dict.fromkeys(series):
        if symbol == "p":
            position, number, residue_sum = np.array([length]), np.array([length]), sums[-1:]
        elif symbol in "abc":
            position, number, residue_sum = bonds, bonds, sums[bonds]
        else:
            position, number, residue_sum = bonds, length - bonds, sums[-1] - sums[bonds]
        is_possible = np.ones(len(position), dtype=np.bool_)
        if symbol in "cz":
            is_possible = np.array([sequence[bond] != "P" for bond in bonds.tolist()], dtype=np.bool_)
        for loss, (_, mass, indices) in enumerate(losses):
            if loss and symbol not in _SERIES_WITH_LOSSES:
                continue
            # Number of possible losses up to each position, which gives the number within each fragment.
            counts = np.cumsum(indices)
            within = counts[position] if symbol in "abc" else counts[-1] - (0 if symbol == "p" else counts[position])
            chosen = is_possible & (within > 0)
            neutral = residue_sum[chosen] + (SERIES_MASS[symbol] - mass)
            n = len(neutral)
            columns.append(
                (
                    (neutral / charges[:, None] + PROTON_MASS).ravel(),
                    np.full(n * maximum_charge, SERIES.index(symbol)),
                    np.tile(number[chosen], maximum_charge),
                    np.repeat(charges, n),
                    np.full(n * maximum_charge, loss),
                    np.tile(position[chosen], maximum_charge),
                )
            )
    mz, codes, numbers, charge, lost, positions = (
        [np.concatenate(column) for column in zip(*columns, strict=True)] if columns else [np.zeros(0)] * 6
    )
    order = np.lexsort((positions, lost, charge))
    order = order[np.argsort(codes[order], kind="stable")]
    return FragmentIons(
        mz=mz[order],
        series=codes[order].astype(np.int8),
        number=numbers[order].astype(np.int16),
        charge=charge[order].astype(np.int8),
        loss=lost[order].astype(np.int16),
        position=positions[order].astype(np.int16),
        loss_names=tuple(name for name, _, _ in losses),
        loss_masses=tuple(mass for _, mass, _ in losses),
    )


def immonium_ions(peptidoform: Peptidoform) -> FragmentIons:
    """Return the singly charged immonium ions of a peptide: one per distinct residue with its modifications, at its first position.

    An immonium ion is H2N+=CH-R: the residue minus CO plus a proton (Falick et al. 1993, J. Am. Soc. Mass Spectrom. 4:882), without
    modifications of the termini.

    Raises
    ------
    ParameterError
        If a residue has no mass or a modification is outside the peptide.

    Examples
    --------
    >>> from proteoscope.engine.chemistry.peptidoforms import PlacedModification
    >>> ions = immonium_ions(Peptidoform("YCY", (PlacedModification(2, "Carbamidomethyl", 57.021464),), 2))
    >>> [f"{label} {mz:.3f}" for label, mz in zip(ions.labels(), ions.mz)]
    ['IY 136.076', 'IC[Carbamidomethyl] 133.043']
    """
    sequence = peptidoform.sequence
    masses = _position_masses(sequence, peptidoform.mass_deltas())[1:-1]
    named: dict[int, list[str]] = {}
    for position, name, _ in peptidoform.modifications:
        named.setdefault(position, []).append(name)
    residues = tuple(residue + "".join(f"[{name}]" for name in named.get(at, ())) for at, residue in enumerate(sequence, start=1))
    first: dict[str, int] = {}
    for at, residue in enumerate(residues, start=1):
        first.setdefault(residue, at)
    index = np.array(list(first.values()), np.int16)
    n = len(index)
    return FragmentIons(
        mz=masses[index - 1] - _CARBON_MONOXIDE_MASS + PROTON_MASS,
        series=np.full(n, IMMONIUM, np.int8),
        number=index,
        charge=np.ones(n, np.int8),
        loss=np.zeros(n, np.int16),
        position=index.copy(),
        loss_names=("",),
        loss_masses=(0.0,),
        residues=residues,
    )


def _position_masses(sequence: str, modifications: Mapping[int, float]) -> NDArray[np.float64]:
    """Return the masses at positions 0 to L + 1 in dalton, shape (L + 2,)."""
    masses = np.zeros(len(sequence) + 2)
    masses[1:-1] = residue_masses(sequence)
    if not sequence or np.isnan(masses).any():
        raise ParameterError(f"{sequence!r} has no mass and no fragments: B, X and Z are ambiguous residues")
    for position, mass in modifications.items():
        if not 0 <= position <= len(sequence) + 1:
            raise ParameterError(
                f"position {position} of a modification lies outside {sequence}: its positions are 0 to {len(sequence) + 1}"
            )
        masses[position] += mass
    return masses


def _losses(
    sequence: str, neutral_losses: Sequence[str], losses_of_modifications: Mapping[int, Iterable[float]]
) -> list[tuple[str, float, NDArray[np.bool_]]]:
    """Return the name, the mass and a mask of the possible positions, shape (L + 2,), of each neutral loss; the first, '', has mass 0."""
    length = len(sequence)
    losses = [("", 0.0, np.ones(length + 2, dtype=np.bool_))]
    for formula in dict.fromkeys(neutral_losses):
        positions = np.ones(length + 2, dtype=np.bool_)
        if formula in _LOSS_RESIDUES:
            positions[1:-1] = [residue in _LOSS_RESIDUES[formula] for residue in sequence]
            positions[[0, -1]] = False
        losses.append((formula, formula_mass(formula), positions))
    by_mass: dict[float, NDArray[np.bool_]] = {}
    for position, position_losses in losses_of_modifications.items():
        if not 0 <= position <= length + 1:
            raise ParameterError(f"a loss at position {position} lies outside {sequence}: its positions are 0 to {length + 1}")
        for mass in position_losses:
            by_mass.setdefault(mass, np.zeros(length + 2, dtype=np.bool_))[position] = True
    for mass, positions in by_mass.items():
        name = next((formula for formula, named_mass in _NAMED_LOSSES.items() if abs(named_mass - mass) < 1e-4), f"{mass:.4f}")
        losses.append((name, mass, positions))
    return losses


def modification_losses(peptidoform: Peptidoform) -> dict[int, tuple[float, ...]]:
    """Return Unimod's neutral losses of a peptide's modifications, in dalton, by position; positions without losses are left out."""
    losses: dict[int, tuple[float, ...]] = {}
    length = len(peptidoform.sequence)
    for position, name, _ in peptidoform.modifications:
        if name not in unimod():
            continue
        residue = peptidoform.sequence[position - 1] if 1 <= position <= length else ""
        where = "peptide N-term" if position == 0 else "peptide C-term"
        for site in unimod().by_name(name).sites:
            # For residues, use all positions in Unimod, since the peptide may or may not be at an end of its protein.
            if site.residue == residue and (residue or site.position.replace("protein", "peptide") == where):
                site_losses = tuple(loss for loss in site.neutral_losses if loss > 0)
                if site_losses:
                    losses[position] = tuple(sorted({*losses.get(position, ()), *site_losses}))
    return losses


@dataclass(frozen=True)
class Annotation:
    """Matches between ions and peaks, m of them, ordered by ion.

    Attributes
    ----------
    ion, peak : ndarray of int64, shape (m,)
        Indices of the ion and of the peak.
    error : ndarray of float64, shape (m,)
        m/z of the peak minus m/z of the ion, thomson.
    error_ppm : ndarray of float64, shape (m,)
        The same difference in parts per million of the ion's m/z.
    """

    ion: NDArray[np.int64]
    peak: NDArray[np.int64]
    error: NDArray[np.float64]
    error_ppm: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ion)


def annotate(
    mz: NDArray[np.floating],
    intensity: NDArray[np.floating],
    ions: FragmentIons,
    tolerance: Tolerance,
    *,
    most_intense: bool = True,
    one_ion_per_peak: bool = False,
) -> Annotation:
    """Match each ion to a peak within the tolerance of the ion's m/z.

    Parameters
    ----------
    mz, intensity : ndarray, shape (peaks,)
        m/z (thomson, ascending) and intensities of the spectrum.
    ions : FragmentIons
        Theoretical ions.
    tolerance : Tolerance
        Tolerance around the m/z of the ions.
    most_intense : bool
        True to select the most intense of several peaks, False to select the nearest.
    one_ion_per_peak : bool
        True to retain only the most likely of several ions of a peak, for labels: preferably without a loss, then with the lowest charge,
        then the nearest.

    Returns
    -------
    Annotation
        Matches.

    Raises
    ------
    ParameterError
        If m/z and intensity differ in length, or if m/z does not ascend.
    """
    mz = np.asarray(mz, dtype=np.float64)
    if len(mz) != len(intensity) or (np.diff(mz) < 0).any():
        raise ParameterError(f"a spectrum needs an intensity for each m/z, in ascending order; got {len(mz)} and {len(intensity)} values")
    low, high = tolerance.bounds(ions.mz)
    first, last = np.searchsorted(mz, low, side="left"), np.searchsorted(mz, high, side="right")
    # Sort all pairs within the tolerance by ion and preference.
    offsets, peak = ranges(first, last)
    ion = np.repeat(np.arange(len(ions)), np.diff(offsets))
    distance = np.abs(mz[peak] - ions.mz[ion])
    preference = -np.asarray(intensity, dtype=np.float64)[peak] if most_intense else distance
    order = np.lexsort((distance, preference, ion))
    best = order[np.unique(ion[order], return_index=True)[1]]
    ion, peak, distance = ion[best], peak[best], distance[best]
    if one_ion_per_peak:
        order = np.lexsort((distance, ions.charge[ion], ions.loss[ion] > 0, peak))
        selected = np.sort(order[np.unique(peak[order], return_index=True)[1]])
        ion, peak = ion[selected], peak[selected]
    error = mz[peak] - ions.mz[ion]
    return Annotation(ion, peak, error, error / ions.mz[ion] * 1e6)
