"""The search for modified peptides: what it finds of modifications that are known, and in all, beside other searches.

    python -m tests.benchmarks.modified --data FOLDER [--only put-back planted open] [--threads N] [--set FIELD=VALUE ...]

One JSON line for each figure, all at 1 % FDR:

* put back: spectra identified with an oxidation, a deamidation or an acetylated N-terminus are searched without naming it. `matched` to the
  right peptide with the right shift, `found` of these at 1 %, `named` rightly, `sited` on the right residue.
* planted: in half of the spectra that are identified without a modification, the peaks that hold a residue are moved, and the precursor.
* open: PSMs, peptides and seconds of `modified`, of `identify --preset open`, and of the narrow search, of the same spectra and proteins.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.formats import read_spectra
from engine.identification.parameters import IdentificationParameters
from engine.identification.search import identify
from engine.modified_search.parameters import ModifiedSearchParameters
from engine.modified_search.search import find_modified
from engine.parameters import read_preset
from tests.benchmarks.figures import emit, existing
from tests.benchmarks.modified_spectra import accepted, known_modifications, plant, read_psms, recovered
from tests.peers.peer_datasets import DATASETS

_SETS = ("qc_shew", "metaproteome", "bench")
_VARIABLE = "Oxidation (M); Deamidated (NQ); Acetyl (Protein N-term)"
_PARTS = ("put-back", "planted", "open")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the unpacked test data")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS)
    parser.add_argument("--sets", nargs="+", choices=_SETS, default=_SETS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    options = parser.parse_args()
    parameters = ModifiedSearchParameters.checked(read_preset("modified", "standard")).changed(options.set)
    narrow = IdentificationParameters.checked(read_preset("identify", "high-resolution"))
    how: dict[str, Any] = {"threads": options.threads, "device": options.device}
    for name in options.sets:
        dataset = DATASETS[name]
        spectra = [existing(options.data / one) for one in dataset.spectra]
        database = [existing(options.data / dataset.database)]
        with tempfile.TemporaryDirectory() as folder_name:
            folder = Path(folder_name)
            if "put-back" in options.only:
                identify(spectra, database, folder / "known", narrow.changed(variable_modifications=_VARIABLE), **how)
                find_modified(spectra, database, folder / "found", parameters, **how)
                known, rows = known_modifications(read_psms(folder / "known")), read_psms(folder / "found")
                for modification in ("Oxidation", "Deamidated", "Acetyl", ""):
                    some = {spectrum: one for spectrum, one in known.items() if modification in ("", one.name)}
                    emit({"what": "put back", "set": name, "modification": modification or "all"}, **recovered(some, rows))
            if "planted" in options.only:
                identify(spectra, database, folder / "plain", narrow.changed(variable_modifications=""), **how)
                read = read_spectra(spectra)
                known = plant(read, read_psms(folder / "plain"), 0.5, 1, folder / "planted.mgf")
                find_modified([folder / "planted.mgf"], database, folder / "of_planted", parameters, **how)
                emit({"what": "planted", "set": name}, **recovered(known, read_psms(folder / "of_planted")))
            if "open" in options.only:
                wide = IdentificationParameters.checked(read_preset("identify", "open"))
                for what, run in (
                    ("modified", lambda out: find_modified(spectra, database, out, parameters, **how)),  # noqa: B023
                    ("identify open", lambda out: identify(spectra, database, out, wide, **how)),  # noqa: B023
                    ("identify narrow", lambda out: identify(spectra, database, out, narrow, **how)),  # noqa: B023
                ):
                    began = time.perf_counter()
                    summary = run(folder / what.replace(" ", "-"))
                    seconds = round(time.perf_counter() - began, 2)
                    rows = accepted(read_psms(folder / what.replace(" ", "-")))
                    emit(
                        {"what": "open", "set": name, "search": what}, psms=len(rows), peptides=summary.n_peptides, seconds=seconds,
                        device=summary.device,
                    )  # fmt: skip


if __name__ == "__main__":
    main()
