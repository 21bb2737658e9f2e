"""Summary and methods paragraph of a quantification."""

from dataclasses import dataclass

from proteoscope.engine.results.counts import Count, Methods, RunFacts, counted
from proteoscope.engine.summary import Summary

__all__ = ["QuantificationSummary", "methods"]


@dataclass(frozen=True, kw_only=True)
class QuantificationSummary(Summary):
    """Summary of a quantification.

    Attributes
    ----------
    source_runs : tuple of str
        Identifiers of the quantified identifications.
    n_transferred : int
        Number of ions measured in files that did not identify them.
    n_random_time_transfers, n_decoy_transfers, n_decoy_random_time_transfers : int
        Numbers of ions that score at least as high as accepted transfers: ions of peptides that were better at a random time, ions of decoy
        peptides, and ions of decoy peptides that were better at a random time.
    n_refused : int
        Number of traces or spectra without a quantity.
    n_tested, n_changed : int
        Numbers of tested and of changed proteins, over all comparisons.
    n_imputed : int
        Number of imputed quantities, over all comparisons.
    """

    source_runs: tuple[str, ...]
    method: str
    n_samples: int
    n_peptidoforms: int
    n_peptides: int
    n_proteins: int
    n_identified_proteins: int
    n_transferred: int
    n_random_time_transfers: int
    n_decoy_transfers: int
    n_decoy_random_time_transfers: int
    n_refused: int
    n_tested: int
    n_changed: int
    n_imputed: int

    @property
    def transfer_error_rate(self) -> float:
        """Estimated rate of false transfers (see `proteoscope.engine.quantification.transfers`)."""
        wrong = max(0, self.n_decoy_transfers - self.n_decoy_random_time_transfers)
        return (1 + self.n_random_time_transfers + wrong) / max(1, self.n_transferred)

    def counts(self) -> list[Count]:
        """Return the numbers of quantified proteins and peptides, and of changed proteins if conditions are compared."""
        result = [
            Count(self.n_proteins, "protein quantified", "proteins quantified", total=self.n_identified_proteins),
            Count(self.n_peptides, "peptide quantified", "peptides quantified"),
        ]
        changed = Count(self.n_changed, "changed protein", "changed proteins", total=self.n_tested)
        return [*result, changed] if self.n_tested else result

    def lines(self) -> list[str]:
        """Return lines of text on what was quantified and compared."""
        runs = ", ".join(self.source_runs)
        result = [
            f"{self.n_peptidoforms:,} peptidoforms, {self.n_peptides:,} peptides and {self.n_proteins:,} of"
            f" {self.n_identified_proteins:,} proteins of {runs} have a quantity in {counted(self.n_samples, 'sample')}"
        ]
        if self.n_transferred:
            result.append(
                f"{self.n_transferred:,} ions were transferred to files that did not identify them; {self.n_random_time_transfers:,} others"
                f" scored better at a random time, and {self.n_decoy_transfers:,} decoy peptides were found (estimated rate of false"
                f" transfers: {100 * self.transfer_error_rate:.2f} %)"
            )
        if self.n_refused:
            result.append(f"{self.n_refused:,} ion traces have no quantity; the table gives the reason for each")
        if self.n_tested:
            result.append(f"{self.n_changed:,} of {self.n_tested:,} tested proteins changed")
        if self.n_imputed:
            result.append(f"{self.n_imputed:,} missing quantities were imputed; the table gives their number for each protein")
        return result


_NSAF = "Zybailov B, et al. Statistical analysis of membrane proteome expression changes. J Proteome Res 5, 2339-2347 (2006)"
_MAXLFQ = "Cox J, et al. Accurate proteome-wide label-free quantification (MaxLFQ). Mol Cell Proteomics 13, 2513-2526 (2014)"
_TRANSFERS = (
    "Solivais AJ, et al. Improved detection of differentially abundant proteins through FDR-control of peptide-identity-propagation."
    " J Proteome Res 24, 4437-4449 (2025)"
)
_LIMMA = "Smyth GK. Linear models and empirical Bayes methods for assessing differential expression. Stat Appl Genet Mol Biol 3, 3 (2004)"
_MIXTURE = "Dempster AP, et al. Maximum likelihood from incomplete data via the EM algorithm. J R Stat Soc B 39, 1-38 (1977)"
_BENJAMINI = "Benjamini Y, Hochberg Y. Controlling the false discovery rate. J R Stat Soc B 57, 289-300 (1995)"
_REFERENCE = "Plubell DL, et al. Extended multiplexing of tandem mass tags (TMT) labeling. Mol Cell Proteomics 16, 873-890 (2017)"
_BY = {
    "maxlfq": "the pairwise medians of the ratios of their ions (MaxLFQ)",
    "top-3": "the sum of their three most abundant peptides",
    "sum": "the sum of their peptides",
    "median": "the median of their peptides",
}


def methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of a quantification, from the record of its run."""
    runs = facts.record.get("source_runs")
    names = ", ".join(str(run)[:60] for run in runs[:6]) if isinstance(runs, list) else ""
    method, citations = facts.text("method"), []
    sentences = [
        f"Matches{f' of {names}' if names else ''} up to a q-value of {facts.text('psm_fdr')} and protein groups up to"
        f" {facts.text('protein_fdr')} were quantified; peptides of several groups were used for"
        f" {'the group with the most peptides' if facts.text('shared_peptides') == 'razor' else 'none of them'}."
    ]
    if method == "counts":
        sentences.append(
            "Proteins were quantified by their spectral counts, normalised by length (NSAF). Counts saturate, so that fold changes are"
            " underestimated."
        )
        citations.append(_NSAF)
    elif method == "tmt":
        sentences += _describe_reporters(facts)
        citations += [_REFERENCE] if facts.text("reference") else []
    else:
        sentences += _describe_traces(facts)
        citations += [_TRANSFERS] if facts.text("match_between_runs") == "True" else []
    if method != "counts":
        by = facts.text("protein_quantity")
        if facts.text("normalisation") == "median":
            sentences.append(f"Samples were scaled so that the median ion was the same in all{_centres(facts)}.")
            citations += [_MIXTURE] if facts.record.get("centre_shifts") else []
        sentences.append(f"Proteins were quantified by {_BY.get(by, 'their peptides')}.")
        citations += [_MAXLFQ] if by == "maxlfq" else []
    if sites := facts.count("sites"):
        sentences.append(
            f"{counted(sites, 'site')} of modifications with a probability of at least {facts.text('minimum_site_probability')} were"
            " quantified by their peptidoforms, and compared with those peptidoforms of their protein that have no localised modification."
        )
    if facts.count("tested") and facts.count("changed") is not None:
        sentences.append(_comparison(facts))
        citations += [_LIMMA, _BENJAMINI]
    return Methods(sentences, tuple(citations))


def _comparison(facts: RunFacts) -> str:
    blocks = [str(block)[:20] for block in facts.record.get("blocks") or []]
    with_blocks = f" in linear models of the condition and of {', '.join(blocks)} as blocks" if blocks else ""
    imputed = "missing quantities were not imputed"
    if facts.text("imputation") == "low":
        imputed = (
            "if a protein had no quantity in one condition and at least two measured values in the other, the missing quantities were"
            f" set to the first percentile of the sample ({counted(facts.count('imputed') or 0, 'value')}) and not used for the variance"
        )
    tested, changed = facts.count("tested") or 0, facts.count("changed") or 0
    return (
        f"Log2 quantities were compared by moderated t-tests (empirical Bayes){with_blocks}, with p-values corrected after Benjamini"
        f" and Hochberg; {imputed}. Of {counted(tested, 'test')}, {changed:,} changed at a false discovery rate of"
        f" {facts.text('change_fdr')}."
    )


def _centres(facts: RunFacts) -> str:
    """Return how conditions were centred, as the end of a sentence, or ''."""
    shifts = facts.record.get("centre_shifts")
    if not isinstance(shifts, dict) or not shifts:
        return ""
    moved = "; ".join(f"{str(name)[:60]}: {value:+.3f}" for name, value in shifts.items() if isinstance(value, int | float))
    return f", and comparisons of conditions were centred on the unchanged proteins by a mixture model of the log2 ratios ({moved})"


def _describe_traces(facts: RunFacts) -> list[str]:
    refused = facts.count("refused")
    reported = f" ({counted(refused, 'trace')} in all)" if refused is not None else ""
    result = [
        f"The first {facts.text('isotopes')} isotopes of each ion were followed in the MS1 spectra within"
        f" {facts.text('precursor_tolerance')}, up to {facts.text('retention_window')} s from its spectra. The area under these traces was"
        f" used if it agreed with the isotope pattern of the formula (cosine of at least {facts.text('minimum_agreement')})."
        " Traces were refused if the summit was not twice as high as the lowest intensities of the file, belonged to another identified ion"
        f" or its isotopes, or was, after alignment, at another time than in most files{reported}."
    ]
    if voltages := facts.count("faims_voltages"):
        result.append(f"Each trace was followed at one of the {voltages} compensation voltages of FAIMS.")
    if facts.text("match_between_runs") == "True":
        transferred = facts.count("transferred")
        reported = f"; {counted(transferred, 'ion')} were transferred" if transferred is not None else ""
        result.append(
            "Ions that were identified only in other files were searched for at their aligned times, if their proteins were accepted and"
            f" their peptides had a q-value of at most {facts.text('donor_fdr')} over all files. They were accepted up to a rate of false"
            f" transfers of {facts.text('transfer_fdr')}, estimated by decoy peptides and random times (PIP-ECHO){reported}."
        )
    return result


def _describe_reporters(facts: RunFacts) -> list[str]:
    peak = "the most intense" if facts.text("reporter_peak") == "most-intense" else "the nearest"
    result = [
        f"For each channel of the label ({facts.text('label')}), {peak} peak within {facts.text('reporter_tolerance')} was used as the"
        f" reporter ion. Spectra were refused if more than a fraction of {facts.text('maximum_interference')} of the isolation window was"
        " due to other ions, according to the MS1 spectra before and after. The quantity of a peptidoform is the"
        f" {facts.text('peptide_quantity')} of its spectra."
    ]
    from_third = facts.count("ms3_spectra")
    if from_third:
        result.append(
            f"Reporter ions of {counted(from_third, 'identified spectrum', 'identified spectra')} were read from their MS3 spectra."
        )
    if facts.names("impurities"):
        result.append("Isotope impurities were corrected with the table of the kit, by non-negative least squares.")
    if facts.text("reference"):
        result.append(f"Plexes were scaled by their channels of {facts.text('reference')[:60]}, row by row (internal reference scaling).")
    return result
