"""Library search on real data: measured false discovery rate, correct compounds, and speed.

    python -m benchmarks.library_search --data FOLDER foreign|molecules|speed|reading

Output: one JSON line per figure.

foreign
    BSA1-3 are searched in NIST's library of BSA, joined with as many entries of absent peptides (residues exchanged, fragments shifted
    accordingly), with several seeds. The share of false matches is twice the share of accepted matches of absent peptides, because as many
    false matches are expected with entries of BSA.
molecules
    Every other MassBank spectrum of each compound is in the library, and the others are queries: the share of queries whose best match is
    the correct compound.
speed
    Many spectra are searched in a library of `--entries` entries with a cached index.
reading
    A separate process reads an MSP file of 500 MB, which contains NIST's library many times.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from proteoscope.engine.arrays import take_segments
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS, RESIDUE_MASS, WATER_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.formats.writing import write_spectrum_file
from proteoscope.engine.library_search.decoys import library_peptides
from proteoscope.engine.library_search.entry import LIBRARY_SEARCH
from proteoscope.engine.library_search.error_rates import RatedMatches, accepted_spectra, cascade, estimate_error_rates
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import References, load_references, save_references
from proteoscope.engine.library_search.scoring import plan_other_masses, plan_same_mass, prepare_queries, score
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.spectral_library import SpectralLibrary
from proteoscope.engine.statistics.target_decoy import false_share_interval
from tests.peers.peer_programs import peers_folder

RESOURCES = Resources(2)
TEXTS = ("name", "peptidoform", "sequence", "proteins", "formula", "inchikey", "adduct")
MEASURES = (  # of matchms: similarity, power of intensities, precursor tolerance
    ("CosineGreedy", 1.0, "10 ppm"),
    ("CosineGreedy", 0.5, "10 ppm"),
    ("CosineGreedy", 1.0, "200 Da"),
    ("CosineGreedy", 0.5, "200 Da"),
    ("ModifiedCosineGreedy", 1.0, "200 Da"),
)
ARRAYS = ("source", "number", "charge", "precursor_mz", "retention_time", "is_decoy", "n_members")


def report(**values: Any) -> None:
    """Print a line of figures."""
    print(json.dumps(values), flush=True)


def joined(first: SpectralLibrary, second: SpectralLibrary) -> SpectralLibrary:
    """Return the entries of both libraries."""
    return replace(
        first,
        **{name: pa.concat_arrays([getattr(first, name), getattr(second, name)]) for name in TEXTS},
        **{name: np.concatenate((getattr(first, name), getattr(second, name))) for name in (*ARRAYS, "mz", "intensity")},
        offsets=np.concatenate((first.offsets, first.offsets[-1] + second.offsets[1:])),
    )


def exchanged(library: SpectralLibrary, seed: int, tolerance: Tolerance) -> SpectralLibrary:
    """Return entries of absent peptides: all residues but the last are shuffled, in the same way in all entries of a peptide."""
    peptides, generator = library_peptides(library.peptidoform), np.random.default_rng(seed)
    rows = np.flatnonzero(peptides.peptide >= 0)
    listed, of = peptides.listed, peptides.peptide[rows]
    order = np.arange(len(listed.residues))
    forms: dict[str, np.ndarray] = {}
    for number, sequence in enumerate(listed.sequences):
        if sequence not in forms:
            forms[sequence] = np.append(generator.permutation(len(sequence) - 1), len(sequence) - 1)
        first, last = listed.residue_offsets[number : number + 2]
        order[first:last] = first + forms[sequence]
    residues, offsets = take_segments(listed.residue_masses, listed.residue_offsets, of)
    others, _ = take_segments(listed.residue_masses[order], listed.residue_offsets, of)
    entries = library.take(rows)
    mz, intensity = entries.mz.copy(), entries.intensity.copy()
    for k in range(len(rows)):
        some, peptide = slice(*entries.offsets[k : k + 2]), slice(*offsets[k : k + 2])
        moved = _moved(mz[some], int(entries.charge[k]), residues[peptide], others[peptide], float(tolerance.value))
        order = np.argsort(moved, kind="stable")
        mz[some], intensity[some] = moved[order], intensity[some][order]
    residues = listed.residues[order]
    names = ["".join(map(chr, residues[slice(*listed.residue_offsets[i : i + 2])])) for i in of.tolist()]
    texts = [
        "".join(f"{chr(residue)}[{mass:+.4f}]" if abs(mass) > 1e-6 else chr(residue) for residue, mass in zip(*changed, strict=True))
        for changed in _with_changes(listed, order, of)
    ]
    return replace(
        entries,
        mz=mz,
        intensity=intensity,
        name=pa.array([f"FOREIGN_{name}" for name in names]),
        peptidoform=pa.array(texts),
        sequence=pa.array(names),
        proteins=pa.array(["FOREIGN"] * len(rows)),
    )


def _moved(mz: np.ndarray, charge: int, residues: np.ndarray, others: np.ndarray, tolerance: float) -> np.ndarray:
    """Move all peaks explained by b, y and a ions, their losses and isotopes to the ions of the other peptide; decoys move fewer ions."""
    front, change, total = np.cumsum(residues)[:-1], np.cumsum(others - residues)[:-1], residues.sum() + WATER_MASS
    places, shifts = list[np.ndarray](), list[np.ndarray]()
    for mass, shift, losses in (
        (front, change, (0.0, WATER_MASS, 17.02655, 27.99491)),
        (total - front, -change, (0.0, WATER_MASS, 17.02655)),
    ):
        for loss in losses:
            for z in range(1, max(1, min(3, charge - 1)) + 1):
                places += [(mass - loss + isotope * ISOTOPE_SPACING) / z + PROTON_MASS for isotope in range(3)]
                shifts += [shift / z] * 3
    place, by = np.concatenate(places), np.concatenate(shifts)
    distance = np.abs(mz[:, None] - place[None])
    nearest = distance.argmin(axis=1)
    explained: np.ndarray = mz + np.where(distance.min(axis=1) <= tolerance, by[nearest], 0.0)
    return explained


def _with_changes(listed: Any, order: np.ndarray, of: np.ndarray) -> Any:
    change = listed.residue_masses[order] - RESIDUE_MASS[listed.residues[order].astype(np.int64) - ord("A")]
    for number in of.tolist():
        some = slice(*listed.residue_offsets[number : number + 2])
        yield listed.residues[order][some].tolist(), change[some].tolist()


def rated_matches(spectra: Spectra, references: References, parameters: LibrarySearchParameters, resources: Resources) -> RatedMatches:
    """Return the matches of spectra with their error rates."""
    queries = prepare_queries(spectra, references, parameters, resources)
    plan = plan_same_mass(queries, references, parameters)
    matches = estimate_error_rates(score(plan, references, resources), references, parameters)
    if not parameters.is_open:
        return matches
    plan = plan_other_masses(queries.exclude(accepted_spectra(matches, parameters)), references, parameters)
    return cascade(matches, estimate_error_rates(score(plan, references, resources), references, parameters))


def searched(
    library: SpectralLibrary, spectra: Spectra, parameters: LibrarySearchParameters
) -> tuple[RatedMatches, References, dict[str, float]]:
    """Return matches, the index, and wall and CPU seconds of the search."""
    with tempfile.TemporaryDirectory() as folder:
        save_references(library, Path(folder), parameters, RESOURCES)
        references = load_references(Path(folder))
        begun, processor = time.perf_counter(), time.process_time()
        matches = rated_matches(spectra, references, parameters, RESOURCES)
        seconds = {"seconds": time.perf_counter() - begun, "processor_seconds": time.process_time() - processor}
        return matches, references, {name: round(value, 2) for name, value in seconds.items()}


def foreign(data: Path, n_seeds: int, path: Path | None) -> None:
    """Print the share of false matches among the accepted ones, for several similarities, tolerances and seeds."""
    library = read_libraries([path or data / "libraries" / "nist-bsa_consensus.msp"])
    spectra = read_spectra(sorted((data / "spectra" / "bsa_ltq").glob("BSA?.mzML")), threads=2)
    for similarity in ("entropy", "cosine"):
        for tolerance in ("10 ppm", "0.5 Da", "200 Da"):
            parameters = LibrarySearchParameters().changed(
                similarity=similarity,
                precursor_tolerance=tolerance,
                fragment_tolerance="0.5 Da",
                minimum_matched_peaks=5,
                isotope_errors=(0, 1),
            )
            accepted = false = 0
            for seed in range(n_seeds):
                both = joined(library, exchanged(library, 1000 + seed, parameters.fragment_tolerance))
                matches, references, _ = searched(both, spectra, parameters.changed(random_seed=seed))
                rows = (matches.q_value <= parameters.fdr) & ~matches.is_decoy
                entry = references.entry[matches.reference[rows]]
                accepted += len(entry)
                false += int((entry >= len(library)).sum())
            low, high = false_share_interval(accepted, false, 0.5)
            report(
                figure="foreign",
                library=library.sources[0].name,
                similarity=similarity,
                tolerance=tolerance,
                accepted=accepted,
                foreign=false,
                share=round(2 * false / max(1, accepted), 4),
                low=round(low, 4),
                high=round(high, 4),
            )


def molecules(data: Path, n_queries: int, *, with_matchms: bool) -> None:
    """Print the share of correct compounds for `n_queries` random queries, or for all queries if it is 0."""
    spectra = read_spectra([data / "clustering" / "massbank_esi_ms2.mgf"], threads=2, takes_negative=True)
    lines = (data / "clustering" / "massbank_esi_ms2.labels.tsv").read_text(encoding="utf-8").splitlines()
    label = np.array([line.split("\t")[2] for line in lines[1:]])
    is_query = np.zeros(len(spectra), np.bool_)
    order = np.argsort(label, kind="stable")
    for rows in np.split(order, np.flatnonzero(label[order][1:] != label[order][:-1]) + 1):
        is_query[rows[1::2]] = True
    rows = np.flatnonzero(~is_query)
    queries = np.flatnonzero(is_query)
    if n_queries:
        queries = np.sort(np.random.default_rng(1).choice(queries, min(n_queries, len(queries)), replace=False))
    of = spectra.only(rows)
    n = len(spectra)
    charge = np.where(spectra.charge_mask & 1 > 0, -1, 1)
    nothing = pa.nulls(n, pa.string())
    library = SpectralLibrary(
        (Path("massbank"),),
        np.zeros(n, np.int64),
        np.arange(n) + 1,
        pa.array(label),
        nothing,
        nothing,
        nothing,
        nothing,
        pa.array(label),
        nothing,
        charge,
        spectra.precursor_mz,
        np.full(n, np.nan),
        np.zeros(n, np.bool_),
        np.ones(n, np.int64),
        of.offsets,
        of.mz,
        of.intensity,
    )
    for similarity in ("entropy", "cosine"):
        for tolerance in ("10 ppm", "200 Da"):
            parameters = LIBRARY_SEARCH.parameters_of("small-molecules").changed(similarity=similarity, precursor_tolerance=tolerance)
            searched(library, spectra.only(queries[:20]), parameters)  # loads kernels
            matches, references, seconds = searched(library, spectra.only(queries), parameters)
            right = label[references.entry[matches.reference]] == label[matches.spectrum]
            report(
                figure="molecules",
                similarity=similarity,
                tolerance=tolerance,
                queries=len(queries),
                right_first=int(right.sum()),
                **seconds,
            )
    if with_matchms:
        for measure, power, tolerance in MEASURES:
            by_peer = matchms(spectra, rows, queries, label, tolerance, measure, power)
            settings = {"similarity": measure, "intensity_power": power, "tolerance": tolerance}
            report(figure="molecules", program="matchms", **settings, queries=len(queries), **by_peer)


def matchms(
    spectra: Spectra, rows: np.ndarray, queries: np.ndarray, label: np.ndarray, tolerance: str, measure: str, power: float
) -> dict[str, Any]:
    """Return the matches of a similarity of matchms, and the time of its comparisons."""
    python, script = peers_folder() / "python" / "bin" / "python", Path(__file__).with_name("compare_with_matchms.py")
    with tempfile.TemporaryDirectory() as folder:
        titled = replace(spectra, identifier=[str(title) for title in label])
        names = [Path(folder) / name for name in ("library.mgf", "queries.mgf")]
        for path, some in zip(names, (rows, queries), strict=True):
            write_spectrum_file(path, titled, rows=some)
        done = subprocess.run([python, script, *names, *tolerance.split(), measure, str(power)], check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def speed(data: Path, n_entries: int) -> None:
    """Print the search time in a library of copies of the query spectra with randomly shifted precursors."""
    spectra = read_spectra([data / "spectra" / "bench_x10.mgf"], threads=2)
    generator = np.random.default_rng(2)
    rows = generator.integers(0, len(spectra), n_entries)
    mz, offsets = take_segments(spectra.mz, spectra.offsets, rows)
    intensity, _ = take_segments(spectra.intensity, spectra.offsets, rows)
    nothing, none = pa.nulls(n_entries, pa.string()), np.zeros(n_entries, np.int64)
    precursor = spectra.precursor_mz[rows] + generator.integers(-100, 100, n_entries) * 0.5
    library = SpectralLibrary(
        (Path("made"),),
        none,
        none + 1,
        pa.array([str(i) for i in range(n_entries)]),
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        none + 2,
        precursor,
        np.full(n_entries, np.nan),
        np.arange(n_entries) % 2 == 1,
        none + 1,
        offsets,
        mz,
        intensity,
    )
    parameters = LibrarySearchParameters().changed(isotope_errors=(0, 1))
    begun = time.perf_counter()
    _, references, seconds = searched(library, spectra, parameters)
    report(figure="speed", spectra=len(spectra), references=len(references), **seconds, with_index=round(time.perf_counter() - begun, 2))


def reading(data: Path, megabytes: int) -> None:
    """Print the time and the peak memory of a process that reads a large MSP file."""
    script = (
        "import json, sys, time; from pathlib import Path; from proteoscope.engine.formats.libraries.reading import read_libraries\n"
        "begun = time.perf_counter(); library = read_libraries([sys.argv[1]])\n"
        "figures = {'entries': len(library), 'peaks': len(library.mz), 'seconds': round(time.perf_counter() - begun, 1)}\n"
        "figures['processor_seconds'] = round(time.process_time(), 1)\n"
        "peak = int(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\n"
        "print(json.dumps({**figures, 'peak_megabytes': round(peak * 1024 / 1e6)}))\n"
    )
    text = (data / "libraries" / "nist-bsa_consensus.msp").read_bytes().rstrip() + b"\n\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library.msp"
        with path.open("wb") as out:
            for _ in range(-(-megabytes * 1_000_000 // len(text))):
                out.write(text)
        done = subprocess.run([sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True)
        report(figure="reading", megabytes=round(path.stat().st_size / 1e6), **json.loads(done.stdout))


def main() -> None:
    """Run the benchmark named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", choices=("foreign", "molecules", "speed", "reading"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--library", type=Path, help="foreign: another library in place of NIST's, for example with few peptides")
    parser.add_argument("--matchms", action="store_true", help="molecules: also run matchms (tests/peers/install.sh) on the same spectra")
    parser.add_argument("--queries", type=int, default=0)
    parser.add_argument("--entries", type=int, default=500_000)
    parser.add_argument("--megabytes", type=int, default=500, help="reading: size of the MSP file")
    given = parser.parse_args()
    if given.figure == "foreign":
        foreign(given.data, given.seeds, given.library)
    elif given.figure == "molecules":
        molecules(given.data, given.queries, with_matchms=given.matchms)
    elif given.figure == "reading":
        reading(given.data, given.megabytes)
    else:
        speed(given.data, given.entries)


if __name__ == "__main__":
    main()
