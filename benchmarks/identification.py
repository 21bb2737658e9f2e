"""Identification compared with Comet, X!Tandem and Sage's core, in one run on one machine.

    bash tests/peers/install.sh
    .venv/bin/python -m benchmarks.identification --data FOLDER [DATASET ...] > figures.jsonl

One JSON line for each figure:

search
    dataset, program, version, target matches (`psms`) and distinct sequences (`peptides`) at 1 %, wall seconds and peak megabytes of the
    whole process. For Comet and X!Tandem, `*_raw_score` has the same numbers for spectra ranked by XCorr or hyperscore instead of the
    E-value.
agreement
    for spectra that all the named programs accept at 1 %, the share with the same peptide (I = L).
entrapment
    foreign peptides among the accepted matches of a search whose database also has proteomes of organisms that are not in the sample: their
    share, which is a lower bound of the share of false matches, and the share corrected for the sizes of both parts of the database.

The kernels are compiled once before, on the smallest dataset. Proteoscope searches each dataset twice: without an index, then with the
stored one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.peers.peer_datasets import DATASETS, EIGHTEEN_PROTEINS, Dataset, read_fasta
from tests.peers.peer_figures import accepted, agreement, entrapment
from tests.peers.peer_programs import PEERS, Match, Search, installed, run_peer, run_proteoscope

WARM_UP = "ecoli_ltq"


def emit(figure: str, **values: Any) -> None:
    """Print a figure as a JSON line immediately."""
    print(json.dumps({"figure": figure, **values}), flush=True)


def emit_search(dataset: Dataset, search: Search, **more: Any) -> list[Match]:
    """Print the results and cost of a search; return the matches accepted at 1 %."""
    matches = accepted(search.matches)
    values: dict[str, Any] = {"psms": len(matches), "peptides": len({match.peptide for match in matches})}
    if any(match.raw_score != match.score for match in search.matches):
        raw = accepted(search.matches, raw=True)
        values |= {"psms_raw_score": len(raw), "peptides_raw_score": len({match.peptide for match in raw})}
    values |= {"seconds": round(search.seconds, 2), "peak_megabytes": round(search.peak_megabytes)}
    emit("search", dataset=dataset.name, program=search.program, version=search.version, **values, **more)
    return matches


def emit_comparisons(dataset: Dataset, matches_of: dict[str, list[Match]], data: Path) -> None:
    """Print how far the programs agree and, for an entrapment search, how many foreign peptides each accepts."""
    groups = [*combinations(matches_of, 2), tuple(matches_of)] if len(matches_of) > 2 else [tuple(matches_of)]
    for programs in groups:
        if len(programs) > 1:
            same, common = agreement(*(matches_of[program] for program in programs))
            emit(
                "agreement",
                dataset=dataset.name,
                programs=programs,
                same=same,
                common=common,
                share=round(same / common, 4) if common else None,
            )
    if dataset.proteome:
        fastas = (read_fasta(data / name) for name in (dataset.proteome, dataset.database, EIGHTEEN_PROTEINS))
        proteome, database, eighteen_proteins = fastas
        for program, matches in matches_of.items():
            result = entrapment(matches, proteome, database, eighteen_proteins)
            emit(
                "entrapment",
                dataset=dataset.name,
                program=program,
                accepted=result.accepted,
                foreign=result.foreign,
                fraction=round(result.fraction, 4),
                corrected=round(result.corrected, 4),
                foreign_to_own_residues=round(result.size_ratio, 2),
            )


def main() -> int:
    """Run the chosen programs on the chosen datasets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help=f"all when none is named: {', '.join(DATASETS)}")
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("PROTEOSCOPE_TEST_DATA"), help="the unpacked data (PROTEOSCOPE_TEST_DATA)"
    )
    parser.add_argument("--programs", nargs="+", choices=["proteoscope", *PEERS], default=["proteoscope", *PEERS])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="where Proteoscope computes")
    parser.add_argument("--isotope-errors", type=int, choices=range(4), default=1, help="maximum isotope error of precursors")
    parser.add_argument(
        "--set", action="append", default=[], metavar="FIELD=VALUE", help="a parameter of Proteoscope in addition to the preset"
    )
    parser.add_argument("--refresh", action="store_true", help="run the peers again even if their results are cached")
    arguments = parser.parse_args()
    unknown = set(arguments.datasets) - set(DATASETS)
    if unknown:
        parser.error(f"no such dataset: {', '.join(sorted(unknown))}")
    if arguments.data is None or not Path(arguments.data).is_dir():
        parser.error("--data must be the folder of the unpacked data")
    data = Path(arguments.data).resolve()
    missing = [program for program in arguments.programs if program != "proteoscope" and not installed(program)]
    if missing or not installed("sagepy"):
        parser.error(f"not installed: {', '.join(missing or ['sagepy'])}; run bash tests/peers/install.sh")
    settings = ("isotope_errors=" + ",".join(map(str, range(arguments.isotope_errors + 1))), *arguments.set)
    with tempfile.TemporaryDirectory(prefix="proteoscope-benchmark-") as scratch:
        ours = "proteoscope" in arguments.programs
        if ours:
            options: dict[str, Any] = {"threads": arguments.threads, "device": arguments.device, "settings": settings}
            run_proteoscope(DATASETS[WARM_UP], data, Path(scratch) / "warm-up", **options)
        for name in arguments.datasets or DATASETS:
            dataset = DATASETS[name]
            matches_of: dict[str, list[Match]] = {}
            if ours:
                project = Path(scratch) / name
                for index in ("built", "kept"):
                    search = run_proteoscope(dataset, data, project, **options)
                    matches_of["proteoscope"] = emit_search(dataset, search, index=index, steps=search.details.get("steps"))
            for program in PEERS:
                if program in arguments.programs and program in dataset.peers:
                    peer = run_peer(
                        program,
                        dataset,
                        data,
                        threads=arguments.threads,
                        isotope_errors=arguments.isotope_errors,
                        refresh=arguments.refresh,
                    )
                    matches_of[program] = emit_search(dataset, peer, **peer.details)
            emit_comparisons(dataset, matches_of, data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
