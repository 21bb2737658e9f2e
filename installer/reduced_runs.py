"""Reduce the size of mzML files for shipping: shorter numbers, compressed arrays, and no index or values that readers can compute.

All spectra and peaks are retained. The m/z values are stored in 32 bits, as ion traps write them; this changes those of MS1 spectra by at
most 0.06 ppm. Intensities of MS1 spectra are rounded to nine significant bits, an error of at most 0.2 %. Values of MS2 and higher spectra
are not changed; a file in which they need more than 32 bits is rejected. The result is gzipped mzML, which other programs can read.
"""

from __future__ import annotations

import base64
import gzip
import re
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["reduced_run"]

_BITS = 23
"""Number of fraction bits of a 32-bit float."""
_STORED_BITS = 8
_COMPUTED = ("base peak m/z", "base peak intensity", "lowest observed m/z", "highest observed m/z")
_ARRAY = re.compile(r"<binaryDataArray .*?</binaryDataArray>", re.DOTALL)
_BINARY = re.compile(r"<binary>(.*?)</binary>", re.DOTALL)
_LEVEL = re.compile(r'name="ms level" value="(\d+)"')


def reduced_run(path: Path) -> bytes:
    """Return a smaller, gzipped copy of an mzML file whose arrays are not compressed.

    Raises
    ------
    ValueError
        If peaks of an MS2 spectrum need more than 32 bits.
    """
    text = path.read_text(encoding="latin-1")
    # The index and its checksum are no longer valid.
    document = text[text.index("<mzML ") : text.index("</mzML>") + len("</mzML>")]
    parts = ['<?xml version="1.0" encoding="ISO-8859-1"?>\n']
    for part in re.split("(?=<spectrum )", document):
        level = _LEVEL.search(part)
        is_ms1 = level is not None and level[1] == "1"
        part = re.sub(rf'\s*<cvParam [^>]*name="(?:{"|".join(map(re.escape, _COMPUTED))})"[^>]*/>', "", part)
        parts.append(_ARRAY.sub(lambda match, is_ms1=is_ms1: _reduced_array(match[0], is_ms1=is_ms1), part))
    return gzip.compress(("".join(parts) + "\n").encode("latin-1"), 9, mtime=0)


def _reduced_array(element: str, *, is_ms1: bool) -> str:
    """Return the XML element of an array with its values compressed and in 32 bits."""
    match = _BINARY.search(element)
    if match is None or "no compression" not in element:
        raise ValueError("an array is already compressed")
    data, is_long = base64.b64decode(match[1]), "64-bit float" in element
    values = np.frombuffer(data, "<f8" if is_long else "<f4")
    short = values.astype("<f4")
    if is_ms1 and "intensity array" in element:
        short = rounded(short, _STORED_BITS)
    elif not is_ms1 and not np.array_equal(short, values):
        raise ValueError("a spectrum of MS2 needs more than 32 bits")
    text = base64.b64encode(zlib.compress(short.tobytes(), 9)).decode("ascii")
    element = re.sub(r'encodedLength="\d+"', f'encodedLength="{len(text)}"', element)
    element = element.replace('"MS:1000523" name="64-bit float"', '"MS:1000521" name="32-bit float"')
    element = element.replace('"MS:1000576" name="no compression"', '"MS:1000574" name="zlib compression"')
    return _BINARY.sub(lambda _: f"<binary>{text}</binary>", element)


def rounded(values: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """Round positive 32-bit floats to a number of bits of their fraction.

    Parameters
    ----------
    values : ndarray of float32, shape (n,)
    bits : int
        Number of fraction bits to retain, 0 to 22.

    Returns
    -------
    ndarray of float32, shape (n,)

    >>> rounded(np.array([1.26, 3.0], np.float32), 1).tolist()
    [1.5, 3.0]
    """
    spare = _BITS - bits
    integers = values.view("<u4").astype(np.uint64) + (1 << (spare - 1))
    return (integers >> spare << spare).astype("<u4").view("<f4")
