"""Self-contained HTML pages about a project.

All values are escaped, since names may be untrusted; pages contain no scripts and no external addresses.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from proteoscope.engine.results.columns import Column
from proteoscope.engine.results.counts import counted

__all__ = [
    "MAXIMUM_CHARACTERS",
    "cell_text",
    "html_page",
    "listed",
    "printable",
    "result_rows",
    "rows_table",
    "scrolled_table",
    "section",
    "shown",
    "shown_rows_note",
]

MAXIMUM_CHARACTERS = 200
"""Default maximum length of a text."""
_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem;border-bottom:1px solid #ccc}
table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0}td,th{border:1px solid #d5d5d5;padding:.15rem .45rem;text-align:left;
vertical-align:top;max-width:24rem;overflow-wrap:break-word}th{background:#f2f2f2}td.n{text-align:right;font-variant-numeric:tabular-nums}
tr.changed td{background:#fff3d6;font-weight:600}.counts td:first-child{font-size:1.3rem;font-weight:700;text-align:right}
.warning{color:#8a4b00}.error{color:#a1130a}figure{display:inline-block;margin:.5rem}figure svg{max-width:100%;height:auto}
.wide{overflow-x:auto}pre{white-space:pre-wrap;overflow-wrap:anywhere}.note{white-space:pre-wrap;background:#f6f6f6;padding:.5rem}
"""


def html_page(title: str, parts: Iterable[str]) -> str:
    """Return a page with a title and the HTML texts `parts`; empty texts are omitted."""
    head = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
        # Even if a text contained HTML, the page may not load or run anything.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{shown(title)}</title><style>{_STYLE}</style></head><body>",
    ]
    return "\n".join([*head, *(part for part in parts if part), "</body></html>\n"])


def shown(value: object, most: int = MAXIMUM_CHARACTERS) -> str:
    """Return the text of a value, truncated to `most` characters and escaped for HTML."""
    return escape(printable(value, most))


def printable(value: object, most: int = MAXIMUM_CHARACTERS) -> str:
    """Return the text of a value, truncated to `most` characters.

    Control characters, lone surrogates and direction marks are replaced.
    """
    text = str(value)
    if len(text) > most:
        text = f"{text[: most - 1]}…"
    return "".join(symbol if symbol.isprintable() or symbol in "\n\t" else "\ufffd" for symbol in text)


def section(title: str, content: str) -> str:
    """Return a section with a heading, or '' without content; `content` is HTML."""
    return f"<section><h2>{shown(title)}</h2>\n{content}</section>" if content else ""


def listed(texts: Sequence[str]) -> str:
    """Return texts as an HTML list."""
    return f"<ul>{''.join(f'<li>{shown(text, 2000)}</li>' for text in texts)}</ul>"


def rows_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows of texts as an HTML table; the header row is omitted if all its texts are empty."""
    header = f"<tr>{''.join(f'<th>{shown(title)}</th>' for title in head)}</tr>" if any(head) else ""
    body = "".join("<tr>" + "".join(f"<td>{shown(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return scrolled_table(header + body)


def scrolled_table(rows: str) -> str:
    """Wrap table rows in an HTML table that scrolls on narrow pages."""
    return f'<div class="wide"><table>{rows}</table></div>'


def result_rows(columns: Sequence[Column], values: Sequence[Mapping[str, Any]], n_rows: int) -> str:
    """Return the first rows of a result table, `values`, as HTML; a note above says how many of all `n_rows` rows are shown."""
    head = "".join(f'<th title="{shown(column.description)}">{shown(column.header)}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(_cell(row[column.name], column) for column in columns)}</tr>" for row in values)
    return f"<p>{shown_rows_note(len(values), n_rows)}</p>{scrolled_table(f'<tr>{head}</tr>{body}')}"


def shown_rows_note(n_shown: int, n_rows: int) -> str:
    """Return a text on how many of the `n_rows` rows of a table are shown."""
    return counted(n_rows, "row") + (f", the first {n_shown:,} of them" if n_shown < n_rows else "")


def cell_text(value: Any, column: Column) -> tuple[str, bool]:
    """Return the display text of a value, and True if the value is a number."""
    if value is None or (isinstance(value, float) and value != value):
        return "", False
    if isinstance(value, list):
        return printable("; ".join(map(str, value[:MAXIMUM_CHARACTERS]))), False
    if isinstance(value, bool):
        return "yes" if value else "no", False
    if isinstance(value, float):
        number = column.in_unit(value)
        return f"{number:.3g}" if column.kind in ("probability", "e_value") else f"{number:,.{column.decimals}f}", True
    if isinstance(value, int):
        return f"{value}" if column.kind == "identifier" else f"{value:,}", True
    return printable(value), False


def _cell(value: Any, column: Column) -> str:
    text, is_number = cell_text(value, column)
    start = '<td class="n">' if is_number else "<td>"
    return f"{start}{escape(text)}</td>"
