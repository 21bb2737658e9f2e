"""The search for modified peptides: what it finds of modifications that are known, and in all, beside other searches.

    python -m tests.benchmarks.modified --data FOLDER [--only put-back planted entrapment open] [--threads N] [--set FIELD=VALUE ...]

One JSON line for each figure, all at 1 % FDR:

* put back: spectra identified with an oxidation, a deamidation or an acetylated N-terminus are searched without naming it. `matched` to the
  right peptide with the right shift, `found` of these at 1 %, `named` rightly, `sited` on the right residue. Left out, and counted as
  `doubtful`, are those that are identified without the modification too, with an isotope error in its place.
* planted: in half of the spectra that are identified without a modification, the peaks that hold a residue are moved, and the precursor.
* entrapment: in databases with a shuffled partner for each peptide (`entrapment_databases.py`), the share of false PSMs by the combined
  estimator, of all and by group, pooled over `--seeds` databases of each set; beside it the open and the narrow search of the same.
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
from tests.benchmarks.entrapment_databases import ENTRAPMENT, paired_databases, write_fasta
from tests.benchmarks.figures import emit, existing
from tests.benchmarks.modified_spectra import accepted, known_modifications, plant, read_psms, recovered
from tests.peers.peer_datasets import DATASETS, read_fasta

_SETS = ("qc_shew", "metaproteome", "bench")
_VARIABLE = "Oxidation (M); Deamidated (NQ); Acetyl (Protein N-term)"
_PARTS = ("put-back", "planted", "entrapment", "open")
_ENTRAPPED = ("qc_shew", "yeast_velos", "hela_a549")


def entrapment(data: Path, seeds: int, parameters: ModifiedSearchParameters, how: dict[str, Any]) -> None:
    """How many of the accepted are false, by search, set and group, and of all sets together."""
    presets = ("open", IdentificationParameters), ("high-resolution", IdentificationParameters)
    total: dict[tuple[str, str, str], list[float]] = {}
    for name in _ENTRAPPED:
        dataset = DATASETS[name]
        spectra = [existing(data / one) for one in dataset.spectra]
        for database in paired_databases(read_fasta(data / (dataset.proteome or dataset.database)), range(1, seeds + 1)):
            with tempfile.TemporaryDirectory() as folder_name:
                fasta, folder = Path(folder_name) / "database.fasta", Path(folder_name)
                write_fasta(database.proteins, fasta)
                find_modified(spectra, [fasta], folder / "modified", parameters, **how)
                for preset, model in presets:
                    identify(spectra, [fasta], folder / preset, model.checked(read_preset("identify", preset)), **how)
                for search in ("modified", "open", "high-resolution"):
                    for row in accepted(read_psms(folder / search)):
                        is_false = all(one.startswith(ENTRAPMENT) for one in row["proteins"].split(";"))
                        is_false = is_false and database.is_entrapment(row["sequence"])
                        for group in ("all", *([row["shift_kind"]] if search == "modified" else [])):
                            for key in ((search, group, name), (search, group, "all sets")):
                                counts = total.setdefault(key, [0.0, 0.0, 0.0])
                                counts[0] += 1
                                counts[1] += is_false
                                counts[2] += is_false * (1.0 + 1.0 / database.ratio)
    for (search, group, name), (n, n_false, weighted) in sorted(total.items()):
        emit(
            {"what": "entrapment", "search": search, "group": group, "set": name}, databases=seeds, psms=int(n), entrapped=int(n_false),
            false_share=round(weighted / n, 4),
        )  # fmt: skip


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the unpacked test data")
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=_PARTS)
    parser.add_argument("--sets", nargs="+", choices=_SETS, default=_SETS)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    options = parser.parse_args()
    parameters = ModifiedSearchParameters.checked(read_preset("modified", "standard")).changed(options.set)
    narrow = IdentificationParameters.checked(read_preset("identify", "high-resolution"))
    how: dict[str, Any] = {"threads": options.threads, "device": options.device}
    if "entrapment" in options.only:
        entrapment(options.data, options.seeds, parameters, how)
    for name in options.sets:
        dataset = DATASETS[name]
        spectra = [existing(options.data / one) for one in dataset.spectra]
        database = [existing(options.data / dataset.database)]
        with tempfile.TemporaryDirectory() as folder_name:
            folder = Path(folder_name)
            if "put-back" in options.only:
                identify(spectra, database, folder / "known", narrow.changed(variable_modifications=_VARIABLE), **how)
                find_modified(spectra, database, folder / "found", parameters, **how)
                identify(spectra, database, folder / "unmodified", narrow.changed(variable_modifications=""), **how)
                every, rows = known_modifications(read_psms(folder / "known")), read_psms(folder / "found")
                plain = {int(row["spectrum"]): row["sequence"] for row in accepted(read_psms(folder / "unmodified"))}
                known = {spectrum: one for spectrum, one in every.items() if plain.get(spectrum) != one.sequence}
                for modification in ("Oxidation", "Deamidated", "Acetyl", ""):
                    some = {spectrum: one for spectrum, one in known.items() if modification in ("", one.name)}
                    n_every = sum(modification in ("", one.name) for one in every.values())
                    counts = {"doubtful": n_every - len(some), **recovered(some, rows)}
                    emit({"what": "put back", "set": name, "modification": modification or "all"}, **counts)
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
