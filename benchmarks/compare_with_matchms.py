"""Search spectra in a library by a similarity of matchms: compare_with_matchms.py LIBRARY.mgf QUERIES.mgf TOLERANCE ppm|Da MEASURE POWER.

The script runs in the Python environment of the compared programs. The title of a spectrum is its compound. Candidates of a query are the
library spectra of the same polarity whose precursor is within the tolerance. MEASURE is a class of `matchms.similarity`, and POWER the
exponent of intensities. It prints the number of queries whose best candidate is the correct compound, the number of compared pairs, and the
CPU seconds of the comparisons, without compilation by Numba.
"""

import json
import sys
import time

import numpy as np
from matchms import similarity as measures
from matchms.importing import load_from_mgf

FRAGMENT_TOLERANCE = 0.01  # Da, as in the preset small-molecules


def prepared(path):
    """Return unprocessed spectra, m/z of their precursors, flags of negative polarity, and titles."""
    matched = [spectrum for spectrum in load_from_mgf(path, metadata_harmonization=False) if spectrum is not None and len(spectrum.mz)]
    for spectrum in matched:  # ModifiedCosine reads it there
        spectrum.set("precursor_mz", float(spectrum.metadata["pepmass"][0]))
    mz = np.array([spectrum.get("precursor_mz") for spectrum in matched])
    return (
        matched,
        mz,
        np.array([spectrum.metadata["charge"][0] < 0 for spectrum in matched]),
        [spectrum.metadata["title"] for spectrum in matched],
    )


def main():
    """Search the queries, and print the numbers of correct best candidates and of compared pairs, and the CPU time."""
    library, mz, is_negative, labels = prepared(sys.argv[1])
    queries, own_mz, own_negative, own_labels = prepared(sys.argv[2])
    order = np.argsort(mz, kind="stable")
    mz = mz[order]
    width = float(sys.argv[3]) * (own_mz * 1e-6 if sys.argv[4] == "ppm" else 1.0)
    low, high = np.searchsorted(mz, own_mz - width), np.searchsorted(mz, own_mz + width, side="right")
    similarity = getattr(measures, sys.argv[5])(tolerance=FRAGMENT_TOLERANCE, intensity_power=float(sys.argv[6]))
    for spectrum in (library[0], library[-1]):  # compile everything: a spectrum matches itself
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
