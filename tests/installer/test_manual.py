"""Tests of the manual: complete contents, descriptions from the program, and no broken link."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from installer.manual import DOCS, write_pages
from proteoscope.engine.searches import SEARCHES

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Text of each page by name."""
    folder = tmp_path_factory.mktemp("manual") / "pages"
    return {name: (folder / f"{name}.md").read_text() for name in write_pages(folder)}


def test_manual_contents_list_every_page_once(pages: dict[str, str]) -> None:
    assert {page.stem for page in DOCS.glob("*.md")} <= set(pages)
    assert {f"developers/{page.stem}" for page in (DOCS / "developers").glob("*.md")} <= set(pages)
    contents = pages["index"].splitlines()
    assert all(contents.count(name) == 1 for name in pages if name != "index")


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)
def test_manual_reference_describes_every_parameter_and_column(pages: dict[str, str], search) -> None:
    parameters = pages[f"reference/parameters_{search.kind}"]
    for parameter in search.model.describe():
        assert f"\n### {parameter.title}\n\n`{parameter.name}` · " in parameters and parameter.help.rstrip(".") in parameters
    columns = pages[f"reference/columns_{search.kind}"]
    for table in search.all_tables:
        assert f"\n## {table.name}\n" in columns
        assert all(f"| `{name}` | " in columns for name in table.by_name)


def test_manual_reference_has_every_command(pages: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "proteoscope.engine.command_line", "--help"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    names = re.findall(r"^    (\w[\w-]*)(?:  |$)", done.stdout, re.MULTILINE)
    assert len(names) > 20
    assert [name for name in names if name != "COMMAND" and f"\n## {name}\n" not in pages["reference/commands"]] == []


def test_manual_figures_are_all_shown_and_below_1_5_mb_together() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in [*DOCS.glob("*.md"), REPOSITORY / "README.md"])
    figures = [path for path in (DOCS / "figures").rglob("*") if path.is_file()]
    assert len(figures) >= 20
    assert [figure.name for figure in figures if f"({figure.relative_to(DOCS).as_posix()})" not in texts] == []
    assert sum(figure.stat().st_size for figure in figures) < 1_500_000


def test_links_in_readme_lead_to_existing_files() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert len(links) > 5 and [link for link in links if not (REPOSITORY / link).exists()] == []


def test_sphinx_builds_manual_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    command = [sys.executable, "-m", "installer.manual", "--out", str(tmp_path / "html")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "html" / "reference" / "parameters_identify.html").read_text()
    assert "Maximum missed cleavages" in page and (tmp_path / "html" / "searchindex.js").is_file()
    examples = (tmp_path / "html" / "examples.html").read_text()
    shown = re.findall(r'<img alt="[^"]+" src="([^"]+)"', examples)
    assert len(shown) > 5 and all((tmp_path / "html" / name).is_file() for name in shown)


def test_manual_build_fails_for_a_broken_link(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    (tmp_path / "docs" / "developers").mkdir()
    (tmp_path / "docs" / "files.md").write_text("# Spectrum files\n\n[nowhere](nothing.md)\n")
    script = (
        "import sys; from pathlib import Path; from installer import manual; "
        "manual.DOCS, manual.SEARCHES, manual.command_parsers = Path(sys.argv[1]) / 'docs', manual.SEARCHES[:1], dict; "
        "sys.exit(manual.main(['--out', sys.argv[1] + '/html']))"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "nothing.md" in done.stderr and not (tmp_path / "html").exists()
