"""Alignments with a bounded number of gaps equal their definition, in every mode and next to any other pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from proteoscope.kernels.cpu import gapsmis
from proteoscope.kernels.cpu.gapsmis import ReadSearch
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.gapsmis_layouts import LOCAL, NO_ALIGNMENT, PREFIX, WITHIN, Alignments, GapRules, Sequences, score_bits
from tests.kernels.gapsmis_definition import best_alignment, printed_recurrence, steps_of

DNA = np.where(np.eye(3, dtype=bool), 2, -3).astype(np.int32)
UNEVEN = np.array([[4, -1, 0], [-2, 3, 1], [-4, 0, 5]], np.int32)
COSTS = [(DNA, 5, 2), (DNA, 0, 1), (UNEVEN, 1, 0), (DNA, 0, 0)]


def sequences(every):
    offsets = np.cumsum([0, *map(len, every)])
    return Sequences(np.array([code for codes in every for code in codes], np.int8), offsets.astype(np.int64))


def words(lengths, n_codes):
    return [np.array(codes, np.int64) for length in lengths for codes in product(range(n_codes), repeat=length)]


def align(texts, patterns, rules, text_of, pattern_of, *, threads=1, traces=True):
    """Align pairs of code lists."""
    out = Alignments.none(len(text_of), rules.maximum_gaps)
    search = ReadSearch(Processor(threads), sequences(texts), sequences(patterns), rules)
    ends = list(search.align(np.asarray(text_of, np.int64), np.asarray(pattern_of, np.int64), out, traces=traces))
    assert ends == sorted(ends)
    assert not len(text_of) or ends[-1] == len(text_of)
    return out


def assert_defined(texts, patterns, rules):
    """Compare the alignment of every text with every pattern with the definition."""
    text_of, pattern_of = np.divmod(np.arange(len(texts) * len(patterns)), len(patterns))
    actual = align(texts, patterns, rules, text_of, pattern_of)
    only = align(texts, patterns, rules, text_of, pattern_of, traces=False)
    np.testing.assert_array_equal(only.score, actual.score)
    np.testing.assert_array_equal(only.text_end, actual.text_end)
    for k, (t, p) in enumerate(zip(text_of, pattern_of, strict=True)):
        best = best_alignment(texts[t], patterns[p], rules)
        if best is None:
            assert actual.score[k] == NO_ALIGNMENT, f"{texts[t]} {patterns[p]} {rules}"
            assert not actual.runs[k].any()
            assert [column[k] for column in actual[1:6]] == [-1] * 5
            continue
        places = (actual.text_start[k], actual.text_end[k]), (actual.pattern_start[k], actual.pattern_end[k])
        reported = actual.score[k], places, actual.gaps[k], steps_of(actual.runs[k])
        assert reported == (best.score, (best.text, best.pattern), best.gaps, best.steps), f"{texts[t]} {patterns[p]} {rules}"


@pytest.mark.parametrize("maximum_gaps", [0, 1, 2, 3])
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("mode", [PREFIX, WITHIN])
def test_whole_read_alignment_equals_definition_in_small_cases(mode, costs, maximum_gaps):
    texts, patterns = words(range(5), 2), words(range(4), 2)
    assert_defined(texts, patterns, GapRules(*costs, maximum_gaps, mode))


@pytest.mark.parametrize("maximum_gaps", [0, 1, 2])
@pytest.mark.parametrize("costs", COSTS)
def test_local_read_alignment_equals_definition_in_small_cases(costs, maximum_gaps):
    assert_defined(words([0, 1, 4], 2), words([0, 1, 3], 2), GapRules(*costs, maximum_gaps, LOCAL))


@pytest.mark.parametrize("seed_length", [1, 2])
@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_seeded_read_alignment_equals_definition_in_small_cases(mode, seed_length):
    texts, patterns = words([0, 2, 4], 2), words([0, 1, 3], 2)
    for costs in COSTS[:3]:
        assert_defined(texts, patterns, GapRules(*costs, 2, mode, seed_length))


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_read_alignment_equals_definition_in_longer_cases(mode):
    random = np.random.default_rng(5)
    for costs, maximum_gaps in product(COSTS, (1, 3)):
        texts = [random.integers(0, 3, random.integers(3, 7)) for _ in range(5)]
        patterns = [random.integers(0, 3, random.integers(2, 7)) for _ in range(5)]
        assert_defined(texts, patterns, GapRules(*costs, maximum_gaps, mode))


@pytest.mark.parametrize("maximum_gaps", [0, 1, 2, 3])
def test_published_recurrence_equals_the_printed_formula(maximum_gaps):
    for costs in COSTS:
        rules = GapRules(*costs, maximum_gaps, is_published=True)
        texts, patterns = words(range(5), 2), words(range(4), 2)
        assert_defined(texts, patterns, rules)
        text_of, pattern_of = np.divmod(np.arange(len(texts) * len(patterns)), len(patterns))
        actual = align(texts, patterns, rules, text_of, pattern_of).score
        printed = [printed_recurrence(texts[t], patterns[p], rules) for t, p in zip(text_of, pattern_of, strict=True)]
        assert actual.tolist() == [NO_ALIGNMENT if score is None else score for score in printed]


def test_published_recurrence_equals_the_formula_for_long_reads():
    random = np.random.default_rng(8)
    texts = [random.integers(0, 3, 90) for _ in range(4)]
    patterns = [np.concatenate([text[:20], text[23:50], [0, 1], text[50:75]]) for text in texts]
    rules = GapRules(DNA, 2, 1, 2, is_published=True)
    actual = align(texts, patterns, rules, range(4), range(4))
    assert actual.score.tolist() == [printed_recurrence(*pair, rules) for pair in zip(texts, patterns, strict=True)]
    assert [score_of_alignment(texts[k], patterns[k], actual, k, rules) for k in range(4)] == actual.score.tolist()


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_read_alignment_starts_at_a_long_seed(mode):
    random = np.random.default_rng(12)
    text = random.integers(0, 3, 200)
    text[74] = (text[69] + 1) % 3  # otherwise the gap could be elsewhere
    pattern = np.concatenate([text[:70], text[75:110]])
    rules = GapRules(DNA, 5, 2, 1, mode)
    free, seeded, mismatched = (
        align([text], [query], rules._replace(seed_length=length), [0], [0])
        for query, length in ((pattern, 0), (pattern, 66), (np.append(1 - pattern[:1], pattern[1:]) % 3, 66))
    )
    for left, right in zip(free, seeded, strict=True):
        np.testing.assert_array_equal(left, right)
    assert seeded.score[0] == 105 * 2 - 5 - 5 * 2
    assert seeded.runs[0].tolist() == [70, -5, 35]
    assert mismatched.score[0] == NO_ALIGNMENT


def test_published_recurrence_misses_a_gap_back_to_the_diagonal():
    text, pattern = [0, 1, 2, 0, 0, 1, 1, 2, 2, 1, 0, 0, 1], [0, 1, 2, 2, 0, 0, 1, 1, 2, 2, 1, 0, 1]
    scores = [
        align([text], [pattern], GapRules(DNA, 1, 1, 2, is_published=is_published), [0], [0]).score[0] for is_published in (False, True)
    ]
    assert scores == [12 * 2 - 2 * 2, printed_recurrence(np.array(text), np.array(pattern), GapRules(DNA, 1, 1, 2))]
    assert scores[1] < scores[0]


def score_of_alignment(text, pattern, alignments, k, rules):
    """Return the score of a reported alignment."""
    i, j = alignments.text_start[k], alignments.pattern_start[k]
    score, before = 0, ""
    for step in steps_of(alignments.runs[k]):
        if step == "=":
            score += rules.matrix[pattern[j], text[i]]
        else:
            score -= rules.gap_extend + (rules.gap_open if step != before else 0)
        i, j, before = i + (step != "I"), j + (step != "D"), step
    assert (i, j) == (alignments.text_end[k], alignments.pattern_end[k])
    return score


def damaged_reads(n, seed, *, n_codes=4, most=120):
    """Generate texts, and patterns cut from them with errors and gaps."""
    random = np.random.default_rng(seed)
    texts, patterns = [], []
    for _ in range(n):
        text = random.integers(0, n_codes, random.integers(20, most))
        pattern = text[: random.integers(5, len(text))].copy()
        wrong = random.random(len(pattern)) < 0.05
        pattern[wrong] = random.integers(0, n_codes, wrong.sum())
        cut = random.integers(0, len(pattern))
        pattern = np.delete(pattern, slice(cut, cut + random.integers(0, 4)))
        cut = random.integers(0, len(pattern) + 1)
        texts.append(text)
        patterns.append(np.insert(pattern, cut, random.integers(0, n_codes, random.integers(0, 4))))
    return texts, patterns


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_read_alignment_is_independent_of_batch_and_threads(mode):
    texts, patterns = damaged_reads(150, 7)
    matrix = np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32)
    rules = GapRules(matrix, 5, 2, 2, mode)
    every = np.arange(len(texts))
    together = align(texts, patterns, rules, every, every, threads=2)
    assert score_bits(rules, 120) == 16
    for k in range(0, len(texts), 17):
        alone = align(texts[k : k + 1], patterns[k : k + 1], rules, [0], [0])
        assert all((single[0] == column[k]).all() for single, column in zip(alone, together, strict=True))
        assert score_of_alignment(texts[k], patterns[k], together, k, rules) == together.score[k]
    # Scores a thousand times higher need 32 bits, and select the same alignments.
    wide = GapRules(matrix * 1000, 5000, 2000, 2, mode)
    assert score_bits(wide, 120) == 32
    scaled = align(texts, patterns, wide, every, every)
    np.testing.assert_array_equal(scaled.score, np.where(together.score == NO_ALIGNMENT, NO_ALIGNMENT, together.score * 1000))
    for left, right in zip(scaled[1:], together[1:], strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("mode", [WITHIN, LOCAL, PREFIX])
def test_windowed_trace_of_read_alignment_equals_the_full_trace(mode, monkeypatch):
    random = np.random.default_rng(11)
    text = random.integers(0, 4, 3000)
    patterns = [np.delete(text[k : k + 60], slice(30, 33)) for k in (0, 500, 2930)] + [random.integers(0, 4, 20)]
    rules = GapRules(np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32), 5, 2, 2, mode)
    cut = align([text], patterns, rules, [0] * 4, range(4))
    monkeypatch.setattr(gapsmis, "windows", lambda rules, score, end, lengths: np.zeros(len(score), np.int64))
    for left, right in zip(cut, align([text], patterns, rules, [0] * 4, range(4)), strict=True):
        np.testing.assert_array_equal(left, right)
    if mode != PREFIX:
        assert cut.text_start[:3].tolist() == [0, 500, 2930]


def test_local_read_alignment_reports_the_first_end_if_tied():
    first, second = np.arange(6), np.arange(6, 12)
    matrix = np.where(np.eye(13, dtype=bool), 2, -9).astype(np.int32)
    rules = GapRules(matrix, 20, 5, 1, LOCAL)
    # The first in the text is the last in the pattern, far from the other.
    actual = align([np.append(second, first)], [np.concatenate([first, [12] * 80, second])], rules, [0], [0])
    assert [int(column[0]) for column in actual[:5]] == [12, 0, 6, 86, 92]


def test_read_alignment_places_the_last_gap_as_defined_if_tied():
    # Either of the codes 1 in the middle of the pattern may be paired: the gaps have lengths 1 and 2, or 2 and 1.
    pattern, text = np.array([0, 0, 2, 1, 1, 2, 0, 0]), np.array([0, 0, 1, 0, 0])
    rules = GapRules(DNA, 0, 1, 2)
    best = best_alignment(text, pattern, rules)
    actual = align([text], [pattern], rules, [0], [0])
    assert best is not None
    assert (actual.score[0], steps_of(actual.runs[0])) == (best.score, best.steps)
    assert actual.runs[0].tolist() == [2, 2, 1, 1, 2]


def test_read_alignment_uses_all_symbols_of_a_matrix():
    random = np.random.default_rng(3)
    matrix = random.integers(-5, 6, (27, 27)).astype(np.int32)
    texts, patterns = damaged_reads(40, 9, n_codes=27, most=60)
    rules = GapRules(matrix, 4, 1, 3, WITHIN)
    every = np.arange(40)
    actual = align(texts, patterns, rules, every, every)
    assert [score_of_alignment(texts[k], patterns[k], actual, k, rules) for k in range(40)] == actual.score.tolist()


def test_stopped_read_alignment_leaves_later_rows_unchanged(monkeypatch):
    texts, patterns = damaged_reads(60, 4)
    rules = GapRules(np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32), 5, 2, 2)
    every, out = np.arange(60), Alignments.none(60, 2)
    whole = align(texts, patterns, rules, every, every)
    monkeypatch.setattr(gapsmis, "_CELLS_OF_BLOCK", 100_000)
    steps = ReadSearch(Processor(1), sequences(texts), sequences(patterns), rules).align(every, every, out)
    end = next(end for end in steps if end > 0)
    steps.close()
    assert 0 < end < 60
    np.testing.assert_array_equal(out.score[:end], whole.score[:end])
    assert (out.score[end:] == NO_ALIGNMENT).all()


def test_read_alignment_stops_when_closed_and_accepts_no_pairs():
    texts, patterns = damaged_reads(50, 4)
    rules = GapRules(np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32), 5, 2, 2)
    out = Alignments.none(50, 2)
    search = ReadSearch(Processor(1), sequences(texts), sequences(patterns), rules)
    every = np.arange(50)
    search.align(every, every, out).close()
    assert (out.score == NO_ALIGNMENT).all()
    assert list(search.align(every[:0], every[:0], Alignments.none(0, 2))) == []
    list(search.align(every, every, out, 10, 20))
    assert (out.score[10:20] > NO_ALIGNMENT).all()
    assert (out.score[:10] == NO_ALIGNMENT).all()
    assert (out.score[20:] == NO_ALIGNMENT).all()


def test_read_alignment_rejects_scores_beyond_32_bits():
    rules = GapRules(np.full((4, 4), 1_000_000, np.int32), 5, 2, 2)
    with pytest.raises(ValueError, match="32 bits"):
        ReadSearch(Processor(1), sequences([[0]]), sequences([[0] * 2000]), rules)
