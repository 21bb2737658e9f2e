"""Texts that describe how certain a count is: the number of accepted decoys and an interval for the fraction of false targets."""

from PySide6.QtCore import QLocale

from proteoscope.engine.results.counts import FalseShareInterval


def certainty_text(certainty: FalseShareInterval, locale: QLocale) -> str:
    """Return a text such as ``2 decoys; 0.1–2.6 % false``.

    For a short list, the number of items at 5 % FDR is added (``0 decoys; 0–15 % false; 41 at 5 % FDR``). For an empty list, the text
    contains only the numbers of items at both rates (``0 at 1 % FDR; 103 at 5 % FDR``).
    """
    decoys, low, high, at_5_percent, nothing_at = certainty
    if nothing_at is not None and at_5_percent is not None:
        return nothing_text(at_5_percent, nothing_at, locale)
    text = f"{locale.toString(decoys)} decoy{'' if decoys == 1 else 's'}; {share_text(low, high, locale)} false"
    return text if at_5_percent is None else f"{text}; {locale.toString(at_5_percent)} at 5 % FDR"


def nothing_text(at_5_percent: int, fdr: float, locale: QLocale) -> str:
    """Return a text such as ``0 at 1 % FDR; 103 at 5 % FDR`` for a list that is empty at `fdr`, a fraction."""
    return f"0 at {locale.toString(fdr * 100, 'g', 3)} % FDR; {locale.toString(at_5_percent)} at 5 % FDR"


def share_text(low: float, high: float, locale: QLocale) -> str:
    """Return an interval of fractions (0 to 1) as a text in percent, such as ``0.1–2.6 %``, rounded to about two significant digits."""
    return f"{_percent(low, locale)}–{_percent(high, locale)} %"


def _percent(fraction: float, locale: QLocale) -> str:
    percent = 100 * fraction
    if percent == 0 or percent >= 9.95:
        return locale.toString(percent, "f", 0)
    return locale.toString(percent, "f", 1) if percent >= 0.05 else locale.toString(percent, "g", 1)
