"""Substitution matrices: those that ship and those in files of NCBI's format.

Letters are codes: A to Z are 0 to 25 and ``*`` is 26. What a matrix lacks is filled in: U, O and J always count as X; B and Z where they
are missing too; X, where it is missing, scores -1 with everything; ``*`` the least score of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from proteoscope import resources
from proteoscope.engine.errors import InputError, ParameterError, shortened
from proteoscope.engine.files import is_there, open_regular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LETTERS", "Matrix", "encode", "matrix_name", "matrix_names", "read_matrix"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ*"
"""Letter of each code."""
_STAR, _X = LETTERS.index("*"), LETTERS.index("X")
_AS_X = "UOJ"
_LEAST, _GREATEST = -1_000_000, 1_000_000
_MAXIMUM_BYTES = 1_000_000
_MAXIMUM_COMPARED = 100  # letters of a name that is compared with those of the matrices


@dataclass(frozen=True)
class Matrix:
    """Scores of residue pairs.

    Attributes
    ----------
    name : of a matrix that ships, or the file's.
    scores : (27, 27) int32, by the codes of the query's and of the subject's residue.
    letters : which letters the matrix brought; the others' scores were filled in.
    """

    name: str
    scores: NDArray[np.int32]
    letters: str

    @property
    def greatest(self) -> int:
        """The largest score of a pair."""
        return int(self.scores.max())

    def scores_as(self, other: Matrix) -> bool:
        """Whether it gives every pair of letters the score that `other` gives."""
        import numpy as np  # here: parameters, which name matrices, are listed without it

        return bool(np.array_equal(self.scores, other.scores))


def encode(residues: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Codes of ASCII letters A-Z and ``*``."""
    import numpy as np  # parameters are described without loading NumPy

    return np.where(residues == ord("*"), np.uint8(_STAR), residues - np.uint8(ord("A"))).astype(np.int8)


@lru_cache(maxsize=1)
def matrix_names() -> tuple[str, ...]:
    """Matrices that ship."""
    names = [path.stem for path in resources.path("matrices").glob("*.txt")]
    return tuple(sorted(names, key=lambda name: (_family(name), int(name.removeprefix(_family(name)) or 1000))))


def _family(name: str) -> str:
    return name.rstrip("0123456789")


def matrix_name(wish: str) -> str:
    """The name of a matrix that ships, in any case, or the path of a file as it is.

    Raises
    ------
    ParameterError : neither.
    """
    if wish.strip().upper() in matrix_names():
        return wish.strip().upper()
    if is_there(Path(wish)):
        return wish
    close = get_close_matches(wish.strip().upper()[:_MAXIMUM_COMPARED], matrix_names(), 3, 0.7)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {_families()}, or give a file"
    raise ParameterError(f"there is no matrix '{shortened(wish)}'; {hint}")


def _families() -> str:
    families = {_family(name): [one for one in matrix_names() if _family(one) == _family(name)] for name in matrix_names()}
    return ", ".join(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}" for names in families.values())


def read_matrix(wish: str) -> Matrix:
    """The matrix of a name that ships, or of a file in NCBI's format.

    Such a file has a line of letters, then for each letter a line that begins with it and holds its scores; ``#`` begins a comment.

    Raises
    ------
    ParameterError : there is neither such a matrix nor such a file. InputError : the file is no matrix.
    """
    name = matrix_name(wish)
    shipped = name in matrix_names()
    path = resources.path("matrices", f"{name}.txt") if shipped else Path(name)
    letters, scores = _parse(path)
    return Matrix(name, _complete(letters, scores), letters)


def _parse(path: Path) -> tuple[str, list[list[int]]]:
    try:
        with open_regular(path) as file:
            data = file.read(_MAXIMUM_BYTES + 1)
        if len(data) > _MAXIMUM_BYTES:
            raise InputError(path, "is too large for a matrix", remedy=_REMEDY)
        lines = data.decode("utf-8-sig").splitlines()  # Windows' editors put a mark in front
    except OSError as error:
        raise InputError(path, f"cannot be read: {error.strerror}", remedy="Check the name of the matrix file") from None
    except UnicodeDecodeError:
        raise InputError(path, "is not a matrix: it is no text", remedy=_REMEDY) from None
    rows = [(number, line.partition("#")[0].split()) for number, line in enumerate(lines, 1)]
    rows = [(number, words) for number, words in rows if words]
    if not rows:
        raise InputError(path, "holds no matrix", remedy=_REMEDY)
    number, header = rows[0]
    columns = [_letter(path, number, word) for word in header]
    _check_distinct(path, number, columns)
    found: dict[str, list[int]] = {}
    for number, (first, *values) in rows[1:]:
        letter = _letter(path, number, first)
        if letter in found:
            raise InputError(path, f"the letter {letter} stands here a second time", place=f"line {number}", remedy=_REMEDY)
        if len(values) != len(columns):
            wrong = f"{len(values)} scores, where {len(columns)} letters were announced"
            raise InputError(path, wrong, place=f"line {number}", remedy=_REMEDY)
        found[letter] = [_score(path, number, value) for value in values]
    if set(found) != set(columns):
        differing = " ".join(sorted(set(found) ^ set(columns)))
        raise InputError(path, f"its rows and its columns are of different letters ({differing})", remedy=_REMEDY)
    return "".join(columns), [found[letter] for letter in columns]


_REMEDY = "A matrix has a line of letters, then a line for each letter: the letter and its scores"


def _letter(path: Path, number: int, word: str) -> str:
    if len(word) != 1 or not word.isascii() or word.upper() not in LETTERS:
        raise InputError(path, f"'{word[:20]}' is not a letter of a residue", place=f"line {number}", remedy=_REMEDY)
    return word.upper()


def _check_distinct(path: Path, number: int, letters: list[str]) -> None:
    for letter in letters:
        if letters.count(letter) > 1:
            raise InputError(path, f"the letter {letter} stands here twice", place=f"line {number}", remedy=_REMEDY)


def _score(path: Path, number: int, word: str) -> int:
    try:
        value = int(word)
    except ValueError:
        remedy = "Scores are whole numbers; multiply them by 10 or 100 and round, and the gap costs too"
        raise InputError(path, f"'{word[:20]}' is not a whole number", place=f"line {number}", remedy=remedy) from None
    if not _LEAST <= value <= _GREATEST:
        reason = f"the score {shortened(str(value))} is not within {_LEAST} to {_GREATEST}"
        raise InputError(path, reason, place=f"line {number}", remedy="Scale the scores")
    return value


def _complete(letters: str, scores: list[list[int]]) -> NDArray[np.int32]:
    """Scores of all 27 letters: see the module's text for those that a matrix lacks."""
    import numpy as np  # parameters are described without loading NumPy

    full = np.full((len(LETTERS), len(LETTERS)), -1, np.int64)
    known = np.array([LETTERS.index(letter) for letter in letters])
    full[np.ix_(known, known)] = scores
    if "*" not in letters:
        full[_STAR, :] = full[:, _STAR] = np.min(scores)
    for letter in LETTERS[:_STAR]:
        if letter in _AS_X or (letter not in letters and letter != "X"):
            code = LETTERS.index(letter)
            full[code, :] = full[_X, :]
            full[:, code] = full[:, _X]
            full[code, code] = full[_X, _X]
    for letter in _AS_X:
        code = LETTERS.index(letter)
        full[code, :], full[:, code] = full[_X, :], full[:, _X]
    return full.astype(np.int32)
