"""Time and memory to write evidence pages: relatives of albumin with peptides, sites and contacts on the bundled structure.

    python -m benchmarks.evidence_pages [--proteins 20]

One JSON line: CPU time of all threads and megabytes per protein, HTML and PDF together, and the growth of the process memory when the pages
were written a second time.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from proteoscope.engine.evidence.entry import EVIDENCE
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from proteoscope.engine.structures.reading import read_structure
from tests.engine.evidence.evidence_projects import changed, write_albumin, write_identification


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--proteins", type=int, default=20)
    n = parser.parse_args().proteins
    with tempfile.TemporaryDirectory(prefix="proteoscope-pages-") as name:
        folder = Path(name)
        albumin = write_albumin(folder)
        sequence = read_structure(albumin).chains.sequence(0)
        # Each relative is changed at other positions, so that few peptides are shared.
        kinds = [(every, shift) for every in range(4, 20) for shift in range(every)][:n]
        proteins = {f"RELATIVE{k}": changed("G" * shift + sequence, every)[shift:] for k, (every, shift) in enumerate(kinds)}
        project = write_identification(folder, proteins)
        run = run_search("evidence", {"project": [project], "structures": [albumin]}, device="cpu", threads=2, protein_fdr=1.0).run_id
        assert run is not None
        opened = Project.open(project)
        # Opening modules and files, which happens only once, is not measured.
        EVIDENCE.write_pages(opened, run, folder / "first", Progress())
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        written = EVIDENCE.write_pages(opened, run, folder / "pages", Progress())
        seconds, after = time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        pages = (len(written) - 1) // 2
        size = sum(path.stat().st_size for path in written) / pages / 1e6
        figures = {"benchmark": "evidence_pages", "proteins": pages, "seconds_of_a_protein": round(seconds / pages, 3)}
        print(
            json.dumps(figures | {"megabytes_of_a_protein": round(size, 3), "more_memory_in_megabytes": round((after - before) / 1024, 1)})
        )


if __name__ == "__main__":
    main()
