"""Summary and methods paragraph of an import."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proteoscope.engine.matches.methods_paragraph import accepted_sentence, localisation_sentences
from proteoscope.engine.results.counts import Count, Methods, RunFacts, counted, listed
from proteoscope.engine.summary import Summary

__all__ = ["ImportSummary", "methods", "rate_sources"]


@dataclass(frozen=True, kw_only=True)
class ImportSummary(Summary):
    """Summary of an import; PSMs, peptides and proteins are targets at the false discovery rate.

    Attributes
    ----------
    format, program : str
        Format of the results, and the program that created them.
    n_matches, n_imported : int
        Numbers of matches in the files and in the tables, including all ranks and decoys.
    left_out : mapping of str to int
        Number of omitted matches by reason.
    found_by : mapping of str to int
        Number of matches whose spectrum was found by each method, such as ``native id``.
    source_of : mapping of str to str
        Source of the q-values of PSMs, peptides and proteins: ``file``, ``decoys`` (computed here), ``best match`` or ``none``.
    certainty : dict
        See `proteoscope.engine.matches.summary.MatchSummary`; empty without decoys.
    """

    format: str
    program: str
    n_spectra: int
    n_matches: int
    n_imported: int
    n_psms: int
    n_peptides: int
    n_sequences: int
    n_proteins: int
    left_out: Mapping[str, int]
    found_by: Mapping[str, int]
    source_of: Mapping[str, str]
    score: str
    certainty: dict[str, dict[str, float]] = field(default_factory=dict)
    top_proteins: tuple[tuple[str, str | None, int, float | None], ...] = ()
    fdr: float = 0.01

    def counts(self) -> list[Count]:
        """Return the accepted PSMs, peptides and protein groups; all imported PSMs if there are no error rates."""
        if self.source_of["psms"] == "none":
            return [Count(self.n_imported, "PSM", "PSMs")]
        named = (
            (self.n_psms, "PSM", "PSMs", "psms"),
            (self.n_peptides, "peptide", "peptides", "peptides"),
            (self.n_proteins, "protein", "proteins", "proteins"),
        )
        return [
            Count.from_acceptance(number, singular, plural, self.certainty[name], self.fdr)
            if name in self.certainty
            else Count(number, singular, plural)
            for number, singular, plural, name in named
        ]

    def lines(self) -> list[str]:
        """Return lines about imported matches, the methods that found spectra, the source of q-values, and the results."""
        result = ", ".join(f"{n:,} by {way}" for way, n in self.found_by.items())
        matches = f"{self.n_imported:,} of {counted(self.n_matches, 'match', 'matches')}"
        lines = [f"{matches} of {self.program or self.format} imported ({result or 'none'})"]
        lines += [f"  {n:,} left out: {reason}" for reason, n in self.left_out.items()]
        lines.append(rate_sources(self.source_of, self.score))
        if self.source_of["psms"] != "none":
            lines.append(f"At {self.fdr * 100:.3g} % FDR:")
            more = "", f" ({counted(self.n_sequences, 'sequence')})", ""
            lines += [count.line(text) for count, text in zip(self.counts(), more, strict=True)]
        for accession, description, n_peptides, coverage in self.top_proteins:
            fraction = "" if coverage is None else f"{coverage * 100:5.1f} %  "
            lines.append(f"  {accession:<30.30} {counted(n_peptides, 'peptide'):>13}  {fraction}{description or '':.60}")
        return lines

    def record(self) -> dict[str, Any]:
        """Return all attributes by name as values for JSON."""
        record = super().record()
        return {**record, **{name: dict(getattr(self, name)) for name in ("left_out", "found_by", "source_of")}}


def rate_sources(source_of: Mapping[str, str], score: str) -> str:
    """Return a sentence about the source of the q-values of each level; `score` is the title of the ranking score."""
    described = {
        "file": "those of the file",
        "decoys": f"computed here from the decoys, ranked by {score}",
        "best match": "that of the best match, without a separate estimate",
        "none": "not known: the results have neither q-values nor decoys",
    }
    levels: dict[str, list[str]] = {}
    for level, name in (("psms", "PSMs"), ("peptides", "peptides"), ("proteins", "protein groups")):
        levels.setdefault(source_of[level], []).append(name)
    listed = {source: " and ".join(filter(None, (", ".join(some[:-1]), some[-1]))) for source, some in levels.items()}
    return "q-values of " + "; of ".join(f"{some}: {described[source]}" for source, some in listed.items())


_MAXIMUM_CHARACTERS = 200
_SOURCES = {"file": "taken from the file", "decoys": "computed here from the decoys", "none": "not known"}


def _rates(facts: RunFacts) -> str:
    """Return a sentence about the source of the q-values of PSMs, or ''."""
    sources = facts.record.get("q_values_of")
    source = sources.get("psms") if isinstance(sources, dict) else None
    return f"q-values of PSMs were {_SOURCES[source]}." if source in tuple(_SOURCES) else ""


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of an import. It does not describe the original search, which the other search engine documents."""
    program, n_matches = facts.record.get("program"), facts.count("matches")
    engine = program[:_MAXIMUM_CHARACTERS] if isinstance(program, str) and program else "another search engine"
    size = "" if n_matches is None else f" ({counted(n_matches, 'match', 'matches')})"
    spectra, databases = facts.names("spectra"), facts.names("database")
    sentences = [
        f"The results of {engine} in {listed(facts.names('results', 'identifications'))}{size} were imported; "
        "that engine had searched the spectra.",
        f"Matched ions were computed from the spectra of {listed(spectra)} within {facts.text('fragment_tolerance')}." if spectra else "",
        f"Peptides were mapped to the proteins of {listed(databases)}." if databases else "",
        _rates(facts),
        accepted_sentence(facts),
    ]
    sites, of_sites = localisation_sentences(facts)
    return Methods([*sentences, *sites], of_sites)
