"""Names and texts that files can hold, planted in every text column of every kind of search, and their exports and views.

    python -m tests.fuzz.names [--kinds KIND ...] [--share SHARE] [--seed SEED] [--window | --both]

Copies are made of a finished run of each kind, with `NAMES` in one text column of its tables. Each is exported in every format and
reported, or, with ``--window``, opened. Other programs must read the exports as text: no name is markup, a command, or a line or cell of
its own. The window must show text too. Prints a JSON line for each kind; the exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree, html

from proteoscope.engine.command_line.main import main as command_line
from proteoscope.engine.project import Project
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.project.run_notes import RunNote
from proteoscope.engine.searches import search_of_kind
from proteoscope.engine.sequences.hits import OF_ONE_QUERY
from tests.fuzz.places import IN_MEMORY
from tests.fuzz.result_tables import EXPORTS, KINDS, WINDOW, Window, make

CORE = "ZQX"
"""Part of each name with markup: shown without its brackets, it was interpreted as markup."""
MARKUP = f"<b>{CORE}</b>"
NAMES = (
    f"<script>{CORE}</script>",
    f'"><img/src=x/onerror={CORE}>',
    f"<a/href='http://{CORE}'>{CORE}</a>",
    f"<font/color='red'>{CORE}</font>",
    MARKUP,
    f"{MARKUP} &amp; &#27; &",
    f"&lt;i&gt;{CORE}",
    "]]>",
    "\"q'`",
    "%s%n{0}{x}$(id)`id`",
    "a\x1b[31mb",
    "a\tb",
    "a\nb",
    "a\rb",
    "\x01\x02\x7f\x85",
    "\u202egnp.exe",
    "a\u2028b\u2029c",
    "a\ufffeb",
    "\U0001f9ea é",
    "=1+1",
    "+1",
    "-1",
    "@SUM(1)",
    "@SQ\tSN:x",
    "*",
    ".",
    "?",
    "-",
    "\\N",
    "NA",
    "nan",
    "None",
    "",
    " ",
    "../../x",
    "C:\\x",
    "//host/share",
    "a;b|c,d#e",
    "#comment",
    ">x",
    "//",
    "decoy_x",
    "rev_x",
    "contaminant",
    "track",
    "a_b",
    "a b",
    "a%1Bb",
    "M[Oxidation]K/2",
    "(a)[b]<c>",
    "<</JS(x)>>",
    "n" * 5000,
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_TAGS = frozenset(
    [
        "html",
        "mark",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "section",
        "h1",
        "h2",
        "h3",
        "h4",
        "p",
        "ul",
        "li",
        "table",
        "tr",
        "th",
        "td",
        "div",
        "figure",
        "figcaption",
        "svg",
        "g",
        "rect",
        "text",
        "line",
        "polyline",
        "polygon",
        "defs",
        "clippath",
        "path",
        "circle",
        "pre",
        "b",
        "small",
        "span",
        "details",
        "summary",
        "caption",
        "thead",
        "tbody",
        "a",
        "code",
        "br",
        "tspan",
    ]
)
_SAM_LINE = re.compile(
    r"[!-?A-~]{1,254}\t\d+\t(?:\*|[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*)\t\d+\t\d+\t(?:\*|(?:\d+[MIDNSHPX=])+)\t"
    r"(?:\*|=|[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*)\t\d+\t-?\d+\t(?:\*|[A-Za-z=.]+)\t[!-~]+"
    r"(?:\t[A-Za-z][A-Za-z0-9]:(?:A:[!-~]|i:[-+]?\d+|f:[-+]?\d*\.?\d+(?:[eE][-+]?\d+)?|Z:[ !-~]*))*"
)


# --- Exported files ----------------------------------------------------------------------------------------------------------------------


def problems(path: Path) -> list[str]:
    """Return the problems of an exported file, as other programs read it."""
    content = path.read_bytes()
    if path.suffix == ".pdf":
        return _pdf_problems(content)
    if path.suffix in (".parquet", ".bai", ".csi", ".gz", ".png"):
        return []
    if path.suffix == ".blib":
        with closing(sqlite3.connect(path)) as connection:
            return [] if connection.execute("PRAGMA integrity_check").fetchone() == ("ok",) else ["is not SQLite"]
    if path.suffix == ".bam":
        return _bam_problems(path)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        return [f"is not UTF-8: {error}"]
    problems = [f"holds control characters: {sorted(set(_CONTROL.findall(text)))!r}"] if _CONTROL.search(text) else []
    check = next((check for endings, check in _CHECKS.items() if path.name.endswith(endings)), None)
    return problems + (check(text) if check is not None else [])


def _tsv_problems(text: str) -> list[str]:
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter="\t"))
    if len(rows) != text.count("\n"):
        return ["has cells with ends of lines"]
    widths = {len(row) for row in rows if row and not row[0].startswith("#")}
    return ["has rows of other lengths"] if len(widths) > 1 else []


def _xml_problems(text: str) -> list[str]:
    try:
        etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    except etree.XMLSyntaxError as error:
        return [f"is not XML: {error}"]
    return []


def _html_problems(text: str) -> list[str]:
    problems = []
    for element in html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8", huge_tree=True)).iter():
        if not isinstance(element.tag, str):
            problems.append("holds a comment or an instruction")
        elif element.tag not in _TAGS:
            problems.append(f"holds <{element.tag}>")
        else:
            problems += [
                f"{element.tag} has {name}"
                for name, value in element.attrib.items()
                if name.startswith("on") or name == "src" or (name == "href" and not re.fullmatch(r"#[\w.-]+|[\w.-]+\.(?:html|pdf)", value))
            ]
    return problems


def _sam_problems(text: str) -> list[str]:
    lines = text.splitlines()
    header = [line for line in lines if line.startswith("@")]
    problems = [f"{line!r:.200} is not a record" for line in lines[len(header) :] if not _SAM_LINE.fullmatch(line)]
    names = [line.split("\t")[1] for line in header if line.startswith("@SQ")]
    if any(line[:3] not in ("@HD", "@SQ", "@PG") for line in header) or len(set(names)) < len(names):
        problems.append("has other lines in its header, or a reference twice")
    return problems


def _bam_problems(path: Path) -> list[str]:
    import pysam  # an optional dependency that writes BAM

    with pysam.AlignmentFile(str(path), check_sq=False) as records:
        return [
            f"{record.query_name!r} is not a name" for record in records if not re.fullmatch("[!-?A-~]{1,254}", record.query_name or "")
        ]


def _gff3_problems(text: str) -> list[str]:
    problems = []
    for line in text.splitlines()[1:]:
        cells = line.split("\t")
        if line.startswith("#"):
            continue
        if len(cells) != 9 or not re.fullmatch(r"(?:[a-zA-Z0-9.:^*$@!+_?|-]|%[0-9A-F]{2})+", cells[0]):
            problems.append(f"{line!r:.200} is not a feature")
        elif not all(re.fullmatch(r"[^=;,&]+=[^=;&]*", attribute) for attribute in cells[8].split(";")):
            problems.append(f"{cells[8]!r:.200} are no attributes")
    return problems


def _pin_problems(text: str) -> list[str]:
    rows = [line.split("\t") for line in text.split("\n")[:-1]]
    problems = ["has rows that are too short"] if any(len(row) < len(rows[0]) - 1 for row in rows) else []
    return problems + (["names matches twice"] if len({row[0] for row in rows}) < len(rows) else [])


def _paf_problems(text: str) -> list[str]:
    return [
        f"{line!r:.200} is not a record"
        for line in text.split("\n")[:-1]
        if not re.fullmatch(r"(?:[^\t]+\t){11}\d+(?:\t\w\w:\w:\S*)*", line)
    ]


def _blast6_problems(text: str) -> list[str]:
    return [f"{line!r:.200} is not a hit" for line in text.split("\n")[:-1] if line.count("\t") != 11]


def _mgf_problems(text: str) -> list[str]:
    line = re.compile(r"|BEGIN IONS|END IONS|[A-Z]+=.*|[0-9.e+-]+ [0-9.e+-]+")
    problems = [f"{row!r:.200} is not a line" for row in text.split("\n") if not line.fullmatch(row)]
    return problems + (["has other numbers of titles than of spectra"] if text.count("\nTITLE=") != text.count("BEGIN IONS") else [])


def _mzspeclib_problems(text: str) -> list[str]:
    line = re.compile(r"|<[A-Za-z]+(?:[= ][A-Za-z0-9= ]+)?>|(?:\[\d+\])?[A-Z]+:\d+\|[^=]+=.*|[0-9.e+-]+\t.*")
    return [f"{row!r:.200} is not a line" for row in text.split("\n") if not line.fullmatch(row)]


def _msp_problems(text: str) -> list[str]:
    line = re.compile(r"|(?:Name|MW|PrecursorMZ|Charge|Comment|Num peaks): .*|[0-9.e+-]+\t[0-9.e+-]+(?:\t.*)?")
    return [f"{row!r:.200} is not a line" for row in text.split("\n") if not line.fullmatch(row)]


def _pdf_problems(content: bytes) -> list[str]:
    try:
        from pypdf import PdfReader  # used where it is installed
    except ImportError:
        return [] if content.startswith(b"%PDF-") and content.rstrip().endswith(b"%%EOF") else ["is not PDF"]
    reader = PdfReader(io.BytesIO(content), strict=True)
    problems = [f"has {name}" for name in ("/OpenAction", "/AA", "/AcroForm", "/Names") if name in reader.trailer["/Root"]]
    for page in reader.pages:
        page.extract_text()
        problems += ["has annotations"] if "/Annots" in page else []
    return problems


_CHECKS: dict[tuple[str, ...], Callable[[str], list[str]]] = {
    (".tsv",): _tsv_problems,
    (".mzid", ".pep.xml", ".mzML", ".svg"): _xml_problems,
    (".html",): _html_problems,
    (".sam",): _sam_problems,
    (".gff3",): _gff3_problems,
    (".pin",): _pin_problems,
    (".paf",): _paf_problems,
    (".blast6",): _blast6_problems,
    (".mgf",): _mgf_problems,
    (".mzspeclib.txt",): _mzspeclib_problems,
    (".msp",): _msp_problems,
}


# --- Projects with names in a column -----------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A text column of a table of a kind of search."""

    kind: str
    table: str
    column: str


def places(project: Project, kind: str) -> Iterator[Place]:
    """Yield the text columns of a run's tables."""
    for path in _tables(project, kind):
        for field in pq.read_schema(path):
            if _is_text(field.type):
                yield Place(kind, path.stem, field.name)


def _tables(project: Project, kind: str) -> list[Path]:
    run = next(record.id for record in project.runs() if record.kind == kind)
    return sorted((project.folder / "results" / run).glob("*.parquet"))


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or (pa.types.is_list(kind) and _is_text(kind.value_type))


def plant(project: Project, place: Place) -> None:
    """Put the names into a column, equal names for equal texts, and into the notes of the run."""
    path = next(file for file in _tables(project, place.kind) if file.stem == place.table)
    table = pq.read_table(path)
    at = table.schema.get_field_index(place.column)
    replacements: dict[str, str] = {}

    def planted(value: Any) -> Any:
        if isinstance(value, list):
            return [planted(entry) for entry in value]
        return None if value is None else replacements.setdefault(value, NAMES[len(replacements) % len(NAMES)])

    column = pa.array([planted(entry) for entry in table[at].to_pylist()], table.schema.field(at).type)
    pq.write_table(table.set_column(at, table.schema.field(at), column), path)
    run = path.parent.name
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        connection.execute(
            "UPDATE results SET sha256 = ?, bytes = ? WHERE run = ? AND name = ?", (file_digest(path), path.stat().st_size, run, path.stem)
        )
    project.set_note(run, RunNote(title=MARKUP, note="\n".join(NAMES[:24])))


def export_all(folder: Path, kind: str, out: Path) -> int:
    """Write a run in all formats, and its report; return the number of valid files.

    Raises
    ------
    AssertionError
        An export ended neither with 0 nor with 2 and a sentence, or another program does not read it as text.
    """
    search = search_of_kind(kind)
    suffixes = {"tsv": ".tsv", "sorted-sam": ".sam", "sorted-bam": ".bam"}
    commands = []
    for export in search.exports:
        ending = export.endings[0] if export.endings else ""
        target = out / f"{export.name}{suffixes.get(export.name, ending) if export.endings else ''}"
        commands.append(["export", str(folder), "--format", export.name, "--out", str(target)])
        if export.name in OF_ONE_QUERY:
            commands[-1] += ["--query", "Q0"]
    commands.append(["report", str(folder), "--out", str(out / "report")])
    n_written = 0
    for command in commands:
        said = io.StringIO()
        with redirect_stderr(said), redirect_stdout(said):
            status = command_line(command)
        text = said.getvalue()
        assert status in (0, 2), f"{command[2:]} ended with {status}: {text[-500:]}"
        assert not _CONTROL.search(text), f"{command[2:]} printed control characters: {text[-500:]!r}"
        n_written += status == 0
    for path in sorted(out.rglob("*")):
        if path.is_file():
            assert not (issues := problems(path)), f"{path.relative_to(out)} {issues[:3]}"
    return n_written


# --- Views -------------------------------------------------------------------------------------------------------------------------------


class NamesWindow(Window):
    """Opens projects as the window does, and searches for names that are shown as markup."""

    def _look(self, view: Any) -> None:
        super()._look(view)
        check_shown(view)


def check_shown(view: Any) -> None:
    """Check that a view, its tooltips and those of its tables show no name as markup.

    Raises
    ------
    AssertionError
        A name is shown as markup.
    """
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QAbstractItemView, QGraphicsView, QLabel, QTextEdit, QWidget

    for widget in (view, *view.findChildren(QWidget)):
        _check_tip(widget.toolTip(), widget)
        _check_tip(widget.whatsThis(), widget)
        if isinstance(widget, QLabel):
            is_rich = widget.textFormat() in (Qt.TextFormat.RichText, Qt.TextFormat.MarkdownText)
            if is_rich or (widget.textFormat() is Qt.TextFormat.AutoText and _may_be_rich(widget.text())):
                assert not _has_markup(widget.text()), f"a label shows {widget.text()!r:.200} as markup"
        if isinstance(widget, QTextEdit):
            _check_document(widget.document(), widget)
        if isinstance(widget, QGraphicsView) and widget.scene() is not None:
            _check_scene(widget.scene())
        if isinstance(widget, QAbstractItemView) and widget.model() is not None:
            _check_model(widget)
    for action in view.findChildren(QAction):
        _check_tip(action.toolTip(), action)


def _has_markup(text: str) -> bool:
    """True if a text holds a name with markup and its brackets."""
    return any(name.strip() in text for name in NAMES if CORE in name)


def _may_be_rich(text: str) -> bool:
    """True if Qt would detect a text as rich text."""
    from PySide6 import QtGui

    return bool(QtGui.Qt.mightBeRichText(text))


def _check_tip(text: str, owner: Any) -> None:
    assert not (_may_be_rich(text) and _has_markup(text)), f"a tip of {owner} shows {text!r:.200} as markup"


def _check_document(document: Any, owner: Any) -> None:
    """Check that a document that shows the content of a name shows its brackets too."""
    text = document.toPlainText()
    assert len(re.findall(CORE, text)) == len(re.findall(f"[>=/]{CORE}", text)), f"{owner} shows {text!r:.200}, which was markup"


def _check_scene(scene: Any) -> None:
    from PySide6.QtWidgets import QGraphicsTextItem

    for item in scene.items():
        if isinstance(item, QGraphicsTextItem):
            _check_document(item.document(), item)
        _check_tip(item.toolTip(), item)


def _check_model(widget: Any) -> None:
    from PySide6.QtCore import Qt

    model = widget.model()
    for column in range(model.columnCount()):
        _check_tip(str(model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole) or ""), widget)
        for row in range(min(model.rowCount(), 2 * len(NAMES))):
            _check_tip(str(model.index(row, column).data(Qt.ItemDataRole.ToolTipRole) or ""), widget)


# --- Main program ------------------------------------------------------------------------------------------------------------------------


def run(kind: str, folder: Path, chance: random.Random, share: float, ways: tuple[str, ...]) -> dict[str, Any]:
    """Plant the names in a share of the text columns of a kind, and return counts and failures."""
    good = make(kind, folder / f"good-{kind}")
    window = NamesWindow() if WINDOW in ways else None
    every = list(places(good, kind))
    some = chance.sample(every, max(1, round(share * len(every))))
    outcome: dict[str, Any] = {"kind": kind, "places": len(some), "names": len(NAMES), "written": 0, "refused_views": 0, "failures": []}
    try:
        for place in some:
            project, out = folder / "project", folder / "out"
            shutil.copytree(good.folder, project)
            out.mkdir()
            try:
                plant(Project.open(project), place)
                if EXPORTS in ways:
                    outcome["written"] += export_all(project, kind, out)
                if window is not None:
                    outcome["refused_views"] += window.use(project, kind)
            except Exception as error:
                outcome["failures"].append(f"{place.table}.{place.column}: {type(error).__name__}: {str(error)[:600]}")
            shutil.rmtree(project)
            shutil.rmtree(out)
    finally:
        if window is not None:
            window.close()
    return outcome


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--share", type=float, default=1.0, help="of the columns of text (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--window", action="store_const", dest="ways", const=(WINDOW,), help="show them in the window")
    how.add_argument("--both", action="store_const", dest="ways", const=(EXPORTS, WINDOW), help="write them, and show them")
    options = parser.parse_args()
    has_failed = False
    with tempfile.TemporaryDirectory(prefix="proteoscope-names-", dir=IN_MEMORY) as folder:
        for kind in options.kinds:
            outcome = run(kind, Path(folder), random.Random(f"{options.seed} {kind}"), options.share, options.ways or (EXPORTS,))
            print(json.dumps(outcome), flush=True)
            has_failed |= bool(outcome["failures"])
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
