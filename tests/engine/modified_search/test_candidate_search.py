"""Candidates have the most matching masses by the definition of the thesis, for any partition of the peptides."""

import numpy as np
import pytest

from proteoscope.engine.arrays import read_only, segment_offsets
from proteoscope.engine.chemistry.masses import PROTON_MASS, RESIDUE_MASS, WATER_MASS
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.matches.scoring_settings import ion_settings
from proteoscope.engine.modified_search.candidate_search import find_candidates, peptide_lists, query_lists
from proteoscope.engine.modified_search.parameters import ModifiedSearchParameters
from proteoscope.engine.modified_search.passes import list_settings
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.spectra.columns import SpectrumSeries
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.layouts import PeptideArrays, QueryArrays, SpectrumArrays
from tests.shim.mass_inputs import plain_best

N_RETAINED = 7


@pytest.fixture(scope="module")
def made():
    random = np.random.default_rng(12)
    sequences = ["".join(random.choice(list("ACDEFGHIKLMNPQRSTVWY"), int(random.integers(6, 12)))) for _ in range(150)]
    masses = np.array([sum(RESIDUE_MASS[ord(residue) - 65] for residue in sequence) + WATER_MASS for sequence in sequences])
    sequences, masses = [sequences[i] for i in np.argsort(masses)], np.sort(masses)
    lengths = np.array([len(sequence) for sequence in sequences])
    text = np.frombuffer("".join(sequences).encode(), np.uint8)
    peptides = PeptideArrays(
        read_only(masses),
        read_only(segment_offsets(lengths)[:-1].astype(np.uint32)),
        read_only(lengths.astype(np.uint8)),
        read_only(np.zeros(len(lengths), np.uint8)),
        read_only(np.zeros(len(lengths), np.uint32)),
        text,
        RESIDUE_MASS.copy(),
        0.0,
        0.0,
    )
    peaks, queried = [], random.choice(len(sequences), 12)
    for row in queried:
        prefix = np.cumsum([RESIDUE_MASS[ord(residue) - 65] for residue in sequences[row]])[:-1]
        ions = np.concatenate((prefix, masses[row] - prefix)) + PROTON_MASS
        peaks.append(np.sort(np.concatenate((ions[random.random(len(ions)) < 0.6], random.uniform(100, 900, 15)))))
    offsets = segment_offsets(np.array([len(peak) for peak in peaks]))
    weight = np.ones(offsets[-1], np.float32)
    order = np.argsort(masses[queried] + 40.0)
    queries = QueryArrays(order, np.full(len(order), 2), (masses[queried] + 40.0)[order])
    series = SpectrumSeries.for_spectra("by", np.zeros(len(offsets) - 1, np.uint8))
    return SpectrumIndex(SpectrumArrays(offsets, np.concatenate(peaks), weight, weight), queries, len(order), series), peptides


@pytest.mark.parametrize("preset", ["published", "standard"])
@pytest.mark.parametrize("memory_bytes", [1 << 29, 6000])
def test_modified_search_candidates_equal_the_definition(made, preset, memory_bytes):
    index, peptides = made
    parameters = ModifiedSearchParameters.checked(read_preset("modified", preset))
    settings, lists = ion_settings(parameters, "by", 1000.0, "hyperscore"), list_settings(parameters)
    result = find_candidates(index, peptides, settings, lists, N_RETAINED, memory_bytes, Resources(2))
    candidates = peptide_lists(peptides, lists.per_dalton, 0, len(peptides.mass), Resources(1))
    queries = query_lists(index.arrays, index.queries, settings, lists)
    expected, counts = plain_best(queries, candidates, lists.window, N_RETAINED)
    assert result.peptide.tolist() == expected
    assert result.matches.tolist() == counts


def test_published_preset_counts_each_peak_in_one_mass_bin(made):
    index, _ = made
    parameters = ModifiedSearchParameters.checked(read_preset("modified", "published"))
    lists = list_settings(parameters)
    assert lists.per_dalton == 100.0
    settings = ion_settings(parameters, "by", 1000.0, "hyperscore")
    result = query_lists(index.arrays, index.queries, settings, lists)
    for q, (spectrum, mass) in enumerate(zip(index.queries.spectrum, index.queries.mass, strict=True)):
        peaks = index.arrays.mz[index.arrays.offsets[spectrum] : index.arrays.offsets[spectrum + 1]] - PROTON_MASS
        units = {unit for bond in (*peaks, *(mass - peaks)) if 0 <= (unit := round(float(bond) * 100)) < round(mass * 100)}
        assert result.masses[result.offsets[q] : result.offsets[q + 1]].tolist() == sorted(units)
