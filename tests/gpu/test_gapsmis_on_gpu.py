"""Alignments with a bounded number of gaps on a GPU equal those on the CPU, in every form of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proteoscope.kernels.cuda.gapsmis_plan import EIGHT, FOUR, MANY_TEXTS, NARROW, ONE_TEXT, PROFILE, TABLE, WIDE, GapsMisShape
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, GapRules
from tests.shim.read_inputs import aligned, assert_same_alignments, damaged_reads, expected_alignments

pytestmark = pytest.mark.gpu

DNA = np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32)


def check(device: Any, texts: Any, patterns: Any, rules: GapRules, pairs: Any = None, **options: Any) -> None:
    """Align with and without tracing."""
    text_of, pattern_of = pairs or (np.arange(len(texts)),) * 2
    options = {"traces_on_host": False} | options
    for traces in (False, True):
        expected = expected_alignments(texts, patterns, rules, text_of, pattern_of, traces=traces)
        assert_same_alignments(aligned(device, texts, patterns, rules, text_of, pattern_of, traces=traces, **options), expected)


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
@pytest.mark.parametrize("maximum_gaps", [0, 1, 2, 4])
def test_gpu_read_alignment_equals_cpu_for_any_read_length(device, mode, maximum_gaps):
    texts, patterns = damaged_reads(1500, 41, most=400)
    check(device, texts, patterns, GapRules(DNA, 5, 2, maximum_gaps, mode))


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
@pytest.mark.parametrize(
    "shape",
    [
        GapsMisShape(MANY_TEXTS, 4, 6, NARROW, FOUR),
        GapsMisShape(MANY_TEXTS, 8, 16, NARROW, EIGHT),
        GapsMisShape(MANY_TEXTS, 32, 8, NARROW, TABLE),
        GapsMisShape(MANY_TEXTS, 8, 8, WIDE, FOUR),
        GapsMisShape(MANY_TEXTS, 16, 4, WIDE, TABLE),
        GapsMisShape(MANY_TEXTS, 1, 8, NARROW, FOUR),
    ],
)
def test_gpu_read_alignment_equals_cpu_with_every_kernel_variant(device, shape, mode):
    texts, patterns = damaged_reads(400, 42, most=300)
    options = {"shape": shape, "numbers": shape.numbers, "scores": shape.scores}
    check(device, texts, patterns, GapRules(DNA, 5, 2, 2, mode), **options)
    check(device, texts, patterns, GapRules(DNA, 1, 1, 3, mode, 4), **options)


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_gpu_read_alignment_equals_cpu_with_block_per_reference(device, mode):
    random = np.random.default_rng(43)
    matrix = np.where(np.eye(20, dtype=bool), 9, random.integers(-6, 2, (20, 20))).astype(np.int32)
    texts, patterns = damaged_reads(60, 44, n_codes=20, most=250)
    pairs = np.tile(np.arange(60), 60), np.repeat(np.arange(60), 60)
    for shape in (None, GapsMisShape(ONE_TEXT, 8, 8, NARROW, PROFILE), GapsMisShape(ONE_TEXT, 16, 16, NARROW, PROFILE)):
        if shape is None or max(map(len, texts)) <= shape.width:
            check(device, texts, patterns, GapRules(matrix, 11, 1, 2, mode), pairs, shape=shape)


def test_gpu_read_alignment_by_published_recurrence_equals_cpu(device):
    texts, patterns = damaged_reads(600, 45, most=200)
    check(device, texts, patterns, GapRules(DNA, 1, 1, 2, is_published=True))
    check(device, texts, patterns, GapRules(DNA, 5, 2, 2, WITHIN), direction_bytes=20_000_000)
