"""Export formats of identifications, each with the function that writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from proteoscope.engine import matches
from proteoscope.engine.entry import Export

if TYPE_CHECKING:
    from proteoscope.engine.entry import WriteExport
    from proteoscope.engine.matches.writers.tables import MatchesWriter

__all__ = [
    "MATCH_AND_SITE_TABLES",
    "MATCH_FILES",
    "MATCH_TABLES",
    "MATCH_TABLE_FILES",
    "PERCOLATOR_INPUT",
    "PLACES_ON_GENOMES",
    "SITES_FOR_PERSEUS",
    "SITE_TABLE_FILES",
    "SPECTRAL_LIBRARIES",
    "WRITERS",
    "library_exports",
]

MATCH_TABLE_FILES = ("psms.tsv", "peptides.tsv", "proteins.tsv")
SITE_TABLE_FILES = ("psm_sites.tsv", "peptidoform_sites.tsv", "protein_sites.tsv")

WRITERS: dict[str, Callable[[], MatchesWriter]] = {}
"""Writers of matches by format name."""


def _matches(name: str, title: str, writer: Callable[[], MatchesWriter], *endings: str) -> Export:
    """Register and return an export format for matches: files with the suffixes `endings`, or a folder of tables if there are none."""
    WRITERS[name] = writer
    return Export(
        name,
        title,
        lambda: partial(matches.run_tables.export_matches, writer()),
        endings,
        () if endings else MATCH_TABLE_FILES,
        has_acceptance=not endings,
    )


def library_exports(write: Callable[[], WriteExport]) -> tuple[Export, ...]:
    """Return the spectral library formats, with `write` as the function that writes them."""
    return (
        Export("msp", "Spectral library, MSP", write, (".msp",), is_library=True),
        Export("mzspeclib", "Spectral library, mzSpecLib", write, (".mzspeclib.txt", ".mzlib.txt"), is_library=True),
        Export("blib", "Spectral library, BiblioSpec", write, (".blib",), is_library=True, is_binary=True),
    )


MATCH_TABLES = _matches("tsv", "Tables, tab-separated", lambda: matches.writers.tables.write_tables)
MATCH_AND_SITE_TABLES = replace(MATCH_TABLES, write=lambda: matches.run_tables.export_tables, files=(*MATCH_TABLE_FILES, *SITE_TABLE_FILES))
"""Tables of runs that may localise modifications."""
MATCH_FILES = (
    _matches("mzid", "mzIdentML", lambda: matches.writers.mzidentml.write_mzidentml, ".mzid"),
    _matches("pepxml", "pepXML", lambda: matches.writers.pepxml.write_pepxml, ".pep.xml", ".pepxml"),
)
PERCOLATOR_INPUT = _matches("pin", "Features for Percolator and mokapot", lambda: matches.writers.pin.write_pin, ".pin")
PLACES_ON_GENOMES = (
    _matches("gff3", "Positions on the genome, GFF3", lambda: matches.writers.genome.write_gff3, ".gff3", ".gff"),
    _matches("bed", "Positions on the genome, BED", lambda: matches.writers.genome.write_bed, ".bed"),
)
"""Formats with nucleotide positions, for runs that translated nucleotides."""
SITES_FOR_PERSEUS = Export(
    "perseus",
    "Sites of modifications for Perseus",
    lambda: partial(matches.run_tables.export_matches, matches.writers.perseus.write_perseus),
    (".txt",),
    has_acceptance=True,
)
"""Table of sites, for runs that localised modifications."""
SPECTRAL_LIBRARIES = library_exports(lambda: matches.consensus_library.export_library)
"""Spectral library formats for the identified spectra of a run."""
