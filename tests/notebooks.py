"""Run the cells of a Jupyter notebook in this process, and print their outputs as JSON or write them into the notebook.

    python tests/notebooks.py docs/notebooks/albumin.ipynb [--write]

The program needs no Jupyter to test its notebook: an output is what a cell prints, and the text, HTML and SVG of its last expression.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

FORMS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def run_notebook(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the outputs of each code cell."""
    space: dict[str, Any] = {"__name__": "__main__"}
    return [run_cell("".join(cell["source"]), number, space) for number, cell in enumerate(code_cells(notebook), 1)]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells with code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, number: int, space: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell and return its outputs in the format of notebooks."""
    tree, outputs, printed, shown = ast.parse(source), [], io.StringIO(), None
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), space)
        if last is not None:
            shown = eval(compile(last, f"cell {number}", "eval"), space)
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if shown is not None:
        forms = {"text/plain": repr(shown)} | {form: getattr(shown, name)() for form, name in FORMS.items() if hasattr(shown, name)}
        data = {form: text.splitlines(keepends=True) for form, text in forms.items()}
        outputs.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return outputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    notebook = json.loads(options.notebook.read_text(encoding="utf-8"))
    outputs = run_notebook(notebook)
    if not options.write:
        print(json.dumps(outputs))
        return
    for number, (cell, made) in enumerate(zip(code_cells(notebook), outputs, strict=True), 1):
        cell["outputs"], cell["execution_count"] = made, number
    options.notebook.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
