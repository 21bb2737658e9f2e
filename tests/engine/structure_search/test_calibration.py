"""E-values and probabilities of the same fold of structure hits."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import gemmi
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.structure_calibration import reversed_chains
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structure_search.calibration import chance_features, ordered_shares, shipped_calibration
from proteoscope.engine.structure_search.candidates import Comparison, score_chains
from proteoscope.engine.structure_search.parameters import StructureSearchParameters
from proteoscope.engine.structure_search.scoring import build_workload
from proteoscope.engine.structure_search.structures import ChainSource, described, read_chains
from proteoscope.engine.structures.reading import read_structure
from tests.searching import find_structures

LENGTHS, SHARES = st.integers(4, 30_000), st.floats(0, 1)
MODES = ("sensitive", "published")


@given(LENGTHS, LENGTHS, SHARES, st.lists(st.floats(-1, 1e5), min_size=2, max_size=20))
def test_structure_e_value_never_increases_with_the_score(first, second, shared, scores):
    features = chance_features(*(np.full(len(scores), value) for value in (first, second, shared)))
    chances = shipped_calibration("sensitive").chances(np.sort(scores), features)
    assert np.isfinite(chances).all() and (chances >= 0).all() and (chances <= 1).all() and (np.diff(chances) <= 0).all()


@given(st.sampled_from(MODES), st.integers(30, 30_000), st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_same_fold_probability_never_falls_with_tm_score(mode, shorter, tm_scores):
    other, lengths, calibration = np.full(len(tm_scores), 0.4), np.full(len(tm_scores), shorter), shipped_calibration(mode)
    probabilities = calibration.same_fold_probabilities(np.sort(tm_scores), other, lengths)
    assert (probabilities >= 0).all() and (probabilities <= 1).all() and (np.diff(probabilities) >= 0).all()
    assert (probabilities == calibration.same_fold_probabilities(other, np.sort(tm_scores), lengths)).all()


def test_same_fold_probability_separates_same_and_random_chains():
    for mode in MODES:
        for length in (60, 150, 400, 2000):
            same, chance = shipped_calibration(mode).same_fold_probabilities(*np.array([[1.0, 0.1]] * 2), np.array([length, length]))
            assert same > 0.99 and chance < 0.02, (mode, length)


def test_structure_p_values_follow_a_gumbel_distribution():
    stats = pytest.importorskip("scipy.stats")
    calibration = shipped_calibration("sensitive")
    assert calibration.location is not None and calibration.log_scale is not None
    rng = np.random.default_rng(1)
    scores, features = rng.uniform(0, 400, 200), chance_features(rng.integers(30, 900, 200), rng.integers(30, 900, 200), rng.random(200))
    expected = stats.gumbel_r.sf(scores, features @ calibration.location, np.exp(features @ calibration.log_scale))
    np.testing.assert_allclose(calibration.chances(scores, features), expected, rtol=1e-9)


def test_chance_score_grows_with_length_and_secondary_structure():
    chances = shipped_calibration("sensitive").chances(
        np.full(3, 90.0), chance_features(np.array([150, 150, 600]), np.array([150, 150, 600]), np.array([0.2, 0.7, 0.2]))
    )
    assert chances[0] < chances[1] and chances[0] < chances[2]


def copied(shared_data: Path, names: Sequence[str], folder: Path) -> Path:
    folder.mkdir()
    for name in names:
        shutil.copy(shared_data / "structures" / "bench_ca" / "pdb" / f"{name}.pdb", folder)
    return folder


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return {row["target"]: row for row in csv.DictReader(file, delimiter="\t")}


WITHOUT_PHASE_1 = StructureSearchParameters().changed(qualification_threshold=0)
NAMES = ("1bvyf", "1c7na", "1bvoa", "1biaa", "1a6ja")


def test_e_values_but_not_probabilities_grow_with_database(shared_data, tmp_path):
    folder = copied(shared_data, NAMES, tmp_path / "structures")
    rows = []
    for k, targets in enumerate(([folder / "1c7na.pdb"], [folder], [folder] * 3)):
        summary = find_structures([folder / "1bvyf.pdb"], targets, tmp_path / f"{k}.tsv", WITHOUT_PHASE_1, device="cpu")
        assert summary.n_chains == (1, 5, 15)[k]
        rows.append(rows_of(tmp_path / f"{k}.tsv")["1c7na"])
    first, five, fifteen = (float(row["e_value"]) for row in rows)
    assert five == pytest.approx(5 * first, rel=2e-3) and fifteen == pytest.approx(15 * first, rel=2e-3) and 0 < first <= 1
    assert len({row["same_fold_probability"] for row in rows}) == 1 == len({row["score"] for row in rows})


def test_uncalibrated_structure_scores_have_no_e_value(shared_data, tmp_path):
    folder = copied(shared_data, NAMES, tmp_path / "structures")
    unknown = {"mode": "published"}, {"weights": (1, 1, 1, 0)}, {"gap_first": 8.0}
    changes = {"weights": (1, 1, 2, 1)}, {"qualification_threshold": 0.1}
    for k, change in enumerate((*unknown, *changes)):
        out = tmp_path / f"{k}.tsv"
        summary = find_structures([folder / "1bvyf.pdb"], [folder], out, StructureSearchParameters().changed(**change), device="cpu")
        rows = rows_of(out)
        assert json.dumps(summary.best, allow_nan=False)
        assert all((row["e_value"] != "") == (change in changes) for row in rows.values()), change
        assert float(rows["1bvyf"]["same_fold_probability"]) > 0.99
        assert any("same fold 100 %" in line for line in summary.lines())
        assert any(re.search(r" E \d", line) for line in summary.lines()) == (change in changes)


def test_very_short_and_long_chains_have_finite_e_values(shared_data, tmp_path):
    folder = copied(shared_data, NAMES, tmp_path / "structures")
    long = max((shared_data / "structures" / "bench_ca" / "pdb").glob("*.pdb"), key=lambda path: path.stat().st_size)
    shutil.copy(long, folder / "long.pdb")
    sizes = {"short5": 5, "short12": 12, "short29": 29, "short30": 30, "short60": 60}
    for name, n in sizes.items():
        structure = gemmi.read_structure(str(folder / "1bvyf.pdb"))
        chain = structure[0][0]
        while len(chain) > n:
            del chain[-1]
        structure.write_pdb(str(folder / f"{name}.pdb"))
        assert len(read_structure(folder / f"{name}.pdb").chains.position) == n
    for query in (*sizes, "long"):
        out = tmp_path / f"{query}.tsv"
        summary = find_structures([folder / f"{query}.pdb"], [folder], out, WITHOUT_PHASE_1, device="cpu")
        assert not any("nan" in line for line in summary.lines())
        for target, row in rows_of(out).items():
            is_too_short = min(sizes.get(query, 99), sizes.get(target, 99)) < 30
            assert (row["same_fold_probability"] == "") == is_too_short and 0 <= float(row["e_value"]) <= summary.n_chains
            if query == "short30" and target == "1bvyf":
                # A fifth of a fold is not the same fold, however well it fits.
                assert float(row["same_fold_probability"]) < 0.5, (query, target)
    assert float(rows_of(tmp_path / "long.tsv")["long"]["e_value"]) < 1e-9


def test_secondary_structure_shares_equal_state_frequencies(shared_data, tmp_path):
    chains = read_structure(shared_data / "structures" / "sample" / "1A8O.cif").chains
    states = chains.states(0)
    assert ordered_shares(chains, np.array([0, 0])).tolist() == [[states.count(state) / len(states) for state in "HE"]] * 2
    assert ordered_shares(chains, np.zeros(0, np.int64)).shape == (0, 2)


def test_structure_e_values_equal_counts_of_reversed_domains(shared_data):
    """Check domains of other sources than those used for fitting the constants, most of them half as long.

    The two domains of a pair are not compared, since their similarity exceeds chance even if one is reversed.
    """
    files = sorted((shared_data / "structures" / "malidup_malisam" / "MALISAM-ns" / "pdb").iterdir())
    chains = read_chains([ChainSource(path) for path in files], Progress(), 1)
    n, lengths = len(chains), chains.chains.lengths
    backwards, shares = described(reversed_chains(chains.chains)), ordered_shares(chains.chains, np.arange(n))
    calibration, pairs = shipped_calibration("sensitive"), np.array([name.rsplit(".", 1)[0] for name in chains.chains.names])
    e_values = []
    with Executor(Resources(1)).session(build_workload(backwards.arrays)) as session:
        comparison = Comparison(chains, backwards, StructureSearchParameters(), session, Resources(1))
        for i in range(n):
            scores = score_chains(comparison, i)
            features = chance_features(lengths[i], lengths, np.minimum(shares[i], shares).sum(axis=1))
            e_values.append(n * calibration.chances(scores.chains.residues / scores.unit, features)[pairs != pairs[i]])
    numbers = np.array([[(e_value <= most).sum() for most in (1.0, 0.1, 0.01)] for e_value in e_values]).mean(axis=0)
    assert 0.4 < numbers[0] < 2.5 and 0.03 < numbers[1] < 0.3 and numbers[2] < 0.05
