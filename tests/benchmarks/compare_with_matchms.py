"""Search spectra in a library by CosineGreedy of matchms: compare_with_matchms.py LIBRARY.mgf QUERIES.mgf TOLERANCE ppm|Da.

Run by the peers' Python. Titles are what spectra are of. Candidates are those whose precursor is near enough, found by bisection; the time
is that of the comparisons alone. Prints how many queries have the right one first, and seconds.
"""

import json
import sys
import time

import numpy as np
from matchms.importing import load_from_mgf
from matchms.similarity import CosineGreedy

FRAGMENT_TOLERANCE = 0.01  # dalton, as the preset small-molecules has it


def prepared(path):
    """Spectra as they are, m/z of their precursors, and titles."""
    found = [one for one in load_from_mgf(path, metadata_harmonization=False) if one is not None and len(one.mz)]
    return found, np.array([float(one.metadata["pepmass"][0]) for one in found]), [one.metadata["title"] for one in found]


def main():
    """See the head."""
    library, mz, labels = prepared(sys.argv[1])
    queries, own_mz, own_labels = prepared(sys.argv[2])
    order = np.argsort(mz, kind="stable")
    mz = mz[order]
    width = float(sys.argv[3]) * (own_mz * 1e-6 if sys.argv[4] == "ppm" else 1.0)
    low, high = np.searchsorted(mz, own_mz - width), np.searchsorted(mz, own_mz + width, side="right")
    similarity = CosineGreedy(tolerance=FRAGMENT_TOLERANCE)
    similarity.pair(library[0], queries[0])  # compiles
    right, pairs, begun = 0, 0, time.perf_counter()
    for query, first, last, label in zip(queries, low.tolist(), high.tolist(), own_labels):  # noqa: B905 - of one length
        best, found = 0.0, None
        for at in order[first:last].tolist():
            score = float(similarity.pair(library[at], query)["score"])
            if score > best:
                best, found = score, at
        pairs += last - first
        right += found is not None and labels[found] == label
    print(json.dumps({"right_first": right, "pairs": pairs, "seconds": round(time.perf_counter() - begun, 2)}))


if __name__ == "__main__":
    main()
