"""Texts shared by views of peptide-spectrum matches: counts with intervals of false PSMs, and titles of spectra."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from PySide6.QtCore import QLocale

from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.counts import Count
from proteoscope.engine.views.identification import Counts, IdentificationOverview
from proteoscope.gui.certainty import certainty_text, share_text
from proteoscope.gui.results.summary_header import SummaryHeader, SummaryNumber
from proteoscope.gui.tables.columns import shown_text

_Q_VALUE = Column("q_value", "", "", "probability")


def show_summary(header: SummaryHeader, overview: IdentificationOverview, fdr: float) -> None:
    """Show the numbers of PSMs, peptides and protein groups in the header, with the interval of the fraction of false PSMs."""
    locale, counts = QLocale(), overview.counts
    psms, peptides, proteins = (
        SummaryNumber(count.number, count.singular, count.plural, _note(count, locale))
        for count in (counts.psms, counts.peptides, counts.proteins)
    )
    header.show_counts(
        (psms, peptides, proteins),
        _summary_ending(overview, fdr),
        _certainty_help(counts),
        large=(psms, proteins),
        chip=_chip(counts, fdr, locale),
    )


def fdr_text(fdr: float, locale: QLocale) -> str:
    """Return a false discovery rate (a fraction) as text: ``1 % FDR``."""
    return f"{locale.toString(fdr * 100, 'g', 3)} % FDR"


def _chip(counts: Counts, fdr: float, locale: QLocale) -> str:
    """Return the confidence interval of the fraction of false PSMs as text (``0.1–2.6 % false at 1 % FDR``), or why it is unknown."""
    if not counts.has_error_rates:
        return "error rate unknown"
    interval = counts.psms.certainty
    if interval is not None and interval.nothing_accepted:
        return certainty_text(interval, locale)
    if interval is None or not counts.psms.number:
        return f"at {fdr_text(fdr, locale)}"
    return f"{share_text(interval.low, interval.high, locale)} false at {fdr_text(fdr, locale)}"


def _summary_ending(overview: IdentificationOverview, fdr: float) -> str:
    """Return a text with the FDR of the counts and the fraction of matched spectra."""
    locale = QLocale()
    if not overview.counts.has_error_rates:
        return "without q-values and decoys, so the error rate is unknown"
    ending = f"at {fdr_text(fdr, locale)}"
    if overview.rate is not None and overview.n_spectra is not None:
        ending += f", {locale.toString(overview.rate * 100, 'f', 1)} % of {locale.toString(overview.n_spectra)} spectra"
    return ending


def _certainty_help(counts: Counts) -> str:
    """Return the tooltip that explains the decoys and percentages next to the counts."""
    if not counts.has_error_rates:
        return "All matches of the file are counted, as its engine ranked them."
    locale = QLocale()
    sentence = (
        "Decoys that pass the same threshold show how many of the targets are false: "
        "their share lies, with 95 % confidence, between the two percentages."
    )
    peptides, sequences = locale.toString(counts.peptides.number), locale.toString(counts.sequences)
    return f"{sentence}\nPeptides are counted with their modifications: {peptides}, of {sequences} different sequences."


def spectrum_title(values: Mapping[str, Any]) -> str:
    """Return the title of a spectrum: scan or id, m/z, charge, retention time, q-value and file, as far as known."""
    locale = QLocale()
    parts = [f"scan {values['scan']}" if values.get("scan") is not None else str(values.get("spectrum_id") or "")]
    if values.get("precursor_mz") is not None:
        charge = f" ({values['charge']}+)" if values.get("charge") is not None else ""
        parts.append(f"m/z {locale.toString(float(values['precursor_mz']), 'f', 4)}{charge}")
    if values.get("retention_time") is not None:
        parts.append(f"{locale.toString(float(values['retention_time']) / 60, 'f', 2)} min")
    if values.get("charge") is not None and values.get("q_value") is not None:
        parts.append(f"q-value {shown_text(_Q_VALUE, values['q_value'], locale)}")
    if values.get("spectrum_file"):
        parts.append(PurePath(values["spectrum_file"]).name)
    return ", ".join(part for part in parts if part)


def _note(count: Count, locale: QLocale) -> str:
    interval = count.certainty
    return (
        certainty_text(interval, locale) if interval is not None and (count.number + interval.decoys or interval.nothing_accepted) else ""
    )
