"""Isotope impurities of isobaric labels: the table that comes with a kit, and the correction of reporter intensities."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.separated_rows import separated_rows
from proteoscope.engine.quantification.labels import Label
from proteoscope.engine.statistics.nonnegative import nonnegative_least_squares

__all__ = ["corrected", "read_impurities"]

_REMEDY = (
    "Write a tab-separated table with the column channel and columns of shifts (-2, -1, +1, +2, -13C, +15N) or of channels, in percent"
)
_CARBON, _NITROGEN = 1.0033548, 0.9970349
"""Mass differences of 13C and 15N, Da."""
_NEAR = 0.0015
"""Tolerance of m/z, Th; shifts by 13C and 15N differ by 0.0063."""
_SHIFT = re.compile(r"([+-])(?:(\d)(?:X|\*)?)?(13C|15N|C|N)")
_MAXIMUM_SPILT = 90.0


def read_impurities(path: Path, label: Label) -> NDArray[np.float64]:
    """Read the fraction of each label that appears in each channel, (k, k) float64; rows are channels, columns are labels.

    A row of the file is a label, named by its channel. The columns are shifts (numbers mean 13C) or channels, with values in percent of the
    label. Signal that is shifted to an m/z without a channel is lost. If the channel itself has no column, it receives the remainder.

    Raises
    ------
    InputError
        If the table is invalid for the kit, or the impurities are too large to correct. The message contains the line.
    """
    rows = separated_rows(path, _REMEDY)
    header = [cell.strip() for cell in rows[0]]
    if not header or header[0].lower() != "channel" or len(header) < 2:
        raise InputError(path, "has no column 'channel' followed by columns of shifts", place="line 1", remedy=_REMEDY)
    targets = [_targets(path, cell, label) for cell in header[1:]]
    if len(set(header)) < len(header):
        raise InputError(path, "has a column twice", place="line 1", remedy=_REMEDY)
    matrix, line_of = np.zeros((len(label), len(label))), dict[int, int]()
    for line, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        place, channel = f"line {line}", label.number(row[0])
        if channel < 0:
            channels = ", ".join(label.channels)
            raise InputError(path, f"'{shortened(row[0])}' is not a channel of {label.name}", place=place, remedy=f"Use one of {channels}")
        if channel in line_of:
            raise InputError(path, f"has channel {label.channels[channel]} twice, as in line {line_of[channel]}", place=place)
        line_of[channel] = line
        percents = [_percent(path, cell, place) for cell in [*row[1:], *[""] * len(targets)][: len(targets)]]
        unchanged = [percent for percent, target in zip(percents, targets, strict=True) if target[channel] == channel]
        spilt = sum(percents) - sum(unchanged)
        if spilt > _MAXIMUM_SPILT or (unchanged and abs(spilt + sum(unchanged) - 100) > 1):
            raise InputError(path, f"percentages of channel {label.channels[channel]} do not add up to 100", place=place, remedy=_REMEDY)
        matrix[channel, channel] = (sum(unchanged) if unchanged else 100 - spilt) / 100
        for percent, target in zip(percents, targets, strict=True):
            if target[channel] >= 0 and target[channel] != channel:
                matrix[target[channel], channel] += percent / 100
    lacking = [name for number, name in enumerate(label.channels) if number not in line_of]
    if lacking:
        raise InputError(path, f"lacks channel {lacking[0]} of {label.name}", remedy="Give a row for each channel")
    if np.linalg.cond(matrix) > 1e6:
        raise InputError(path, "mixes the channels so much that they cannot be separated", remedy=_REMEDY)
    return matrix


def _targets(path: Path, header: str, label: Label) -> list[int]:
    """Return the channel to which the shift in a column's header moves each channel; -1 if there is no such channel."""
    channel = label.number(header)
    if channel >= 0:
        return [channel] * len(label)
    text = header.upper().replace(" ", "").replace("−", "-").removesuffix("%")
    if re.fullmatch(r"[+-][1-3]", text):
        steps, shift = int(text), int(text) * _CARBON
        if not any(name.endswith(("N", "C")) for name in label.channels):
            nominal = [int(name) for name in label.channels]
            return [nominal.index(mass + steps) if mass + steps in nominal else -1 for mass in nominal]
    elif re.fullmatch(rf"(?:{_SHIFT.pattern})+", text):
        shift = sum(
            (1 if sign == "+" else -1) * int(count or 1) * (_CARBON if "C" in element else _NITROGEN)
            for sign, count, element in _SHIFT.findall(text)
        )
    else:
        raise InputError(path, f"'{shortened(header)}' is neither a shift nor a channel of {label.name}", place="line 1", remedy=_REMEDY)
    apart = np.abs(label.mz[None, :] - (label.mz[:, None] + shift))
    nearest: list[int] = np.where(apart.min(axis=1) < _NEAR, apart.argmin(axis=1), -1).tolist()
    return nearest


def _percent(path: Path, text: str, place: str) -> float:
    cell = text.strip().removesuffix("%").strip()
    if cell in ("", "-", "NA"):
        return 0.0
    try:
        value = float(cell)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise InputError(path, f"'{shortened(text)}' is not a percentage from 0 to 100", place=place, remedy=_REMEDY)
    return value


def corrected(intensity: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the reporter intensities (n, k) after correction of impurities, by non-negative least squares.

    Channels without a peak, or without intensity after the correction, are NaN.
    """
    result = nonnegative_least_squares(matrix, np.nan_to_num(intensity))
    return np.where(np.isnan(intensity) | (result <= 0), np.nan, result)
