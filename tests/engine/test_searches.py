"""Properties of every search in the list."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from proteoscope import resources
from proteoscope.engine.cached_files import index_kinds
from proteoscope.engine.command_line.main import main
from proteoscope.engine.execution.kinds import KINDS, workload_type
from proteoscope.engine.execution.workload import Workload
from proteoscope.engine.parameters import preset_names, read_preset
from proteoscope.engine.results.columns import Column
from proteoscope.engine.searches import SEARCHES, search_of_kind
from proteoscope.engine.sequences.database import _NAME as _NAME_OF_SEQUENCES
from proteoscope.engine.structure_search.structures import _NAME as _NAME_OF_STRUCTURES
from tests.forked_scripts import fork_server

each = pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search.kind)


def test_search_kinds_names_and_subcommands_are_distinct():
    for names in ([search.kind for search in SEARCHES], [search.name for search in SEARCHES]):
        assert len(set(names)) == len(names)


def test_search_list_imports_no_computing_modules():
    heavy = ("numpy", "numba", "pydantic", "duckdb", "pyarrow", "PySide6", "cupy")
    code = f"import proteoscope.engine.searches, sys; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=resources.path().parent)
    assert done.stdout.strip() == "[]"


@each
def test_search_presets_are_valid_and_the_default_exists(search):
    names = preset_names(search.kind)
    assert search.preset in names
    for name in names:
        search.model.checked(read_preset(search.kind, name))


@each
def test_every_search_parameter_has_help(search):
    for parameter in search.model.describe():
        assert parameter.title and parameter.help.endswith(".") and parameter.group, parameter.name
    assert {*search.shortcuts} <= {parameter.name for parameter in search.model.describe()}


@each
def test_search_tables_and_columns_have_distinct_names_and_help(search):
    tables = search.result_tables
    assert len({table.name for table in tables}) == len(tables)
    for table in tables:
        assert len({column.name for column in table.columns}) == len(table.columns)
        for column in table.columns:
            assert isinstance(column, Column) and column.title and column.meaning, column.name


@each
def test_export_formats_have_distinct_names_and_suffixes(search):
    assert len({export.name for export in search.exports}) == len(search.exports)
    endings = [ending for export in search.exports for ending in export.endings]
    assert len(set(endings)) == len(endings)


@each
def test_export_format_follows_the_suffix_or_is_the_first(search):
    for export in search.exports:
        assert all(search.format_of(f"folder.{export.name}/FILE{ending.upper()}") == export.name for ending in export.endings)
    assert search.format_of("-") == search.format_of("file.of_another_kind") == search.exports[0].name


@each
def test_workload_types_of_searches_are_registered(search):
    for name, load in search.workload_types:
        assert KINDS[name] is load
        kind = workload_type(Workload(name, {}, {}))
        assert type(kind) is load()
        assert all(callable(getattr(kind, method)) for method in ("costs", "open", "empty", "merge")) and kind.parts_of_worker >= 0


def test_all_workload_types_and_indexes_belong_to_searches():
    texts = [path.read_text(encoding="utf-8") for path in resources.path().parent.joinpath("engine").rglob("*.py")]
    placed = {load().__qualname__ for search in SEARCHES for _, load in search.workload_types}
    kinds = re.compile(r"^class ([A-Z]\w+)\((?:PredictableWorkloadType|_Kind)\):", re.MULTILINE)
    assert {name for text in texts for name in kinds.findall(text)} == placed
    cached = {name for text in texts for name in re.findall(r'index_store\("(\w+)"\)', text)} | {_NAME_OF_SEQUENCES, _NAME_OF_STRUCTURES}
    assert cached == {kind.name for search in SEARCHES for kind in search.keeps} == set(index_kinds())


@pytest.fixture(scope="module")
def python_with_libraries(tmp_path_factory):
    """Process that has imported other libraries but no module of the program, and forks scripts."""
    with fork_server(tmp_path_factory.mktemp("scripts"), "numba", "pyarrow", "pydantic", "scipy.stats") as server:
        yield server


@pytest.mark.parametrize(
    "folder", sorted({load.__module__.split(".")[2] for search in SEARCHES for _, load in search.workload_types} - {"matches"})
)
def test_search_folder_registers_its_workload_types(python_with_libraries, folder):
    code = (
        f"import proteoscope.engine.{folder}.search, sys; from proteoscope.engine.execution.kinds import KINDS; "
        "print('proteoscope.engine.searches' in sys.modules, *KINDS)"
    )
    loaded, *others = python_with_libraries.run(code).split()
    allowed = {
        name for search in SEARCHES if search.run.__module__ == f"proteoscope.engine.{folder}.entry" for name, _ in search.workload_types
    }
    assert loaded == "False" and allowed and allowed <= set(others)


@each
def test_search_help_names_every_option(search, capsys):
    assert main([search.kind, "--help"]) == 0
    text = capsys.readouterr().out
    for flag in ("--preset", "--set", "--device", "--threads", "--json", "--quiet", "--out", *(option.flag for option in search.options)):
        assert flag in text
    assert search_of_kind(search.kind) is search


@each
def test_fragment_tolerance_option_accompanies_precursor_option(search):
    if "precursor_tolerance" in search.shortcuts:
        assert ("fragment_tolerance" in search.model.model_fields) == ("fragment_tolerance" in search.shortcuts)
