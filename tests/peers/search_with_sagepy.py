"""Search one MGF with Sage's core: search_with_sagepy.py SETTINGS.json MATCHES.tsv.

The Python of the peers' environment runs this. SETTINGS holds ``spectra``, ``database``, ``precursor`` and ``fragment`` (each a tolerance
and "ppm" or "Da"), ``isotope_errors`` (lowest and highest) and ``threads``. MATCHES gets a line for each spectrum with a match: title,
peptide, hyperscore, 1 for a decoy, proteins. The last line printed is a JSON line with the version and the seconds spent.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

from sagepy.core.database import EnzymeBuilder, SageSearchConfiguration
from sagepy.core.mass import Tolerance
from sagepy.core.scoring import Scorer
from sagepy.core.spectrum import read_processed_spectra

CARBAMIDOMETHYL = {"C": "[UNIMOD:4]"}
OXIDATION = {"M": ["[UNIMOD:35]"]}


def tolerance(value: float, unit: str) -> Tolerance:
    """Return a symmetric tolerance."""
    return Tolerance(ppm=(-value, value)) if unit == "ppm" else Tolerance(da=(-value, value))


def main() -> None:
    """Build the index, search, write the matches."""
    settings = json.loads(Path(sys.argv[1]).read_text())
    started = time.perf_counter()
    database = SageSearchConfiguration(
        fasta=Path(settings["database"]).read_text(),
        enzyme_builder=EnzymeBuilder(missed_cleavages=2, min_len=7, max_len=50, cleave_at="KR", restrict="P", c_terminal=True),
        static_mods=CARBAMIDOMETHYL,
        variable_mods=OXIDATION,
        max_variable_mods=3,
        decoy_tag="DECOY_",
        generate_decoys=True,
        bucket_size=2**14,
    ).generate_indexed_database()
    indexed = time.perf_counter()
    spectra = read_processed_spectra(
        settings["spectra"], take_top_n=150, deisotope=settings["fragment"][1] == "ppm", num_threads=settings["threads"]
    )
    scorer = Scorer(
        precursor_tolerance=tolerance(*settings["precursor"]),
        fragment_tolerance=tolerance(*settings["fragment"]),
        min_matched_peaks=4,
        min_isotope_err=settings["isotope_errors"][0],
        max_isotope_err=settings["isotope_errors"][1],
        min_precursor_charge=2,
        max_precursor_charge=4,
        report_psms=1,
        annotate_matches=False,
        max_fragment_charge=2,
        static_mods=CARBAMIDOMETHYL,
        variable_mods=OXIDATION,
    )
    matches = scorer.score_collection_top_n(database, spectra, num_threads=settings["threads"])
    scored = time.perf_counter()
    with Path(sys.argv[2]).open("w") as out:
        for spectrum, features in zip(spectra, matches, strict=True):
            if features:
                best = features[0]
                peptide = database[best.peptide_idx]
                proteins = ";".join(str(protein) for protein in peptide.proteins)
                decoy = int(peptide.decoy)
                out.write(f"{spectrum.id}\t{peptide.sequence}\t{best.hyperscore!r}\t{decoy}\t{proteins}\n")
    print(json.dumps({"version": version("sagepy"), "seconds_index": indexed - started, "seconds_search": scored - indexed}))


main()
