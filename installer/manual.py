"""Build the manual as HTML that works offline, from `docs` and from the descriptions in the program.

    pip install -e '.[manual]'
    python -m installer.manual --out FOLDER            # FOLDER/index.html; search works from the disk
    python -m installer.manual --out FOLDER --pages    # only the pages as Markdown, without Sphinx

Pages of parameters, presets, columns, formats and commands are generated from the descriptions in the program, so that they are never out
of date. A broken link, or a page that is in no table of contents, makes the build fail.
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
    "Tutorial": ("installing", "first_search", "examples", "gallery"),
    "How-to guides": (
        "identification",
        "localisation",
        "modified",
        "clustering",
        "library_search",
        "quantification",
        "sequences",
        "structures",
        "reads",
        "evidence",
        "imported",
        "comparison",
        "files",
        "databases",
        "projects",
        "experiments",
        "gpu",
        "cluster",
        "pipelines",
        "from_python",
        "troubleshooting",
    ),
    "Reference": ("window", "command_line", "spectra", "stacks", "runs"),
    "Explanation": ("methods", "cost_model", "security"),
}
"""Pages of `docs` by part of the manual, in order; other pages follow the guides."""


def write_pages(folder: Path) -> list[str]:
    """Write every page as Markdown into a folder and return the names of the pages, the index first."""
    (folder / "reference").mkdir(parents=True)
    for page in DOCS.glob("*.md"):
        shutil.copy(page, folder / page.name)
    shutil.copytree(DOCS / "figures", folder / "figures")
    shutil.copytree(DOCS / "developers", folder / "developers")
    for name, source in (("contributing", "CONTRIBUTING.md"), ("changes", "CHANGELOG.md")):
        text = (REPOSITORY / source).read_text(encoding="utf-8")
        (folder / f"{name}.md").write_text(text.replace("(docs/", "("), encoding="utf-8")
    reference = {
        "commands": _commands(),
        "formats": _formats(),
        **{f"parameters_{search.kind}": _parameters(search) for search in SEARCHES},
        **{f"columns_{search.kind}": _columns(search) for search in SEARCHES if search.all_tables},
    }
    for name, lines in reference.items():
        (folder / "reference" / f"{name}.md").write_text("\n".join(lines) + "\n")
    parts = {part: [name for name in names if (DOCS / f"{name}.md").is_file()] for part, names in PARTS.items()}
    listed = {name for names in parts.values() for name in names}
    parts["How-to guides"] += sorted(page.stem for page in DOCS.glob("*.md") if page.stem not in listed)
    parts["Reference"] += [f"reference/{name}" for name in reference]
    parts["For developers"] = [
        "contributing",
        *(f"developers/{page.stem}" for page in sorted((folder / "developers").glob("*.md"))),
        "changes",
    ]
    (folder / "index.md").write_text("\n".join(_index(parts)) + "\n")
    return ["index", *(name for names in parts.values() for name in names)]


def build(out: Path) -> None:
    """Build the HTML and replace the output folder.

    Raises
    ------
    SystemExit
        If Sphinx is not installed or reports an error.
    """
    try:
        from sphinx.application import Sphinx
    except ImportError:
        sys.exit("Sphinx builds the manual and is not installed. In the source folder: pip install -e '.[manual]'")
    with tempfile.TemporaryDirectory(prefix="proteoscope-manual-") as work:
        pages, html = Path(work) / "pages", Path(work) / "html"
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
            str(html),
            str(Path(work) / "trees"),
            "html",
            confoverrides=settings,
            status=None,
            warningiserror=True,
            exception_on_warning=False,
        )
        app.build()
        if app.statuscode:
            sys.exit("The manual has errors. Correct them and build it again")
        shutil.rmtree(html / ".doctrees", ignore_errors=True)
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(html, out)


def _index(parts: dict[str, list[str]]) -> Iterator[str]:
    yield "# Proteoscope"
    yield ""
    yield "Proteoscope is a desktop program for protein evidence. It identifies peptides and proteins from tandem mass spectra,"
    yield "clusters spectra, quantifies proteins, searches sequences, structures and spectral libraries, aligns reads, and links"
    yield "results from spectrum to structure."
    yield ""
    yield "| question | command |"
    yield "|---|---|"
    for search in SEARCHES:
        yield f"| {_cell(search.question or search.purpose)} | [{search.kind}](reference/parameters_{search.kind}.md) |"
    for part, names in parts.items():
        yield ""
        yield f"```{{toctree}}\n:caption: {part}\n:maxdepth: 1\n"
        yield from names
        yield "```"


def _parameters(search: Search) -> Iterator[str]:
    yield f"# Parameters of {search.kind}"
    yield ""
    yield f"{search.purpose.rstrip('.')}. On the command line, `--set NAME=VALUE` sets one parameter and a preset sets many."
    names = preset_names(search.kind) if search.preset else []
    if names:
        yield "\n## Presets\n"
        yield from _rows(
            ("preset", "for"),
            ((f"`{name}`{' (default)' if name == search.preset else ''}", preset_description(search.kind, name)) for name in names),
        )
    groups: dict[str, list[ParameterDescription]] = {}
    for parameter in search.model.describe():
        groups.setdefault(parameter.group, []).append(parameter)
    for group, parameters in groups.items():
        yield f"\n## {group or 'Parameters'}\n"
        for parameter in parameters:
            yield f"### {parameter.title}\n"
            yield f"`{parameter.name}` · {_allowed_values(parameter)} · default `{_value(parameter.default)}`\n"
            yield f"{parameter.help}.\n" if parameter.help and not parameter.help.endswith((".", "?")) else f"{parameter.help}\n"


def _allowed_values(parameter: ParameterDescription) -> str:
    unit = f" {parameter.unit}" if parameter.unit else ""
    if parameter.choices:
        return f"one of {', '.join(f'`{choice}`' for choice in parameter.choices)}"
    kind = {
        "truth": "`true` or `false`",
        "integer": "a whole number",
        "number": "a number",
        "text": "a text",
        "list": "a list",
    }.get(parameter.kind, parameter.kind)
    if parameter.minimum is not None and parameter.maximum is not None:
        return f"{kind} from {parameter.minimum:g} to {parameter.maximum:g}{unit}"
    if parameter.minimum is not None:
        return f"{kind} from {parameter.minimum:g}{unit}"
    return f"{kind} to {parameter.maximum:g}{unit}" if parameter.maximum is not None else f"{kind}{unit}"


def _columns(search: Search) -> Iterator[str]:
    yield f"# Columns of {search.kind}"
    yield ""
    yield "The tables of a run are Parquet files in `results/RUN` of its project. The name is that of the column in the files,"
    yield "the title that in the window."
    seen = set[str]()
    for table in search.all_tables:
        if table.name not in seen:
            seen.add(table.name)
            yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    yield f"\n## {table.name}\n"
    yield from _rows(("name", "title", "type", "meaning"), (_column(column) for column in table.by_name.values()))


def _column(column: Column) -> tuple[str, str, str, str]:
    return f"`{column.name}`", column.header, f"`{column.type_name}`{', may be missing' if column.is_nullable else ''}", column.meaning


def _formats() -> Iterator[str]:
    yield "# Formats"
    yield ""
    yield "Input formats are recognised by content, not by name, and may be gzipped unless their page excludes it."
    by_content: dict[str, list[tuple[str, str, str]]] = {}
    for file_format in FORMATS:
        written = "yes" if file_format.writer else ""
        suffixes = " ".join(f"`{suffix}`" for suffix in file_format.suffixes)
        by_content.setdefault(file_format.content, []).append((file_format.name, suffixes, written))
    for content, rows in by_content.items():
        yield f"\n## {content.capitalize()}\n"
        yield from _rows(("format", "suffixes", "also written"), rows)
    yield "\n## Exports\n"
    yield from _rows(
        ("search", "format", "suffixes", "content"),
        (
            (f"`{search.kind}`", f"`{export.name}`", " ".join(f"`{ending}`" for ending in export.endings) or "a folder", export.title)
            for search in SEARCHES
            for export in search.exports
        ),
    )


def _commands() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "The output of `proteoscope COMMAND --help`."
    for name, parser in command_parsers().items():
        parser.formatter_class = _Wide
        yield f"\n## {name}\n\n```text\n{parser.format_help().rstrip()}\n```"


class _Wide(argparse.RawDescriptionHelpFormatter):
    """Help formatter with the width of a page, independent of the terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=110)


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """Return text as a table cell, with HTML escaped outside code spans."""
    parts = " ".join(text.replace("|", "\\|").split()).split("`")
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) if value not in ("", None) else "none"


def main(words: Sequence[str] | None = None) -> int:
    """Build the manual from command-line arguments and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True, help="output folder, which is replaced")
    parser.add_argument("--pages", action="store_true", help="write only the pages, as Markdown")
    arguments = parser.parse_args(words)
    # Garbage collection would take a third of the time without freeing much: the trees of all pages are needed until the end.
    gc.disable()
    if arguments.pages:
        if arguments.out.exists():
            shutil.rmtree(arguments.out)
        print(f"{len(write_pages(arguments.out))} pages in {arguments.out}")
    else:
        build(arguments.out)
        print(arguments.out / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
