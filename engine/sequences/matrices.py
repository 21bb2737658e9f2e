"""Substitution matrices: those delivered with the program, and files in NCBI's format.

Residue codes are 0 to 25 for A to Z, and 26 for ``*``. Scores of residues that a matrix lacks are added: U, O and J score like X;
missing B and Z score like X; a missing X scores -1 with every residue; and a missing ``*`` scores the minimum of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from proteoscope import resources
from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.files import is_there, read_beginning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SYMBOLS", "Matrix", "encode", "matrix_name", "matrix_names", "read_matrix"]

SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ*"
"""Symbol of each residue code."""
_STAR, _X = SYMBOLS.index("*"), SYMBOLS.index("X")
_SCORED_AS_X = "UOJ"
_MINIMUM, _MAXIMUM = -1_000_000, 1_000_000
_MAXIMUM_BYTES = 1_000_000
_MAXIMUM_COMPARED = 100  # maximum number of characters of a name that are compared with names of matrices


@dataclass(frozen=True)
class Matrix:
    """Substitution matrix.

    Attributes
    ----------
    name : str
        Name of a delivered matrix, or path of the file.
    scores : ndarray of int32, shape (27, 27)
        Scores, indexed by the codes of query residue and subject residue.
    symbols : str
        Residues in the file; scores of other residues were added.
    """

    name: str
    scores: NDArray[np.int32]
    symbols: str

    @property
    def greatest(self) -> int:
        """Largest score of a pair."""
        return int(self.scores.max())

    def scores_as(self, other: Matrix) -> bool:
        """Return True if all scores equal the scores of another matrix."""
        import numpy as np  # slow to import: parameters, which name matrices, are listed without it

        return bool(np.array_equal(self.scores, other.scores))


def encode(residues: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Convert the ASCII characters A-Z and ``*`` to residue codes."""
    import numpy as np  # slow to import: parameters are described without it

    return np.where(residues == ord("*"), np.uint8(_STAR), residues - np.uint8(ord("A"))).astype(np.int8)


@lru_cache(maxsize=1)
def matrix_names() -> tuple[str, ...]:
    """Return the names of the delivered matrices."""
    names = [path.stem for path in resources.path("matrices").glob("*.txt")]
    return tuple(sorted(names, key=lambda name: (_family(name), int(name.removeprefix(_family(name)) or 1000))))


def _family(name: str) -> str:
    return name.rstrip("0123456789")


def matrix_name(requested: str) -> str:
    """Return the name of a delivered matrix in its usual case, or the path of a file unchanged.

    Raises
    ------
    ParameterError
        If there is no matrix or file of this name.
    """
    if requested.strip().upper() in matrix_names():
        return requested.strip().upper()
    if is_there(Path(requested)):
        return requested
    close = get_close_matches(requested.strip().upper()[:_MAXIMUM_COMPARED], matrix_names(), 3, 0.7)
    hint = f"did you mean {' or '.join(close)}?" if close else f"choose one of {_families()}, or give a file"
    raise ParameterError(f"there is no matrix '{shortened(requested)}'; {hint}")


def _families() -> str:
    families = {_family(name): [other for other in matrix_names() if _family(other) == _family(name)] for name in matrix_names()}
    return ", ".join(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}" for names in families.values())


def read_matrix(requested: str) -> Matrix:
    """Return a delivered matrix by name, or a matrix from a file in NCBI's format.

    A file has a line of residues, then for each residue a line with the residue and its scores; ``#`` starts a comment.

    Raises
    ------
    ParameterError
        If there is no matrix or file of this name.
    InputError
        If the file is not a matrix.
    """
    name = matrix_name(requested)
    shipped = name in matrix_names()
    path = resources.path("matrices", f"{name}.txt") if shipped else Path(name)
    symbols, scores = _parse(path)
    return Matrix(name, _complete(symbols, scores), symbols)


def _parse(path: Path) -> tuple[str, list[list[int]]]:
    try:
        data = read_beginning(path, _MAXIMUM_BYTES + 1)
        if len(data) > _MAXIMUM_BYTES:
            raise InputError(path, "is too large for a matrix", remedy=_REMEDY)
        lines = data.decode("utf-8-sig").splitlines()  # Windows editors add a byte order mark
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}", remedy="Check the name of the matrix file") from None
    except UnicodeDecodeError:
        raise InputError(path, "is not a matrix: it is not text", remedy=_REMEDY) from None
    rows = [(number, line.partition("#")[0].split()) for number, line in enumerate(lines, 1)]
    rows = [(number, words) for number, words in rows if words]
    if not rows:
        raise InputError(path, "has no matrix", remedy=_REMEDY)
    number, header = rows[0]
    columns = [_residue(path, number, word) for word in header]
    _check_distinct(path, number, columns)
    scores: dict[str, list[int]] = {}
    for number, (first, *values) in rows[1:]:
        residue = _residue(path, number, first)
        if residue in scores:
            raise InputError(path, f"the residue {residue} occurs twice", place=f"line {number}", remedy=_REMEDY)
        if len(values) != len(columns):
            reason = f"the row has {len(values)} scores, but the header has {len(columns)} residues"
            raise InputError(path, reason, place=f"line {number}", remedy=_REMEDY)
        scores[residue] = [_score(path, number, value) for value in values]
    if set(scores) != set(columns):
        differing = " ".join(sorted(set(scores) ^ set(columns)))
        raise InputError(path, f"its rows and its columns have different residues ({differing})", remedy=_REMEDY)
    return "".join(columns), [scores[residue] for residue in columns]


_REMEDY = "A matrix has a line of residues, then a line for each residue, with the residue and its scores"


def _residue(path: Path, number: int, word: str) -> str:
    if len(word) != 1 or not word.isascii() or word.upper() not in SYMBOLS:
        raise InputError(path, f"'{word[:20]}' is not a residue", place=f"line {number}", remedy=_REMEDY)
    return word.upper()


def _check_distinct(path: Path, number: int, residues: list[str]) -> None:
    for residue in residues:
        if residues.count(residue) > 1:
            raise InputError(path, f"the residue {residue} occurs twice", place=f"line {number}", remedy=_REMEDY)


def _score(path: Path, number: int, word: str) -> int:
    try:
        value = int(word)
    except ValueError:
        remedy = "Scores must be whole numbers: multiply scores and gap costs by 10 or 100, and round them"
        raise InputError(path, f"'{word[:20]}' is not a whole number", place=f"line {number}", remedy=remedy) from None
    if not _MINIMUM <= value <= _MAXIMUM:
        reason = f"the score {shortened(str(value))} is not within {_MINIMUM} to {_MAXIMUM}"
        raise InputError(path, reason, place=f"line {number}", remedy="Scale the scores")
    return value


def _complete(symbols: str, scores: list[list[int]]) -> NDArray[np.int32]:
    """Return the scores of all 27 codes; missing scores are added as described in the module's docstring."""
    import numpy as np  # slow to import: parameters are described without it

    full = np.full((len(SYMBOLS), len(SYMBOLS)), -1, np.int64)
    codes = np.array([SYMBOLS.index(residue) for residue in symbols])
    full[np.ix_(codes, codes)] = scores
    if "*" not in symbols:
        full[_STAR, :] = full[:, _STAR] = np.min(scores)
    for residue in SYMBOLS[:_STAR]:
        if residue in _SCORED_AS_X or (residue not in symbols and residue != "X"):
            code = SYMBOLS.index(residue)
            full[code, :] = full[_X, :]
            full[:, code] = full[:, _X]
            full[code, code] = full[_X, _X]
    for residue in _SCORED_AS_X:
        code = SYMBOLS.index(residue)
        full[code, :], full[:, code] = full[_X, :], full[:, _X]
    return full.astype(np.int32)
