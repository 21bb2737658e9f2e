"""Methods paragraphs of searches for peptides (see `proteoscope.engine.results.counts`)."""

from collections.abc import Mapping
from typing import Any

from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.matches.pass_records import PassRecord, passes_of_record
from proteoscope.engine.results.counts import Methods, RunFacts, counted, listed
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = ["accepted_sentence", "error_rates", "ion_series_text", "localisation_sentences", "pass_sentences", "spectrum_search_methods"]

_SCORES = {kind.name: (kind.method, kind.citation) for kind in SCORE_KINDS}
_COMPETITION = "Elias JE, Gygi SP. Target-decoy search strategy. Nat Methods 2007, 4:207."
_PERCOLATOR = "Käll L et al. Semi-supervised learning for peptide identification. Nat Methods 2007, 4:923."
_FOLDS = (
    "Granholm V et al. A cross-validation scheme for machine learning algorithms in shotgun proteomics. BMC Bioinformatics 2012, 13:S3."
)
_PICKED = "Savitski MM et al. A scalable approach for protein false discovery rate estimation. Mol Cell Proteomics 2015, 14:2394."
_DECOY_RESIDUES = (
    "Ramsbottom KA et al. Method for independent estimation of the false localization rate for phosphoproteomics. J Proteome Res 2022, "
    "21:1603."
)
_COLLAPSED = (
    "Camacho OM et al. Assessing multiple evidence streams to decide on confidence for identification of post-translational modifications, "
    "within and across data sets. J Proteome Res 2023, 22:1828."
)
_CLOPPER = "Clopper CJ, Pearson ES. The use of confidence or fiducial limits. Biometrika 1934, 26:404."
_METHODS = {
    "group-walk": (
        "by group-walk, but not below the rate from its own decoys",
        "Freestone J et al. Group-walk: a rigorous approach to group-wise false discovery rate analysis. Bioinformatics 2022, 38:ii82.",
    ),
    "transferred": (
        "by transferred subgroup FDR, but not below the rate from its own decoys",
        "Fu Y, Qian X. Transferred subgroup false discovery rate. Mol Cell Proteomics 2014, 13:1359.",
    ),
    "own decoys": ("by its own decoys", ""),
    "none": ("none is estimated for fewer than 20 targets, and nothing is accepted", ""),
}
_MAXIMUM_CLASSES, _MAXIMUM_NAME = 20, 60
_MOST_NAMES, _LONGEST_NAME = 30, 100  # the record may be untrusted
_DECOYS = {
    "reverse": "reversed sequences",
    "pseudo-reverse": "sequences reversed between cleavage sites",
    "shuffle": "shuffled sequences",
    "existing": "the decoys in the database",
}


def spectrum_search_methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of an identification or another search for peptides."""
    sentences = pass_sentences(facts)
    score = facts.text("score")
    title, source = _SCORES.get(score, (score, ""))
    if title:
        sentences.append(f"Candidates were ranked by {title}, over fragment ions of {ion_series_text(facts)}.")
    rates, more = error_rates(facts)
    sites, of_sites = localisation_sentences(facts)
    return Methods([*sentences, *rates, *sites], [*([source] if source else []), *more, *of_sites])


def localisation_sentences(facts: RunFacts) -> tuple[list[str], list[str]]:
    """Return a sentence about the localisation of modifications, and its citations; empty if the run did not localise modifications."""
    localised = facts.record.get("localisation")
    entries = [entry for entry in localised if isinstance(entry, Mapping)] if isinstance(localised, list) else []
    names = [name for entry in entries if isinstance(name := entry.get("modification"), str) and len(name) <= _LONGEST_NAME][:_MOST_NAMES]
    if not names:
        return [], []
    return [
        f"Sites of {listed(names)} were localised by site-determining ions; false localisation rates of peptidoform sites were estimated "
        "from alanine and leucine as decoy residues, in peptides with more than one possible site."
    ], [_DECOY_RESIDUES, _COLLAPSED]


def ion_series_text(facts: RunFacts) -> str:
    """Return a phrase with the ion series, such as "the series b, y"; several sets have activation methods and numbers of spectra."""
    result = next((search_pass.ion_series for search_pass in _passes(facts)), ())
    if len(result) > 1:
        whose = "of the activation of each spectrum " if facts.text("ion_series") == BY_ACTIVATION else ""
        return f"the series {whose}({'; '.join(map(str, result))})"
    symbols = result[0].symbols if result else facts.text("ion_series")
    if symbols == BY_ACTIVATION:
        return "the series of the activation of each spectrum"
    named = f" ({result[0].activation})" if result and result[0].activation else ""
    return f"the series {', '.join(symbols)}{named}"


def pass_sentences(facts: RunFacts) -> list[str]:
    """Return sentences on the spectra, the databases and each search pass."""
    spectra, databases, contaminants = (facts.names(kind) for kind in ("spectra", "database", "contaminants"))
    n_spectra, n_searched, n_proteins = (facts.count(name) for name in ("spectra", "searched", "proteins_in_database"))
    many = "" if n_spectra is None else f" ({counted(n_spectra, 'MS/MS spectrum', 'MS/MS spectra')}{_searched(n_spectra, n_searched)})"
    size = "" if n_proteins is None else f" ({counted(n_proteins, 'protein')})"
    contaminant_phrase = f", with the contaminants of {listed(contaminants)}" if contaminants else ""
    sentences = []
    if spectra and databases:
        sentences.append(f"Spectra of {listed(spectra)}{many} were searched against {listed(databases)}{size}{contaminant_phrase}.")
    return [*sentences, *(f"{done.sentence()}." for done in _passes(facts))]


def _passes(facts: RunFacts) -> tuple[PassRecord, ...]:
    """Return the recorded passes; empty if the record is invalid."""
    try:
        return passes_of_record(facts.record)
    except ParameterError:
        return ()


def _searched(n_spectra: int, n_searched: int | None) -> str:
    return "" if n_searched in (None, n_spectra) else f"; {n_searched:,} had enough peaks and a precursor to be searched"


def error_rates(facts: RunFacts) -> tuple[list[str], list[str]]:
    """Return sentences about error rates and accepted numbers, and the citations."""
    decoys, sentences, citations = facts.text("decoys"), list[str](), list[str]()
    if decoys == "none":
        return [*sentences, "No decoys were searched, and no false discovery rate was estimated."], citations
    if decoys:
        is_one_added = facts.parameters.get("plus_one") is True
        counted = "with one decoy added" if is_one_added else "with at least as many decoys as expected from the decoy scores"
        sentences.append(
            f"False discovery rates were estimated by competition of targets with decoys ({_DECOYS.get(decoys, decoys)}), as decoys over "
            f"targets, {counted}."
        )
        citations.append(_COMPETITION)
    of_classes, more = _class_rates(facts)
    sentences, citations = [*sentences, *of_classes], [*citations, *more]
    learnt, skipped = facts.last_message("Rescoring learnt"), facts.last_message("Rescoring skipped")
    if learnt:
        sentences.append(
            "Matches were rescored by semi-supervised learning as in Percolator, cross-validated so that no match was scored by a "
            f"model that had seen its peptide ({learnt[0].lower()}{learnt[1:]})."
        )
        citations += [_PERCOLATOR, _FOLDS]
    elif skipped or facts.text("rescoring") == "off":
        why = skipped.partition(": ")[2]
        sentences.append(f"Matches were ranked by the score alone{f', without rescoring ({why})' if why else ''}.")
    accepted = accepted_sentence(facts)
    if facts.count("proteins") is not None:
        sentences.append("Proteins were grouped by parsimony; only the better of a protein and its decoy was counted (picked).")
        citations.append(_PICKED)
    if accepted:
        sentences.append(accepted)
        citations.append(_CLOPPER)
    return sentences, citations


def _class_rates(facts: RunFacts) -> tuple[list[str], list[str]]:
    """Return a sentence on the error rates of classes, and the citations; empty if all matches are in one class."""
    classes = [entry for entry in _records(facts.record.get("classes")) if isinstance(entry.get("name"), str)]
    by_method = {method: [entry["name"][:_MAXIMUM_NAME] for entry in classes if entry.get("method") == method] for method in _METHODS}
    ways = [f"{text} ({listed(by_method[method])})" for method, (text, _) in _METHODS.items() if by_method[method]]
    if len(classes) < 2 or not ways:
        return [], []
    return [f"Each class of PSMs has its own rate: {'; '.join(ways)}."], [
        source for method, (_, source) in _METHODS.items() if by_method[method] and source
    ]


def _records(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a recorded list; empty if it is invalid."""
    return [entry for entry in value[:_MAXIMUM_CLASSES] if isinstance(entry, Mapping)] if isinstance(value, list) else []


def accepted_sentence(facts: RunFacts) -> str:
    """Return a sentence with the accepted numbers and the confidence intervals of their false fractions, or ''."""
    certainty, fdr = facts.record.get("certainty"), facts.parameters.get("fdr")
    if not isinstance(certainty, dict) or not isinstance(fdr, int | float):
        return ""
    reported = []
    for name, singular, plural in (("psms", "PSM", ""), ("peptides", "peptidoform", ""), ("proteins", "protein group", "")):
        interval, number = certainty.get(name), facts.count(name)
        if number is not None and isinstance(interval, Mapping):
            reported.append(counted(number, singular, plural) + _interval(interval))
    return f"At a false discovery rate of {float(fdr) * 100:g} % the search accepted {', '.join(reported)}." if reported else ""


def _interval(interval: Mapping[str, Any]) -> str:
    low, high, decoys = interval.get("false_share_low"), interval.get("false_share_high"), interval.get("decoys")
    if not (isinstance(low, int | float) and isinstance(high, int | float) and isinstance(decoys, int)):
        return ""
    looser = interval.get("targets_at_5_percent")
    if interval.get("targets") == 0 and isinstance(looser, int) and looser:
        return f" ({looser:,} at 5 %)"
    return f" (with {counted(decoys, 'decoy')}; 95 % interval of the false share {low * 100:.1f} to {high * 100:.1f} %)"
