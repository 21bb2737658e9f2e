"""MSP entries in a text: the kernel against the definition, line by line, on random lines."""

from __future__ import annotations

import random

import numpy as np
import pytest

from proteoscope import kernels

LINES = (
    b"Name: A",
    b"NAME : B",
    b"compound name: c",
    b"Compound_Name:d",
    b"Na_Me\x0b: e",
    b"Num Peaks: 2",
    b"num\xa0peaks:",
    b"NumPeaks: x",
    b"Names: f",
    b"Nam: g",
    b"MW: 1",
    b": empty",
    b"# Name: h",
    b"words",
    b"",
    b"  ",
    b"100 5",
    b"200 6",
    b"1.2.3 4",
)


def scan_lines(text: bytes) -> np.ndarray:
    cpu = kernels.cpu.library_text
    table, mz, intensity = np.empty((len(text) + 1, cpu.LINE_COLUMNS), np.int64), np.empty(len(text) + 1), np.empty(len(text) + 1)
    state = np.zeros(cpu.N_LIBRARY_STATES, np.int64)
    residues = np.frombuffer(text, np.uint8)
    return table[: cpu.scan_library_lines(residues, False, ord("."), state, mz, intensity, table)]


def defined_rows(text: bytes, table: np.ndarray) -> list[int]:
    """Find entries: one ends with its peaks, after a blank line if it has their number, or before a second name."""
    rows: list[int] = []
    seen: set[str] = set()
    n_peaks = last = paragraph = 0
    for row, (start, stop, number, n_before, code) in enumerate(table.tolist()):
        is_apart, last = number > last + 1, number
        key, colon, _ = text[start:stop].decode("latin-1").partition(":")
        if code != kernels.cpu.library_text.LINE_WORDS:
            n_peaks = -1 if "numpeaks" in seen else n_peaks
        elif colon and not key.startswith("#"):
            key = "".join(key.split()).replace("_", "").lower()
            is_begun = not rows or n_before != n_peaks or (is_apart and "numpeaks" in seen)
            if not is_begun and key in ("name", "compoundname") and key in seen:
                rows.append(paragraph if paragraph > rows[-1] else row)
                seen = set()
            else:
                paragraph = row if is_apart else paragraph
                if is_begun:
                    rows.append(row)
                    seen = set()
            seen.add(key)
            n_peaks = n_before
    return rows


@pytest.mark.parametrize("seed", range(50))
def test_msp_entry_rows_equals_definition(seed: int) -> None:
    choose = random.Random(seed)
    text = b"\n".join(choose.choices(LINES, k=200))
    table = scan_lines(text)
    rows = np.empty(len(table), np.int64)
    n_entries = kernels.cpu.library_text.msp_entry_rows(np.frombuffer(text, np.uint8), table, rows)
    expected = defined_rows(text, table)
    assert len(expected) > 10
    assert rows[:n_entries].tolist() == expected


def test_msp_entry_rows_accepts_text_without_lines() -> None:
    empty = np.empty((0, kernels.cpu.library_text.LINE_COLUMNS), np.int64)
    assert kernels.cpu.library_text.msp_entry_rows(np.frombuffer(b"", np.uint8), empty, np.empty(0, np.int64)) == 0


@pytest.mark.parametrize("blank", sorted(set(range(256)) - set(b":\r\n")))
def test_msp_entry_rows_ignores_blanks_of_latin_1(blank: int) -> None:
    """A second name begins another entry only if its key is `Name`."""
    text = b"Name: a\nNa" + bytes([blank]) + b"me: b"
    table = scan_lines(text)
    n_entries = kernels.cpu.library_text.msp_entry_rows(np.frombuffer(text, np.uint8), table, np.empty(len(table), np.int64))
    assert n_entries == 1 + (chr(blank).isspace() or chr(blank) == "_")


def test_count_peak_ends_counts_line_ends_and_separators() -> None:
    text = bytes(range(256)) * 3 + b"\n;:("
    expected = sum(map(text.count, (b"\n", b"\r", b";", b":", b"(")))
    assert kernels.cpu.library_text.count_peak_ends(np.frombuffer(text, np.uint8)) == expected
