"""The page of the manual "Worked examples": its commands run in order and print the output on the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.searches import SEARCHES
from tests.conftest import leave_advice_out

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "examples.md"
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


def run_examples(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Run all commands in a folder and check that their output has the lines of the page, in this order."""
    monkeypatch.chdir(folder)
    for command, expected in examples(PAGE.read_text(encoding="utf-8")):
        assert main(shlex.split(command)) == 0, capsys.readouterr().err
        printed = capsys.readouterr().out.splitlines()
        place = 0
        for line in expected:
            assert line in printed[place:], f"{command}: not among what is printed from line {place + 1} on: {line!r}\n" + "\n".join(
                printed
            )
            place = printed.index(line, place) + 1


def test_worked_example_commands_print_the_output_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_advice_out(monkeypatch)  # which is printed on the other stream
    run_examples(tmp_path, monkeypatch, capsys)
    # The text between the commands describes the written files.
    hits = _table(tmp_path / "hits.tsv")[0]
    assert hits["subject"] == "P02769|ALBU_BOVIN" and round(100 * float(hits["identity"])) == 76 and hits["alignment_length"] == "578"
    folds = {row["target"][-1]: row for row in _table(tmp_path / "folds.tsv")}
    assert [f"{float(folds[chain]['tm_score_query']):.2f}" for chain in "KJI"] == ["1.00", "0.70", "0.67"]
    assert {round(100 * float(folds[chain]["identity"])) for chain in "JI"} == {15, 18}
    assert f"{100 * float(folds['C']['same_fold_probability']):.1f}" == "0.2"
    amounts = {row["accession"]: float(row["quantity"]) for row in _table(tmp_path / "amounts.tsv") if row["sample"] == "BSA1"}
    assert round(amounts["P02769|ALBU_BOVIN"] / amounts["P00761|TRYP_PIG"]) == 52


def test_every_kind_of_search_has_a_worked_example() -> None:
    kinds = {command.split()[0] for command, _ in examples(PAGE.read_text(encoding="utf-8"))}
    assert kinds >= {search.kind for search in SEARCHES}


def test_check_of_worked_examples_detects_a_missing_output_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ proteoscope samples copied\nno file in copied\n```\n", encoding="utf-8")
    monkeypatch.setattr("tests.test_worked_examples.PAGE", page)
    with pytest.raises(AssertionError, match="no file in copied"):
        run_examples(tmp_path, monkeypatch, capsys)


def _table(path: Path) -> list[dict[str, str]]:
    lines = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
