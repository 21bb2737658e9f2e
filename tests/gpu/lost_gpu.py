"""Search on a GPU that fails in the middle.

    python -m tests.gpu.lost_gpu sparse|dense

test_scoring_on_gpu.py runs this in a process of its own, because the process loses the GPU. The kernel for sparse or dense
mass windows is changed to execute a trap instruction for the heavier half of the queries. Prints the messages to the user, and whether the
hits are those of the CPU.
"""

from __future__ import annotations

import sys

import numpy as np

from proteoscope.engine.execution.device_lookup import open_gpus
from proteoscope.engine.execution.devices import resolve_device
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches import scoring
from proteoscope.engine.spectra.columns import SpectrumSeries
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.cuda import compiled
from proteoscope.kernels.cuda.scoring import SpectrumSearch
from tests.shim.search_inputs import random_search

is_dense = sys.argv[1] == "dense"
spectra, queries, peptides, modifications, settings = random_search(600, 2, n_queries=400, precursor=(3.0, 0.0) if is_dense else (0.3, 0.0))
middle = float(np.median(queries.mass))
damaged = "dense_search.cu" if is_dense else "sparse_search.cu"
place = "    const int n_parts = tiles.first_item" if is_dense else "    fit_table(peaks, settings.bin_width"
mass = "query.is_there && in.query_mass[query.number]" if is_dense else "in.query_mass[query]"
source = compiled.source
text = source(damaged)
assert text.count(place) == 1
trapped = text.replace(place, f"    if ({mass} > {middle!r}) __trap();\n{place}")
compiled.source = lambda file: trapped if file == damaged else source(file)
batches = {"dense_candidates_of_batch": 20_000} if is_dense else {"candidates_of_batch": 2000}
scoring.scoring_settings = lambda *_: settings
for name, value in (batches | {"minimum_sharing": 0.0 if is_dense else np.inf}).items():
    setattr(SpectrumSearch, name, value)
answers = []
for requested in ("cpu", "cuda"):
    progress = Progress(lambda event: print(event.message) if event.message else None)
    index = SpectrumIndex(
        spectra, queries, len(queries.mass), SpectrumSeries.for_spectra("by", np.zeros(len(spectra.offsets) - 1, np.uint8))
    )
    search = scoring.plan_scoring(
        index,
        peptides,
        modifications,
        IdentificationParameters(),
        Resources(4, open_gpus(resolve_device(requested), progress), progress=progress),
    )
    answers.append(search.run())
names = ("spectrum", "peptide", "site", "modification", "score")
print("same" if all(np.array_equal(getattr(answers[0], name), getattr(answers[1], name)) for name in names) else "different")
