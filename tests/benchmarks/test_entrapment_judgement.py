"""Comparison of two entrapment evaluations at equal measured false fraction, and their searches."""

from __future__ import annotations

import re
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import entrapment_searches
from benchmarks.entrapment import CURVE, done
from benchmarks.entrapment_databases import ENTRAPMENT
from benchmarks.entrapment_estimators import at_equal_share
from benchmarks.entrapment_searches import _with_entrapment_partners
from benchmarks.entrapment_tables import print_comparison


def curve(name: str, seed: int, per_threshold: float, false: float) -> dict[str, Any]:
    """Return the record of a search whose accepted matches increase evenly with the threshold; some of them are entrapment peptides."""
    accepted = np.round(per_threshold * np.arange(1, len(CURVE) + 1)).astype(int)
    entrapped = np.round(false * accepted).astype(int)
    record = {"figure": "curve", "part": "peers", "set": name, "seed": seed, "program": "proteoscope", "ratio": 1.0}
    return {**record, "q": CURVE.tolist(), "targets": (accepted - entrapped).tolist(), "entrapped": entrapped.tolist()}


def test_comparison_at_equal_false_fraction_marks_losses(capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(1)
    before = [curve(name, seed, 10 + random.normal(0, 0.1), 0.004) for name in ("qc_shew", "bsa1") for seed in range(6)]
    now = [
        curve(name, seed, (11 if name == "qc_shew" else 9) + random.normal(0, 0.1), 0.004)
        for name in ("qc_shew", "bsa1")
        for seed in range(6)
    ]
    print_comparison(now, before)
    lines = capsys.readouterr().out.splitlines()
    for name in ("qc_shew", "bsa1"):
        for share in (1, 2, 3):
            (line,) = (line for line in lines if re.match(rf"{name} +{share}% ", line))
            reported = [float(word.replace("%", "")) for word in line.replace("loses", "").split()[1:]]
            expected = []
            for records in (before, now):
                chosen = [record for record in records if record["set"] == name]
                accepted = np.sum([np.add(row["targets"], row["entrapped"]) for row in chosen], axis=0).astype(float)
                weighted = 2.0 * np.sum([row["entrapped"] for row in chosen], axis=0)
                expected.append(at_equal_share(accepted, weighted, share / 100) / 6)
            assert reported[2:6] == pytest.approx([*expected, expected[1] / expected[0], expected[1] - expected[0]], abs=0.006)
            assert line.endswith("loses") == (name == "bsa1")
    assert sum(line.startswith("pooled") for line in lines) == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_entrapment_tasks_return_in_order_with_1_or_2_processes(jobs: int) -> None:
    assert [*done([partial(list, range(n)) for n in (3, 1, 2)], jobs)] == [[0, 1, 2], [0], [0, 1]]


def test_second_pass_adds_entrapment_partners_of_proteins(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a protein or its shuffled counterpart is identified, the second pass includes both."""
    names = ["A", ENTRAPMENT + "B", "B", "C", ENTRAPMENT + "A", ENTRAPMENT + "C", "DECOY_A"]
    proteins = SimpleNamespace(n_targets=6, proteins=SimpleNamespace(accession=names.__getitem__))
    monkeypatch.setattr(entrapment_searches, "identified_proteins", lambda *_: np.array([0, 1]))
    actual: Any = _with_entrapment_partners(None, proteins, 0.01)  # type: ignore[arg-type]
    assert [names[i] for i in actual] == ["A", ENTRAPMENT + "B", "B", ENTRAPMENT + "A"]
