"""Secondary structure and exposure compared with DSSP, TM-scores and superpositions with TM-score and TM-align."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.exposure import areas_of
from proteoscope.engine.errors import InputError
from proteoscope.engine.structures.exposure import ChainAtoms, read_chain_atoms, residue_areas
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.structures.superposition import superpose, superpose_many, tm_scores
from tests.engine.evidence.evidence_projects import write_albumin
from tests.peers.structure_peers import dssp_areas, dssp_states, installed, tm_align, tm_score

pytestmark = pytest.mark.peers
NONE = np.empty((0, 2), np.int32)


def position(path: Path) -> np.ndarray:
    chains = read_structure(path).chains
    return chains.position[chains.rows(0)].astype(float)


@pytest.mark.skipif(not installed("mkdssp"), reason="DSSP is not installed")
def test_secondary_structure_equals_dssp(shared_data, tmp_path):
    folder = shared_data / "structures"
    files = [*sorted((folder / "pdbchains").iterdir())[::6], *sorted((folder / "globins").iterdir())[:4]]
    files += [folder / "odd" / name for name in ("1A8O.cif", "2XHE.cif", "2BEG.cif", "4ZHL.cif", "biojava_1lnl.pdb")]
    n = n_equal = 0
    for path in files:
        expected = dssp_states(path, tmp_path)
        actual = read_structure(path)
        for i, name in enumerate(actual.chain_names):
            rows = actual.chains.rows(i)
            for state, number, code in zip(
                actual.chains.states(i), actual.chains.author_number[rows], actual.chains.insertion[rows], strict=True
            ):
                key = (name or " ", int(number), chr(code) if code else "")
                if key in expected:
                    n += 1
                    n_equal += expected[key] == state
    assert n > 10_000
    assert n_equal / n > 0.995


@pytest.mark.skipif(not installed("mkdssp"), reason="DSSP is not installed")
def test_solvent_exposure_equals_dssp(tmp_path):
    path = write_albumin(tmp_path)
    chains = read_structure(path).chains
    atoms = read_chain_atoms(path, [chains])[0]
    assert isinstance(atoms, ChainAtoms)
    areas = residue_areas([atoms], [len(chains.residue)])[0]
    theirs = dssp_areas(path, tmp_path)
    wanted = np.array([theirs["A", number, ""] for number in chains.author_number.tolist()])
    assert areas.sum() == pytest.approx(wanted.sum(), rel=0.01)
    assert np.corrcoef(areas, wanted)[0, 1] > 0.999


@pytest.mark.skipif(not installed("mkdssp"), reason="DSSP is not installed")
def test_solvent_exposure_of_chains_is_within_5_percent_of_dssp(shared_data, tmp_path):
    files = sorted((shared_data / "structures" / "pdbchains").iterdir())[::8]
    compared = [areas for path in files if (areas := areas_of(path, partial(dssp_areas, folder=tmp_path))) is not None]
    assert len(compared) >= 20
    for structure in compared:
        assert structure.ours.sum() == pytest.approx(structure.theirs.sum(), rel=0.05), structure.name
    ours, theirs, greatest = (np.concatenate([getattr(areas, name) for areas in compared]) for name in ("own", "theirs", "greatest"))
    touched = theirs >= 20
    assert np.median(np.abs(ours[touched] / theirs[touched] - 1)) < 0.05
    # Residues on the surface are the same for both.
    assert ((ours / greatest >= 0.25) == (theirs / greatest >= 0.25)).mean() > 0.98


@pytest.mark.skipif(not installed("mkdssp"), reason="DSSP is not installed")
def test_secondary_structure_from_c_alpha_mostly_equals_dssp(shared_data):
    n = n_equal = 0
    from proteoscope.kernels.cpu.secondary_structure import states_by_distances

    for path in sorted((shared_data / "structures" / "pdbchains").iterdir())[::6]:
        chains = read_structure(path).chains
        states = states_by_distances(np.ascontiguousarray(chains.position[chains.rows(0)]))
        n += len(states)
        n_equal += int((states == chains.secondary[chains.rows(0)]).sum())
    assert n_equal / n > 0.77


@pytest.mark.skipif(not installed("TMscore"), reason="TM-score is not installed")
def test_tm_scores_of_given_alignments_equal_tm_score_program(shared_data, tmp_path):
    files = sorted((shared_data / "structures" / "globins").iterdir())
    for a, b in list(combinations(files, 2))[::12]:
        query, target = position(a), position(b)
        actual = superpose_many(query, target, np.array([0, len(target)]), NONE, np.zeros(2, np.int64))
        score, rmsd = tm_score(query, target, actual.pairs, tmp_path)
        assert tm_scores(query, target, actual.pairs)[1] == pytest.approx(score, abs=0.001)
        assert superpose(target[actual.pairs[:, 1]], query[actual.pairs[:, 0]])[2] == pytest.approx(rmsd, abs=0.01)


@pytest.mark.skipif(not installed("TMalign"), reason="TM-align is not installed")
def test_superpositions_are_as_good_as_tm_align(shared_data, tmp_path):
    structures = shared_data / "structures"
    pairs = list(combinations(sorted((structures / "globins").iterdir()), 2))[::6]
    duplicated = sorted((structures / "malidup_malisam" / "MALIDUP-ns" / "pdb").glob("*.1.pdb"))[::5]
    pairs += [(path, path.with_name(path.name.replace(".1.pdb", ".2.pdb"))) for path in duplicated]
    near = []
    for a, b in pairs:
        try:
            query, target = position(a), position(b)
        except InputError:
            continue
        actual = superpose_many(query, target, np.array([0, len(target)]), NONE, np.zeros(2, np.int64))
        expected = tm_align(query, target, tmp_path)
        near.append(min(actual.tm_score_query[0] - expected[0], actual.tm_score_target[0] - expected[1]) >= -0.02)
    assert len(near) > 60
    assert np.mean(near) >= 0.95
