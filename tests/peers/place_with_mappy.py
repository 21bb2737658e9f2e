"""Map the reads of one FASTQ file with minimap2: place_with_mappy.py GENOME.fasta READS.fastq PLACES.tsv THREADS.

The Python of the peers' environment runs this. PLACES gets a line for each read: name, reference, first base from 0 minus the bases
clipped before it, strand, mapping quality; an unmapped read has ``*``, -1, ``*``, 0. The version is printed.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import mappy

READS_OF_BATCH = 5000


def main() -> None:
    """Index the genome, map the reads and write the positions."""
    genome, reads, places, threads = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    aligner = mappy.Aligner(genome, preset="sr", n_threads=threads)
    given = [(name, residues) for name, residues, _ in mappy.fastx_read(reads)]

    def placed(first: int) -> list[str]:
        buffer, lines = mappy.ThreadBuffer(), []
        for name, residues in given[first : first + READS_OF_BATCH]:
            hit = next((alignment for alignment in aligner.map(residues, buf=buffer) if alignment.is_primary), None)
            if hit is None:
                lines.append(f"{name}\t*\t-1\t*\t0\n")
                continue
            clipped = hit.q_st if hit.strand > 0 else len(residues) - hit.q_en
            lines.append(f"{name}\t{hit.ctg}\t{hit.r_st - clipped}\t{'+' if hit.strand > 0 else '-'}\t{hit.mapq}\n")
        return lines

    with ThreadPoolExecutor(threads) as pool:
        lines = list(pool.map(placed, range(0, len(given), READS_OF_BATCH)))
    places.write_text("".join(chain.from_iterable(lines)))
    print(version("mappy"))


if __name__ == "__main__":
    main()
