"""Methods paragraph of imported results (see `proteoscope.engine.results.methods`)."""

from proteoscope.engine.matches.methods_paragraph import accepted_sentence, localisation_sentences
from proteoscope.engine.results.counts import counted
from proteoscope.engine.results.methods import Methods, RunFacts, listed

__all__ = ["methods"]

_MAXIMUM_CHARACTERS = 200
_SOURCES = {"file": "taken from the file", "decoys": "computed here from the decoys", "none": "not known"}


def _rates(facts: RunFacts) -> str:
    """Return a sentence about the source of the q-values of PSMs, or ''."""
    sources = facts.record.get("q_values_of")
    source = sources.get("psms") if isinstance(sources, dict) else None
    return f"q-values of PSMs were {_SOURCES[source]}." if source in tuple(_SOURCES) else ""


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of an import; it does not describe the original search, whose methods that search engine records."""
    program, n_matches = facts.record.get("program"), facts.count("matches")
    engine = program[:_MAXIMUM_CHARACTERS] if isinstance(program, str) and program else "another search engine"
    size = "" if n_matches is None else f" ({counted(n_matches, 'match', 'matches')})"
    spectra, databases = facts.names("spectra"), facts.names("database")
    sentences = [
        f"The results of {engine} in {listed(facts.names('results', 'identifications'))}{size} were imported; "
        "the search was that engine's.",
        f"Matched ions were computed from the spectra of {listed(spectra)} within {facts.text('fragment_tolerance')}." if spectra else "",
        f"Peptides were placed in the proteins of {listed(databases)}." if databases else "",
        _rates(facts),
        accepted_sentence(facts),
    ]
    sites, of_sites = localisation_sentences(facts)
    return Methods([*sentences, *sites], of_sites)
