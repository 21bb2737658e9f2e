"""Pairs of texts and patterns, and their alignments on any device."""

from __future__ import annotations

from typing import Any

import numpy as np

from proteoscope.kernels.cpu.gapsmis import ReadSearch as OnProcessor
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import backend_module
from proteoscope.kernels.gapsmis_layouts import Alignments, GapRules, Sequences
from tests.shim.tuning import tuned

__all__ = ["aligned", "assert_same_alignments", "damaged_reads", "expected_alignments", "sequences"]


def sequences(every: Any) -> Sequences:
    """Return lists of codes as columns."""
    offsets = np.cumsum([0, *map(len, every)])
    return Sequences(np.array([code for codes in every for code in codes], np.int8), offsets.astype(np.int64))


def damaged_reads(n: int, seed: int, *, n_codes: int = 4, most: int = 120, even: bool = False) -> tuple[list[Any], list[Any]]:
    """Generate texts, and patterns cut from them with errors and gaps; if `even`, all texts and all patterns have one length."""
    random = np.random.default_rng(seed)
    texts, patterns = [], []
    for _ in range(n):
        text = random.integers(0, n_codes, most if even else random.integers(0, most))
        begin = 0 if even else random.integers(0, 1 + len(text) // 4)
        pattern = text[begin : begin + (most * 3 // 4 if even else random.integers(0, len(text) + 1))].copy()
        wrong = random.random(len(pattern)) < 0.05
        pattern[wrong] = random.integers(0, n_codes, wrong.sum())
        for _ in range(2):
            cut, size = random.integers(0, len(pattern) + 1), random.integers(0, 4)
            if even:
                pattern = np.concatenate([pattern[:cut], pattern[cut + size :], random.integers(0, n_codes, size)])[: len(pattern)]
            else:
                pattern = np.delete(pattern, slice(cut, cut + size))
                pattern = np.insert(pattern, random.integers(0, len(pattern) + 1), random.integers(0, n_codes, random.integers(0, 4)))
        texts.append(text)
        patterns.append(pattern)
    return texts, patterns


def expected_alignments(texts: Any, patterns: Any, rules: GapRules, text_of: Any, pattern_of: Any, *, traces: bool = True) -> Alignments:
    """Return the alignments of the CPU."""
    return aligned(Processor(1), texts, patterns, rules, text_of, pattern_of, traces=traces)


def aligned(
    device: Any, texts: Any, patterns: Any, rules: GapRules, text_of: Any, pattern_of: Any, *, traces: bool = True, **options: Any
) -> Alignments:
    """Align pairs of code lists with a class with other values of its public attributes, and check that every row is reported."""
    kind = OnProcessor if device.is_processor else tuned(backend_module(device, "gapsmis").ReadSearch, **options)
    search = kind(device, sequences(texts), sequences(patterns), rules)
    out = Alignments(*(np.full_like(column, 77) for column in Alignments.none(len(text_of), rules.maximum_gaps)))
    ends = list(search.align(np.asarray(text_of, np.int64), np.asarray(pattern_of, np.int64), out, traces=traces))
    assert ends == sorted(ends)
    assert not len(text_of) or ends[-1] == len(text_of)
    return out


def assert_same_alignments(actual: Alignments, expected: Alignments) -> None:
    """Compare all columns."""
    for name, left, right in zip(Alignments._fields, actual, expected, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)
