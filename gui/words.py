"""Functions that compose phrases for messages."""

from collections.abc import Sequence

from PySide6.QtCore import QLocale

from proteoscope.engine.results.counts import Count
from proteoscope.gui.certainty import certainty_text


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article, such as ``an identification``."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def in_sentence(title: str) -> str:
    """Return a title in lower case for use in a sentence, such as ``proteins``; abbreviations such as ``PSMs`` are unchanged."""
    return title if title[1:2].isupper() else title.lower()


def counts_text(counts: Sequence[Count], locale: QLocale) -> str:
    """Return the counts of a search as one line such as ``12 PSMs (2 decoys; 0.1–2.6 % false), 9 peptides``, or ``no hits``."""
    if counts and not counts[0].number and counts[0].certainty is None:
        return f"no {counts[0].plural}"
    return ", ".join(_count_text(count, locale) for count in counts)


def _count_text(count: Count, locale: QLocale) -> str:
    number = locale.toString(count.number)
    what = f"{number} {count.noun}" if count.total is None else f"{number} of {locale.toString(count.total)} {count.plural}"
    return what + (f" ({certainty_text(count.certainty, locale)})" if count.certainty else "")
