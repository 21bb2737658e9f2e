"""Build the manual: HTML that needs no network, from `docs` and from what the program says of itself.

    pip install -e '.[manual]'
    python -m installer.manual --out FOLDER            # FOLDER/index.html; search works from the disk
    python -m installer.manual --out FOLDER --pages    # the pages as Markdown alone, without Sphinx

Pages of parameters, presets, columns, formats and commands are made from their one description each, so that they cannot be out of date. A
link that leads nowhere, and a page that no other leads to, end the build.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from proteoscope.engine.command_line.main import command_parsers
from proteoscope.engine.entry import Search
from proteoscope.engine.formats.registry import FORMATS
from proteoscope.engine.parameters import ParameterDescription, preset_description, preset_names
from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.searches import SEARCHES
from proteoscope.engine.version import VERSION

__all__ = ["PARTS", "build", "write_pages"]

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
PARTS: dict[str, tuple[str, ...]] = {
    "Begin": ("installing", "gpu", "first_search", "examples", "window", "troubleshooting"),
    "Searches": (
        "identification",
        "modified",
        "clustering",
        "sequences",
        "structures",
        "reads",
        "evidence",
        "imported",
        "comparison",
    ),
    "Files and projects": ("files", "databases", "stacks", "spectra", "runs", "projects"),
    "Machines": ("command_line", "cost_model", "cluster", "from_python"),
    "How it is done": ("methods", "security"),
}
"""Pages of `docs` by part of the manual, in their order; what is not named here comes behind the searches."""


def write_pages(folder: Path) -> list[str]:
    """Write every page as Markdown into a folder; their names, the first page among them."""
    (folder / "reference").mkdir(parents=True)
    for page in DOCS.glob("*.md"):
        shutil.copy(page, folder / page.name)
    shutil.copytree(DOCS / "figures", folder / "figures")
    shutil.copytree(DOCS / "developers", folder / "developers")
    for name, source in (("contributing", "CONTRIBUTING.md"), ("changes", "CHANGELOG.md")):
        text = (REPOSITORY / source).read_text(encoding="utf-8")
        (folder / f"{name}.md").write_text(text.replace("(docs/", "("), encoding="utf-8")
    made = {
        "commands": _commands(),
        "formats": _formats(),
        **{f"parameters_{one.kind}": _parameters(one) for one in SEARCHES},
        **{f"columns_{one.kind}": _columns(one) for one in SEARCHES if one.all_tables},
    }
    for name, lines in made.items():
        (folder / "reference" / f"{name}.md").write_text("\n".join(lines) + "\n")
    parts = {part: [name for name in names if (DOCS / f"{name}.md").is_file()] for part, names in PARTS.items()}
    told = {name for names in parts.values() for name in names}
    parts["Searches"] += sorted(page.stem for page in DOCS.glob("*.md") if page.stem not in told)
    parts["Reference"] = [f"reference/{name}" for name in made]
    parts["For developers"] = [
        "contributing",
        *(f"developers/{page.stem}" for page in sorted((folder / "developers").glob("*.md"))),
        "changes",
    ]
    (folder / "index.md").write_text("\n".join(_index(parts)) + "\n")
    return ["index", *(name for names in parts.values() for name in names)]


def build(out: Path) -> None:
    """Build the HTML into a folder that is made anew.

    Raises
    ------
    SystemExit : Sphinx is not installed, or found a fault, which it has printed.
    """
    try:
        from sphinx.application import Sphinx
    except ImportError:
        sys.exit("The manual is built by Sphinx: pip install 'proteoscope[manual]'")
    with tempfile.TemporaryDirectory(prefix="proteoscope-manual-") as work:
        pages, made = Path(work) / "pages", Path(work) / "html"
        write_pages(pages)
        settings = {
            "project": "Proteoscope",
            "release": VERSION,
            "extensions": ["myst_parser"],
            "html_theme": "furo",
            "myst_heading_anchors": 4,
            "html_copy_source": False,
            "html_show_sphinx": False,
            "html_show_copyright": False,
            "html_title": f"Proteoscope {VERSION}",
            "nitpicky": True,
            "source_suffix": {".md": "markdown"},
        }
        app = Sphinx(
            str(pages),
            None,
            str(made),
            str(Path(work) / "trees"),
            "html",
            confoverrides=settings,
            status=None,
            warningiserror=True,
            exception_on_warning=False,
        )
        app.build()
        if app.statuscode:
            sys.exit("The manual has faults")
        shutil.rmtree(made / ".doctrees", ignore_errors=True)
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(made, out)


def _index(parts: dict[str, list[str]]) -> Iterator[str]:
    yield "# Proteoscope"
    yield ""
    yield "Identify peptides and proteins from tandem mass spectra, group spectra and explain the unidentified; find the proteins that"
    yield "resemble a sequence or a fold; find the places of reads in genomes; and see all of it linked."
    yield ""
    yield "| what do you want to know? | command |"
    yield "|---|---|"
    for one in SEARCHES:
        yield f"| {_cell(one.question or one.purpose)} | [{one.kind}](reference/parameters_{one.kind}.md) |"
    for part, names in parts.items():
        yield ""
        yield f"```{{toctree}}\n:caption: {part}\n:maxdepth: 1\n"
        yield from names
        yield "```"


def _parameters(search: Search) -> Iterator[str]:
    yield f"# Parameters of {search.kind}"
    yield ""
    yield f"{search.purpose.rstrip('.')}. On the command line `--set NAME=VALUE` sets each of them; a preset sets many."
    names = preset_names(search.kind) if search.preset else []
    if names:
        yield "\n## Presets\n"
        yield from _rows(
            ("preset", "for"),
            ((f"`{name}`{' (usual)' if name == search.preset else ''}", preset_description(search.kind, name)) for name in names),
        )
    groups: dict[str, list[ParameterDescription]] = {}
    for one in search.model.describe():
        groups.setdefault(one.group, []).append(one)
    for group, some in groups.items():
        yield f"\n## {group or 'Parameters'}\n"
        for one in some:
            yield f"### {one.title}\n"
            yield f"`{one.name}` · {_allowed(one)} · default `{_value(one.default)}`\n"
            yield f"{one.help}.\n" if one.help and not one.help.endswith((".", "?")) else f"{one.help}\n"


def _allowed(one: ParameterDescription) -> str:
    unit = f" {one.unit}" if one.unit else ""
    if one.choices:
        return f"one of {', '.join(f'`{choice}`' for choice in one.choices)}"
    kind = {"truth": "`true` or `false`", "integer": "a whole number", "number": "a number", "text": "a text", "list": "a list"}.get(
        one.kind, one.kind
    )
    if one.minimum is not None and one.maximum is not None:
        return f"{kind} from {one.minimum:g} to {one.maximum:g}{unit}"
    if one.minimum is not None:
        return f"{kind} from {one.minimum:g}{unit}"
    return f"{kind} to {one.maximum:g}{unit}" if one.maximum is not None else f"{kind}{unit}"


def _columns(search: Search) -> Iterator[str]:
    yield f"# Columns of {search.kind}"
    yield ""
    yield "The tables of a run lie in `results/RUN` of its project as Parquet. Names are those of the files; a title is the header in the"
    yield "window."
    seen = set[str]()
    for table in search.all_tables:
        if table.name not in seen:
            seen.add(table.name)
            yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield f"\n## {table.name}\n"
    yield from _rows(("name", "title", "type", "what it holds"), (_column(one) for one in table.by_name.values()))


def _column(one: Column) -> tuple[str, str, str, str]:
    return f"`{one.name}`", one.header, f"`{one.type_name}`{', may be missing' if one.is_nullable else ''}", one.meaning


def _formats() -> Iterator[str]:
    yield "# Formats"
    yield ""
    yield "What the program reads, recognised by content and not by name. All of them may be gzipped unless their page says otherwise."
    by_sort: dict[str, list[tuple[str, str, str]]] = {}
    for one in FORMATS:
        written = "yes" if one.writer else ""
        by_sort.setdefault(one.sort, []).append((one.name, " ".join(f"`{suffix}`" for suffix in one.suffixes), written))
    for sort, rows in by_sort.items():
        yield f"\n## {sort.capitalize()}\n"
        yield from _rows(("format", "endings", "written too"), rows)
    yield "\n## Written as exports\n"
    yield from _rows(
        ("search", "format", "endings", "what it is"),
        (
            (f"`{search.kind}`", f"`{one.name}`", " ".join(f"`{ending}`" for ending in one.endings) or "a folder", one.title)
            for search in SEARCHES
            for one in search.exports
        ),
    )


def _commands() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "What `proteoscope COMMAND --help` prints."
    for name, parser in command_parsers().items():
        parser.formatter_class = _Wide
        yield f"\n## {name}\n\n```text\n{parser.format_help().rstrip()}\n```"


class _Wide(argparse.RawDescriptionHelpFormatter):
    """Help as wide as a page, whatever terminal the build runs in."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=110)


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """A text as a cell; marks of HTML are none outside of code."""
    parts = " ".join(text.replace("|", "\\|").split()).split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) if value not in ("", None) else "none"


def main(words: Sequence[str] | None = None) -> int:
    """Build it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder, which is made anew")
    parser.add_argument("--pages", action="store_true", help="write the pages as Markdown alone")
    asked = parser.parse_args(words)
    # A third of the time would go into looks for garbage among the trees of all pages, which stay to the end.
    gc.disable()
    if asked.pages:
        if asked.out.exists():
            shutil.rmtree(asked.out)
        print(f"{len(write_pages(asked.out))} pages in {asked.out}")
    else:
        build(asked.out)
        print(asked.out / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
