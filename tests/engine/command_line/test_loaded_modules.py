"""Commands load only the modules that they use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.structures.examples import as_pdb, atoms_of, helix
from tests.searching import few_proteins

REPOSITORY = Path(__file__).resolve().parents[3]
SAMPLES = REPOSITORY / "resources" / "samples"
SPECTRA = SAMPLES / "BSA1.mzML.gz"
HEAVY = (
    "numpy",
    "numba",
    "scipy.linalg",
    "sklearn",
    "pydantic",
    "pyarrow",
    "pyarrow.parquet",
    "pyarrow.dataset",
    "pyarrow._s3fs",
    "yaml",
    "dateutil",
    "duckdb",
    "gemmi",
    "lxml",
    "numba.np.arrayobj",
    "pydoc",
    "proteoscope.engine.execution.cluster.requests",
    "pyteomics",
    "Bio",
    "Bio.Align",
    "msgpack",
    "pandas",
    "cupy",
    "PIL",
    "PySide6",
    "pyqtgraph",
    "proteoscope.gui.window",
)
MODELS = ("identification", "sequence_search", "structure_search", "clustering", "modified_search", "read_alignment")
COMPUTING = {"numpy", "numba", "pydantic", "pyarrow"}
TABLES = COMPUTING | {"pyarrow.parquet"}

PROGRAM = f"""
import json, sys
from proteoscope.engine.execution.libraries import lighten_libraries
lighten_libraries()
from proteoscope.gui.launch import main
status = main(json.loads(sys.argv[1]))
models = [name for name in {MODELS} if f"proteoscope.engine.{{name}}.parameters" in sys.modules]
print(json.dumps([status, [name for name in {HEAVY} if name in sys.modules], models]), file=sys.stderr)
"""


def loaded(*arguments: str) -> tuple[set[str], set[str]]:
    """Return the heavy libraries loaded by a command, and the searches whose parameters it loaded."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")} | {"PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", PROGRAM, json.dumps(arguments)]
    done = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    status, libraries, models = json.loads(done.stderr.splitlines()[-1])
    assert status == 0, done.stderr
    return set(libraries), set(models)


def search(*arguments: object) -> tuple[set[str], set[str]]:
    """Return the modules loaded by a search on the CPU."""
    return loaded(*map(str, arguments), "--quiet", "--device", "cpu", "--threads", "2")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project with an identification, and the modules that the search loaded."""
    folder = tmp_path_factory.mktemp("loaded") / "project"
    return folder, search("identify", SPECTRA, "--database", few_proteins(folder.parent), "--preset", "low-resolution", "--out", folder)


@pytest.fixture
def sequences(tmp_path):
    path = tmp_path / "sequences.fasta"
    path.write_text(">one\nACDACGTACGTTTGACCAGTA\n>two\nACGTACGTTTGACCAGTAGGA\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "libraries", "models"),
    [
        (["--help"], set(), set()),
        (["--version"], set(), set()),
        (["presets", "align"], {"pydantic"}, set()),
        (["parameters", "align"], {"pydantic"}, {"sequence_search"}),
        (["parameters", "cluster"], {"pydantic"}, {"clustering"}),
        (["parameters", "reads"], {"pydantic"}, {"read_alignment"}),
        (["parameters", "structures"], {"pydantic"}, {"structure_search"}),
        (["parameters", "identify"], {"pydantic"}, {"identification"}),
        (["parameters", "modified"], {"pydantic"}, {"modified_search"}),
        (["align", "--help"], {"pydantic"}, {"sequence_search"}),
        (["reads", "--help"], {"pydantic"}, {"read_alignment"}),
        (["identify", "--help"], set(), set()),
        (["convert", "--help"], set(), set()),
    ],
    ids=lambda value: " ".join(sorted(value)) if isinstance(value, set) else " ".join(value),
)
def test_help_and_parameters_load_no_computing_modules(arguments, libraries, models):
    assert loaded(*arguments) == (libraries, models)


def test_align_loads_no_modules_of_other_searches(sequences, tmp_path):
    assert search("align", sequences, sequences, "--out", tmp_path / "hits.tsv") == (COMPUTING, {"sequence_search"})
    recorded = search("align", sequences, sequences, "--out", tmp_path / "hits.tsv", "--project", tmp_path / "project")
    assert recorded == (TABLES, {"sequence_search"})


def test_reads_loads_no_modules_of_other_searches(sequences, tmp_path):
    assert search("reads", sequences, sequences, "--mode", "prefix", "--out", tmp_path / "reads.sam") == (COMPUTING, {"read_alignment"})


def test_structures_loads_no_modules_of_other_searches(tmp_path):
    chain = tmp_path / "chain.pdb"
    chain.write_bytes(as_pdb(atoms_of(helix(60))))
    modules = search("structures", chain, "--database", chain, "--out", tmp_path / "hits.tsv")
    assert modules == (COMPUTING | {"gemmi"}, {"structure_search"})


def test_convert_loads_no_modules_of_searches(tmp_path):
    for name in ("out.mgf", "out.mzML"):
        assert loaded("convert", str(SPECTRA), "--out", str(tmp_path / name), "--quiet")[0] <= COMPUTING - {"pydantic"}


def test_cluster_loads_no_modules_of_other_searches(tmp_path):
    assert search("cluster", SPECTRA, "--out", tmp_path / "project") == (TABLES, {"clustering"})


def test_commands_import_no_modules_of_other_commands(project, tmp_path):
    folder, loaded_by_identify = project
    assert loaded_by_identify == (TABLES, {"identification"})
    # The recorded parameters of the source run are checked by its model.
    assert search("explain", folder, "--out", tmp_path / "explained.tsv") == (TABLES, {"clustering", "identification"})
    libraries, models = search("modified", "--from-project", folder, "--preset", "standard", "--out", folder)
    assert (libraries, models) == (TABLES, {"modified_search", "identification"})
    libraries, models = loaded("export", str(folder), "--format", "tsv", "--out", str(tmp_path / "exported"))
    assert libraries == TABLES
    compared, models = loaded("compare", str(folder), "--out", str(tmp_path / "compared"))
    assert compared - {"gemmi"} <= TABLES | {"duckdb"}


def test_command_line_limits_numpy_to_one_thread():
    code = (
        "from proteoscope.engine.execution.libraries import lighten_libraries; lighten_libraries(); import numpy\n"
        "from threadpoolctl import threadpool_info; print([library['num_threads'] for library in threadpool_info()])"
    )
    environment = {name: value for name, value in os.environ.items() if "_NUM_THREADS" not in name} | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)) == {1}


@pytest.mark.parametrize("has_settings", [False, True])
def test_numba_import_loads_neither_scipy_nor_unneeded_yaml(has_settings, tmp_path):
    if has_settings:
        (tmp_path / ".numba_config.yaml").write_text("boundscheck: 1\n")
    code = (
        "from proteoscope.engine.execution.libraries import lighten_libraries; lighten_libraries(); import sys, numba\n"
        "loaded = [name in sys.modules for name in ('scipy', 'yaml')]; import scipy, yaml; print(*loaded, numba.config.BOUNDSCHECK)"
    )
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == (["False", "True", "1"] if has_settings else ["False", "False", "None"])
