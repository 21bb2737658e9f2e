"""The pages "Worked examples" and "Gallery": commands print the output on the page, and code writes the figures of the manual.

`python -m tests.test_worked_examples` writes the figures of the gallery.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.searches import SEARCHES
from tests.conftest import leave_advice_out
from tests.test_from_python import code_of

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "examples.md"
GALLERY = REPOSITORY / "docs" / "gallery.md"
FIGURES = REPOSITORY / "docs" / "figures" / "gallery"
PROMPT = "$ proteoscope "


def examples(page: str) -> list[tuple[str, list[str]]]:
    """Return each command of the page without the program's name, with the lines below it."""
    examples: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith(PROMPT):
                examples.append((line.removeprefix(PROMPT), []))
            else:
                examples[-1][1].append(line)
    return examples


def run_examples(folder: Path) -> None:
    """Run all commands in a folder and check that their output has the lines of the page, in this order."""
    with contextlib.chdir(folder):
        for command, expected in examples(PAGE.read_text(encoding="utf-8")):
            out, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                code = main(shlex.split(command))
            assert code == 0, errors.getvalue()
            printed, place = out.getvalue().splitlines(), 0
            for line in expected:
                place_of = [n for n in range(place, len(printed)) if printed[n] == line]
                assert place_of, f"{command}: not among the lines from {place + 1} on: {line!r}\n{out.getvalue()}"
                place = place_of[0] + 1


def draw_gallery(folder: Path) -> list[Path]:
    """Run the code of the gallery in the folder of the worked examples, and return the written figures."""
    before = set(folder.iterdir())
    with contextlib.chdir(folder):
        exec(compile(code_of(GALLERY.read_text(encoding="utf-8")), str(GALLERY), "exec"), {})
    return sorted(set(folder.iterdir()) - before)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder in which the commands of the page were run."""
    folder = tmp_path_factory.mktemp("worked")
    with pytest.MonkeyPatch.context() as monkeypatch:
        leave_advice_out(monkeypatch)  # the advice is printed to standard error
        run_examples(folder)
        yield folder


def test_worked_example_commands_print_the_output_on_the_page(worked: Path) -> None:
    # The text between the commands describes the written files.
    hits = _table(worked / "hits.tsv")[0]
    assert hits["subject"] == "P02769|ALBU_BOVIN" and round(100 * float(hits["identity"])) == 76 and hits["alignment_length"] == "578"
    folds = {row["target"][-1]: row for row in _table(worked / "folds.tsv")}
    assert [f"{float(folds[chain]['tm_score_query']):.2f}" for chain in "KJI"] == ["1.00", "0.70", "0.68"]
    assert {round(100 * float(folds[chain]["identity"])) for chain in "JI"} == {13, 18}
    assert f"{100 * float(folds['C']['same_fold_probability']):.1f}" == "0.4"
    amounts = {row["accession"]: float(row["quantity"]) for row in _table(worked / "amounts.tsv") if row["sample"] == "BSA1"}
    assert round(amounts["P02769|ALBU_BOVIN"] / amounts["P00761|TRYP_PIG"]) == 52


def test_gallery_code_writes_the_figures_of_the_manual(worked: Path) -> None:
    drawn = draw_gallery(worked)
    page = GALLERY.read_text(encoding="utf-8")
    assert [path.name for path in drawn] == sorted(re.findall(r"\(figures/gallery/([\w.-]+)\)", page))
    assert [path.name for path in drawn] == sorted(path.name for path in FIGURES.iterdir())
    differing = [path.name for path in drawn if path.suffix == ".svg" and path.read_bytes() != (FIGURES / path.name).read_bytes()]
    assert not differing, "look at them, then write them: python -m tests.test_worked_examples"


def test_every_kind_of_search_has_a_worked_example() -> None:
    kinds = {command.split()[0] for command, _ in examples(PAGE.read_text(encoding="utf-8"))}
    assert kinds >= {search.kind for search in SEARCHES}


def test_check_of_worked_examples_detects_a_missing_output_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ proteoscope samples copied\nno file in copied\n```\n", encoding="utf-8")
    monkeypatch.setattr("tests.test_worked_examples.PAGE", page)
    with pytest.raises(AssertionError, match="no file in copied"):
        run_examples(tmp_path)


def _table(path: Path) -> list[dict[str, str]]:
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        run_examples(Path(name))
        FIGURES.mkdir(exist_ok=True)
        for path in draw_gallery(Path(name)):
            (FIGURES / path.name).write_bytes(path.read_bytes())
