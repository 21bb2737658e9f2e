"""Search of wide precursor windows with an index of the fragment ions of all peptidoforms, built in mass ranges that fit memory.

The results are the same as if every candidate were scored, with two exceptions. First, candidates are preselected with rounded scores and a
fragment tolerance that is wider by up to 2e-6 Da. The best candidates are then scored exactly, so that results can differ only at the last
ranks, among candidates with nearly equal scores. Second, masses are summed in another order, so a candidate within 1e-12 Da of the edge of
a precursor window may be inside the window with one method and outside it with the other method. `FragmentIndexSearch.is_worthwhile`
chooses the method by the estimated number of operations; because of these exceptions, the choice does not depend on the device. Each GPU
indexes only the peptidoforms in the precursor windows of its queries.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.fragment_scoring import BYTES_OF_FORM, BYTES_OF_POSTING, MAXIMUM_FORMS, create_workload
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels import counts
from proteoscope.kernels.cpu.candidates import score_candidates
from proteoscope.kernels.cpu.peptidoforms import count_peptidoforms, list_peptidoforms, peptidoform_code
from proteoscope.kernels.cpu.segments import empty_best, precursor_windows, unsupported_reason
from proteoscope.kernels.device import Partition, equal_partitions
from proteoscope.kernels.layouts import BestArrays, HitArrays, ModificationArrays, PeptideArrays, QueryArrays, ScoringSettings

__all__ = ["FragmentIndexSearch"]

_BUCKET_WIDTH = 0.1  # Da, bin width of the counts of peptidoforms
_ADDITIONAL = 3  # additional candidates chosen by rounded scores
_BYTES_OF_LISTED_FORM = 40  # bytes transferred to a GPU per peptidoform; the GPU creates the postings
_BYTES_OF_THREAD = 32 << 20  # memory per thread to sort the ions of a chunk
_MAXIMUM_FORMS_COUNTED, _MAXIMUM_FORMS_LISTED = 1 << 20, 1 << 18  # per thread between checks for cancellation


@dataclass(frozen=True)
class _Peptidoforms:
    """Cumulative numbers of peptidoforms and fragment ions in b mass buckets; buckets outside all precursor windows add 0.

    `is_reached`: (b,) bool, True if a precursor window overlaps the bucket. `forms`, `ions`: (b + 1,) int64, cumulative counts that start
    with 0; the difference of two entries is the count between them.
    """

    is_reached: NDArray[np.bool_]
    forms: NDArray[np.int64]
    ions: NDArray[np.int64]


class FragmentIndexSearch:
    """Search of spectra against peptides with an index of fragment ions.

    Parameters
    ----------
    index : SpectrumIndex
        Spectra and queries.
    peptides : PeptideArrays
        Peptides to search, in order of mass.
    modifications : ModificationArrays
        Modification combinations of the peptides.
    settings : ScoringSettings
        Settings of the scoring kernels.
    resources : Resources
        GPUs, which search, and threads, which list the peptidoforms. Threads also search if no GPU can.
    memory_bytes : int
        Memory limit of an index for one mass range, including its construction. The limit is exceeded if the peptidoforms within 0.1 Da
        need more, or if the building threads (32 MB each) need more than half of it.
    """

    def __init__(
        self,
        index: SpectrumIndex,
        peptides: PeptideArrays,
        modifications: ModificationArrays,
        settings: ScoringSettings,
        resources: Resources,
        memory_bytes: int,
    ) -> None:
        self._index, self._peptides, self._modifications, self._settings = index, peptides, modifications, settings
        self._resources, self._threads, self._progress = resources, resources.threads, resources.progress
        self._memory_bytes = memory_bytes
        self._series = len(settings.n_term_series) + len(settings.c_term_series)
        self._counted: _Peptidoforms | None = None

    def is_worthwhile(self, candidates: NDArray[np.int64], compile_index: Callable[[Progress], object] | None = None) -> bool:
        """Return True if building and searching an index needs far fewer operations than scoring every candidate.

        Return False for scores and sizes that an index does not support. The result depends on counts, not on threads, memory or GPUs,
        since the method affects the last digits of the scores.

        Parameters
        ----------
        candidates : ndarray of int64, shape (q,)
            Number of candidates of each query, as returned by `count_candidates`: each peptide counts once per modification combination and
            precursor window.
        compile_index : callable or None
            Function that compiles the index kernels; called before peptidoforms are counted.
        """
        charges = self._fragment_charges(self._index.queries)
        # Counting peptidoforms takes as long as some searches. First assume one peptidoform per peptide and combination, all within reach
        # of a window: if scoring every candidate takes no longer than building this index, as in most searches, do not count.
        possible = len(self._peptides.mass) * len(self._modifications.combination_mass)
        ions = self._series * float(self._peptides.length.sum(dtype=np.int64) / max(1, len(self._peptides.mass)) - 1.0)
        building = counts.fragment_index_building(possible, possible, possible * ions)
        if counts.exhaustive_search(candidates, charges, ions) <= counts.TIMES_LONGER * building:
            return False
        if reason := unsupported_reason(self._index.arrays, self._peptides, self._modifications, self._settings):
            self._progress.message(f"Every candidate is scored, without a fragment-ion index: {reason}")
            return False
        if compile_index is not None:
            compile_index(self._progress)
        counted = self._count_forms()
        forms = self._forms_of_queries(counted)
        ions_of_form = self._ions_of_form()
        exhaustive = counts.exhaustive_search(forms, charges, ions_of_form)
        building = counts.fragment_index_building(possible, float(counted.forms[-1]), float(counted.ions[-1]))
        searching = float(self._estimate_nanoseconds(forms, ions_of_form, self._index.queries).sum())
        return counts.TIMES_LONGER * (building + searching) < exhaustive

    def run(self, hits: HitArrays) -> None:
        """Search all queries; write their best candidates, score histograms and candidate counts to `hits`."""
        n, n_hits = hits.score.shape
        result = {**empty_best(n, n_hits + _ADDITIONAL)._asdict(), "histogram": hits.histogram, "n_candidates": hits.n_candidates}
        n_buckets = len(self._count_forms().is_reached)
        # A GPU creates the postings of the listed peptidoforms itself, in any number of partitions.
        sizes = (_BYTES_OF_LISTED_FORM, 0) if self._resources.has_gpus else (BYTES_OF_FORM, BYTES_OF_POSTING)
        listed = self._ranges(0, n_buckets, *sizes)
        for number, (low, high) in enumerate(listed, 1):
            result = self._search(low, high, result, hits.histogram_width, f" (part {number} of {len(listed)})" if len(listed) > 1 else "")
        hits.histogram[:], hits.n_candidates[:] = result["histogram"], result["n_candidates"]
        best, code = BestArrays(result["score"], result["code"]), peptidoform_code(self._peptides, self._modifications)

        def finish(part: Partition) -> None:
            score_candidates(
                self._index.arrays,
                self._index.queries,
                self._peptides,
                self._modifications,
                self._settings,
                code,
                best,
                hits,
                part.first,
                part.last,
            )

        run_on_threads(
            finish, equal_partitions(np.ones(n), self._threads, maximum_cost=4096), self._threads, self._progress, steps=lambda _: 0
        )

    def _search(self, low: int, high: int, results: dict[str, NDArray[Any]], width: float, part: str) -> dict[str, NDArray[Any]]:
        """Search the peptidoforms in the mass buckets `low:high`, and return `results` updated with their matches.

        `width` is the bin width of the score histograms; `part` is appended to the titles of stages.
        """
        queries, ions = self._index.queries, self._ions_of_form()
        mass, number = self._list_forms(low, high, f"Indexing fragments{part}")
        workload = create_workload(
            self._index,
            self._peptides,
            self._modifications,
            self._settings,
            mass,
            number,
            histogram_width=width,
            index_bytes=self._available_bytes(),
            bytes_of_form=BYTES_OF_FORM + BYTES_OF_POSTING * ions,
            threads=self._threads,
        )
        windows = precursor_windows(mass, queries, self._settings, 0, len(queries.mass))
        forms = (windows[..., 1] - windows[..., 0]).sum(axis=1)
        cost = np.where(forms > 0, self._estimate_nanoseconds(forms, ions, queries), 0.0)
        del windows
        self._progress.stage(f"Scoring spectra{part}", len(queries.mass))
        with Executor(self._resources).session(workload, with_processor=False) as session:
            return dict(session.run({**results, "cost": cost}))

    def _count_forms(self) -> _Peptidoforms:
        """Return the cumulative numbers of peptidoforms and ions by mass, without buckets outside all precursor windows."""
        if self._counted is None:
            peptides, modifications = self._peptides, self._modifications
            heaviest = float(peptides.mass.max(initial=0.0) + modifications.combination_mass.max())
            forms, residues = np.zeros((2, int(heaviest / _BUCKET_WIDTH) + 1), np.int64)
            partitions = equal_partitions(
                np.full(len(peptides.mass), len(modifications.combination_mass)), self._threads, maximum_cost=_MAXIMUM_FORMS_COUNTED
            )
            self._progress.stage("Counting forms", len(peptides.mass))
            lock = Lock()

            def count(partition: Partition) -> None:
                of_share = np.zeros((2, len(forms)), np.int64)
                count_peptidoforms(peptides, modifications, partition.first, partition.last, _BUCKET_WIDTH, *of_share)
                with lock:
                    forms[:] += of_share[0]
                    residues[:] += of_share[1]

            run_on_threads(count, partitions, self._threads, self._progress, steps=lambda partition: partition.last - partition.first)
            reached = np.zeros(len(forms) + 1, np.int64)
            windows = self._windows(np.arange(len(forms)) * _BUCKET_WIDTH)
            np.add.at(reached, windows[..., 0].ravel(), 1)
            np.add.at(reached, windows[..., 1].ravel(), -1)
            inside = np.cumsum(reached[:-1]) > 0
            sums = (np.concatenate(([0], np.cumsum(counts * inside))) for counts in (forms, residues * self._series))
            self._counted = _Peptidoforms(inside, *sums)
        return self._counted

    def _windows(self, buckets: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the range of mass buckets that each precursor window overlaps, (q, e, 2), with e windows per query.

        `buckets` are the lower edges of the buckets, Da. The range is empty if the query is too light for the isotope error of the window.
        """
        windows = precursor_windows(buckets, self._index.queries, self._settings, 0, len(self._index.queries.mass))
        is_tried = self._index.queries.mass[:, None] >= self._settings.isotope_minimum_mass[None, :]
        windows[..., 0] = np.where(is_tried, np.maximum(windows[..., 0] - 1, 0), 0)
        return windows

    def _forms_of_queries(self, counted: _Peptidoforms) -> NDArray[np.int64]:
        """Return the number of peptidoforms in the precursor windows of each query, with windows rounded up to whole buckets, (q,)."""
        windows = self._windows(np.arange(len(counted.forms) - 1) * _BUCKET_WIDTH)
        n_forms: NDArray[np.int64] = (counted.forms[windows[..., 1]] - counted.forms[windows[..., 0]]).sum(axis=1)
        return n_forms

    def _fragment_charges(self, queries: QueryArrays) -> NDArray[np.int64]:
        """Return the number of different fragment charges of each query, (q,)."""
        return np.maximum(1, np.minimum(self._settings.maximum_fragment_charge, queries.charge - 1))

    def _ions_of_form(self) -> float:
        """Return the mean number of singly charged ions per peptidoform; 0 before peptidoforms are counted."""
        return 0.0 if self._counted is None else float(self._counted.ions[-1] / max(1, self._counted.forms[-1]))

    def _estimate_nanoseconds(self, forms: NDArray[np.int64], ions_of_form: float, queries: QueryArrays) -> NDArray[np.float64]:
        """Return the estimated search time of each query on one thread, ns, (q,).

        `forms` (q,) is the number of peptidoforms in the precursor windows of each query.
        """
        spectra, settings = self._index.arrays, self._settings
        n_peaks = np.diff(spectra.offsets)[queries.spectrum]
        covered = counts.covered_share(n_peaks, queries.mass, settings.fragment_absolute, settings.fragment_relative)
        costs = counts.fragment_index_search(forms, ions_of_form, self._fragment_charges(queries), covered)
        return np.where(n_peaks > 0, costs, 0.0)

    def _available_bytes(self) -> int:
        """Return the memory available for an index, in bytes, without the memory of the threads that build it."""
        return max(self._memory_bytes - self._threads * _BYTES_OF_THREAD, self._memory_bytes // 2)

    def _ranges(self, low: int, high: int, bytes_of_form: int, bytes_of_posting: int = 0) -> list[tuple[int, int]]:
        """Divide the mass buckets `low:high` into non-empty ranges whose indexes fit memory."""
        assert self._counted is not None
        forms, ions = self._counted.forms, self._counted.ions
        size = np.maximum(
            (forms * bytes_of_form + ions * bytes_of_posting) / self._available_bytes(), forms * (bytes_of_posting > 0) / MAXIMUM_FORMS
        )
        cuts = [low]
        while cuts[-1] < high:
            reached = int(np.searchsorted(size, size[cuts[-1]] + 1.0, side="right")) - 1
            cuts.append(min(high, max(cuts[-1] + 1, reached)))
        return [(first, last) for first, last in pairwise(cuts) if forms[last] > forms[first]]

    def _list_forms(self, low: int, high: int, title: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return masses (Da) and identifying numbers of peptidoforms in the mass buckets `low:high`, except buckets outside all windows."""
        counted = self._count_forms()
        self._progress.stage(title)

        def listed(part: Partition) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
            begin, end = (low + part.first) * _BUCKET_WIDTH, (low + part.last) * _BUCKET_WIDTH
            mass, number = list_peptidoforms(self._peptides, self._modifications, begin, end)
            reached = counted.is_reached[np.minimum((mass / _BUCKET_WIDTH).astype(np.int64), len(counted.is_reached) - 1)]
            return (mass, number) if reached.all() else (mass[reached], number[reached])

        forms = np.diff(counted.forms[low : high + 1])
        chunks = sorted(equal_partitions(forms, 1, maximum_cost=_MAXIMUM_FORMS_LISTED, per_worker=1), key=lambda part: part.first)
        masses, numbers = zip(*run_on_threads(listed, chunks, self._threads, self._progress), strict=True)
        return np.concatenate(masses), np.concatenate(numbers)
