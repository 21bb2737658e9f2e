"""Pairs are aligned as a kind of work, in rounds that differ, wherever there are kernels for them."""

from __future__ import annotations

import numpy as np
import pytest

from engine.execution.executor import Executor
from engine.execution.resources import Resources
from engine.execution.work import kind_of
from engine.jobs.progress import Progress
from engine.read_alignment.scoring import KIND, align_pairs, work_of
from kernels.device import DeviceError
from kernels.gapsmis_layouts import GapRules, Sequences

RULES = GapRules(np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32), 5, 2, 1)


def sequences(n, length, seed):
    codes = np.random.default_rng(seed).integers(0, 4, n * length).astype(np.int8)
    return Sequences(codes, np.arange(n + 1) * length)


class Card:
    name, kernels, is_processor = "cuda:0", "kernels.cuda", False


def test_a_card_is_told_that_it_cannot():
    work = work_of(sequences(3, 10, 1), sequences(3, 8, 2), RULES)
    assert work.kind == KIND
    with pytest.raises(DeviceError, match="on the processor alone"), kind_of(work).open(work, Card(), is_shared=False):
        pass


def test_rounds_of_different_pairs_do_not_disturb_each_other():
    texts, patterns = sequences(9, 40, 3), sequences(9, 30, 4)
    every = np.arange(9)
    with Executor(Resources(2, progress=Progress())).session(work_of(texts, patterns, RULES)) as session:
        whole = align_pairs(session, every, every)
        for chosen in (every[:2], every, every[::-1].copy(), every[4:5], np.repeat(every, 3), every[:0]):
            found = align_pairs(session, chosen, chosen)
            for one, other in zip(found, whole, strict=True):
                np.testing.assert_array_equal(one, other[chosen])
        scores = align_pairs(session, every, every, traces=False)
    np.testing.assert_array_equal(scores.score, whole.score)
    np.testing.assert_array_equal(scores.text_end, whole.text_end)
    assert (scores.pattern_end == -1).all()
