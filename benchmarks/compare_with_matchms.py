"""Search spectra in a library by a similarity of matchms: compare_with_matchms.py LIBRARY.mgf QUERIES.mgf TOLERANCE ppm|Da MEASURE POWER.

It is run by the Python of the peers. Titles of spectra name their compounds. Candidates of a query are the spectra of the same polarity
with a precursor within the tolerance, found by bisection. The time is the CPU time of the comparisons only, including compilation by numba.
MEASURE is a class of `matchms.similarity`, POWER the exponent of intensities. Prints the number of queries with the right reference first,
and seconds.
"""

import json
import sys
import time

import numpy as np
from matchms import similarity as measures
from matchms.importing import load_from_mgf

FRAGMENT_TOLERANCE = 0.01  # dalton, as the preset small-molecules has it


def prepared(path):
    """Return unprocessed spectra, m/z of their precursors, flags of negative polarity, and titles."""
    matched = [spectrum for spectrum in load_from_mgf(path, metadata_harmonization=False) if spectrum is not None and len(spectrum.mz)]
    for spectrum in matched:  # where ModifiedCosine reads it
        spectrum.set("precursor_mz", float(spectrum.metadata["pepmass"][0]))
    mz = np.array([spectrum.get("precursor_mz") for spectrum in matched])
    return (
        matched,
        mz,
        np.array([spectrum.metadata["charge"][0] < 0 for spectrum in matched]),
        [spectrum.metadata["title"] for spectrum in matched],
    )


def main():
    """See the head."""
    library, mz, is_negative, labels = prepared(sys.argv[1])
    queries, own_mz, own_negative, own_labels = prepared(sys.argv[2])
    order = np.argsort(mz, kind="stable")
    mz = mz[order]
    width = float(sys.argv[3]) * (own_mz * 1e-6 if sys.argv[4] == "ppm" else 1.0)
    low, high = np.searchsorted(mz, own_mz - width), np.searchsorted(mz, own_mz + width, side="right")
    similarity = getattr(measures, sys.argv[5])(tolerance=FRAGMENT_TOLERANCE, intensity_power=float(sys.argv[6]))
    for spectrum in (library[0], library[-1]):  # a spectrum and itself match, so that all is compiled that matches need
        for other in library[:50]:
            similarity.pair(spectrum, spectrum), similarity.pair(spectrum, other)
    right, pairs, begun = 0, 0, time.process_time()
    for query, first, last, negative, label in zip(queries, low.tolist(), high.tolist(), own_negative, own_labels, strict=True):
        best, matched = 0.0, None
        candidates = order[first:last]
        candidates = candidates[is_negative[candidates] == negative].tolist()
        for at in candidates:
            score = float(similarity.pair(library[at], query)["score"])
            if score > best:
                best, matched = score, at
        pairs += len(candidates)
        right += matched is not None and labels[matched] == label
    print(json.dumps({"right_first": right, "pairs": pairs, "processor_seconds": round(time.process_time() - begun, 2)}))


if __name__ == "__main__":
    main()
