"""Reads aligned on a card have the processor's rows, and `reads` writes the same bytes on the processor, on the card and on both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.jobs.progress import Progress
from engine.read_alignment.parameters import ReadAlignmentParameters
from engine.read_alignment.search import align_reads
from kernels.cuda.gapsmis_plan import EIGHT, FOUR, MANY_TEXTS, NARROW, ONE_TEXT, PROFILE, TABLE, WIDE, Shape
from kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, GapRules
from tests.shim.read_inputs import aligned, assert_same_alignments, damaged_reads, expected_alignments

pytestmark = pytest.mark.gpu

DNA = np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32)


def check(device: Any, texts: Any, patterns: Any, rules: GapRules, pairs: Any = None, **options: Any) -> None:
    """With and without tracing."""
    text_of, pattern_of = pairs or (np.arange(len(texts)),) * 2
    options = {"traces_on_host": False} | options
    for traces in (False, True):
        expected = expected_alignments(texts, patterns, rules, text_of, pattern_of, traces=traces)
        assert_same_alignments(aligned(device, texts, patterns, rules, text_of, pattern_of, traces=traces, **options), expected)


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
@pytest.mark.parametrize("most_gaps", [0, 1, 2, 4])
def test_reads_of_any_length(device, mode, most_gaps):
    texts, patterns = damaged_reads(1500, 41, most=400)
    check(device, texts, patterns, GapRules(DNA, 5, 2, most_gaps, mode))


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
@pytest.mark.parametrize("shape", [
    Shape(MANY_TEXTS, 4, 6, NARROW, FOUR), Shape(MANY_TEXTS, 8, 16, NARROW, EIGHT), Shape(MANY_TEXTS, 32, 8, NARROW, TABLE),
    Shape(MANY_TEXTS, 8, 8, WIDE, FOUR),
    Shape(MANY_TEXTS, 16, 4, WIDE, TABLE), Shape(MANY_TEXTS, 1, 8, NARROW, FOUR),
])  # fmt: skip
def test_every_form(device, shape, mode):
    texts, patterns = damaged_reads(400, 42, most=300)
    options = {"shape": shape, "numbers": shape.numbers, "scores": shape.scores}
    check(device, texts, patterns, GapRules(DNA, 5, 2, 2, mode), **options)
    check(device, texts, patterns, GapRules(DNA, 1, 1, 3, mode, 4), **options)


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_proteins_with_one_text_for_a_block(device, mode):
    random = np.random.default_rng(43)
    matrix = np.where(np.eye(20, dtype=bool), 9, random.integers(-6, 2, (20, 20))).astype(np.int32)
    texts, patterns = damaged_reads(60, 44, letters=20, most=250)
    pairs = np.tile(np.arange(60), 60), np.repeat(np.arange(60), 60)
    for shape in (None, Shape(ONE_TEXT, 8, 8, NARROW, PROFILE), Shape(ONE_TEXT, 16, 16, NARROW, PROFILE)):
        if shape is None or max(map(len, texts)) <= shape.width:
            check(device, texts, patterns, GapRules(matrix, 11, 1, 2, mode), pairs, shape=shape)


def test_the_published_recurrence_and_directions_in_little_memory(device):
    texts, patterns = damaged_reads(600, 45, most=200)
    check(device, texts, patterns, GapRules(DNA, 1, 1, 2, is_published=True))
    check(device, texts, patterns, GapRules(DNA, 5, 2, 2, WITHIN), direction_bytes=20_000_000)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Texts, and a read of each."""
    folder = tmp_path_factory.mktemp("reads")
    texts, patterns = damaged_reads(3000, 46, most=300)
    letters, paths = np.frombuffer(b"ACGT", np.uint8), (folder / "texts.fasta", folder / "reads.fasta")
    for path, every in zip(paths, (texts, patterns), strict=True):
        lines = [f">s{k}\n{letters[np.append(one, [0, 1, 2])].tobytes().decode()}\n" for k, one in enumerate(every)]
        path.write_text("".join(lines))
    return paths


@pytest.mark.parametrize("mode", ["prefix", "within", "local"])
def test_the_table_is_the_same_on_all_devices(number, files, mode, tmp_path):
    written = []
    for device, threads in (("cpu", 2), (f"cuda:{number}", 2), ("all", 4)):
        told: list[str] = []
        out = tmp_path / f"{threads}-{device.replace(':', '')}.tsv"
        align_reads(
            *files, out, ReadAlignmentParameters.checked({"mode": mode}), pairs=True, device=device, threads=threads,
            progress=Progress(lambda event, told=told: told.append(event.message)),  # type: ignore[misc]
        )  # fmt: skip
        assert not [text for text in told if "elsewhere" in text], told
        written.append(out.read_bytes())
    assert len(written[0].splitlines()) == 3001
    assert written[1] == written[0]
    assert written[2] == written[0]
