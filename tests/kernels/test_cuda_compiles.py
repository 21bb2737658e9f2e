"""Every CUDA source compiles for every architecture that is supported, with NVRTC and without a GPU."""

from __future__ import annotations

import ctypes
import sysconfig
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from proteoscope.kernels.cuda import probe
from proteoscope.kernels.cuda.alignment_plan import HALF_PRECISION, SIXTEEN_BITS, THIRTY_TWO_BITS
from proteoscope.kernels.cuda.compiled import COMPILER_OPTIONS, header_options, source
from proteoscope.kernels.cuda.gapsmis_plan import EIGHT, FOUR, NARROW, WIDE
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, GapRules
from tests.shim.alignment_inputs import N_CODES, random_sequences, search_with
from tests.shim.read_inputs import aligned
from tests.shim.shim_gpu import ShimGpu

ARCHITECTURES = ("75", "80", "86", "89", "90", "100", "120")
SOURCES = sorted(entry.name for entry in files("proteoscope.kernels.cuda").iterdir() if entry.name.endswith(".cu"))


def _libraries() -> list[Path]:
    """NVRTC of the packages nvidia-cuda-nvrtc (CUDA 13) and nvidia-cuda-nvrtc-cu12, where they are installed."""
    places = Path(sysconfig.get_paths()["purelib"], "nvidia").glob("*/lib/libnvrtc.so.*")
    libraries = (path for path in places if path.suffix[1:].isdigit() and ".alt." not in path.name)
    return sorted(libraries, key=lambda path: int(path.suffix[1:]))


LIBRARIES = _libraries()
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="NVRTC is not installed (nvidia-cuda-nvrtc, of the extra 'dev')")
every_library = pytest.mark.parametrize("library", LIBRARIES or [Path()], ids=lambda path: path.name)
OLDEST, FIRST_OF_HALF_PRECISION, NEWEST = "75", "80", "120"
KINDS = (OLDEST, FIRST_OF_HALF_PRECISION, NEWEST)
"""An architecture for each number type of alignment.cu, including the oldest and the newest."""


def _depends_on_architecture(name: str) -> bool:
    """Return True if a source is a different program on other architectures."""
    return "__CUDA_ARCH__" in source(name)


# Other sources are a single program for all architectures, and newer ones accept what the oldest accepts: they are for --all.
every_source_and_architecture = pytest.mark.parametrize(
    ("name", "architecture"),
    [
        pytest.param(name, architecture, marks=() if architecture == OLDEST or _depends_on_architecture(name) else pytest.mark.long)
        for name in SOURCES
        for architecture in ARCHITECTURES
    ],
)
# Architectures between these have the forms of the next older or newer one: --all compiles them for all.
every_architecture = pytest.mark.parametrize(
    "architecture", [pytest.param(name, marks=() if name in KINDS else pytest.mark.long) for name in ARCHITECTURES]
)


@cache
def fastest_option(path: Path) -> str:
    """Return the option of the fastest compilation: optimising takes long and does not depend on the architecture."""
    library, program, option = ctypes.CDLL(str(path)), ctypes.c_void_p(), b"--Ofast-compile=max"
    assert library.nvrtcCreateProgram(ctypes.byref(program), b"", b"nothing.cu", 0, None, None) == 0
    is_accepted = library.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(option)) == 0
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return option.decode() if is_accepted else "--device-debug"


def compile_for(path: Path, text: str, architecture: str, defines: tuple[str, ...] = (), *, is_fast: bool = False) -> None:
    """Compile a source; raise AssertionError with the compiler's log after an error or a warning.

    With `is_fast`, the code is optimised as for a GPU, otherwise compiled as fast as possible.
    """
    library, program, size = ctypes.CDLL(str(path)), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
    options = [
        option.encode()
        for option in (
            *COMPILER_OPTIONS,
            *header_options(),
            *(f"-D{define}" for define in defines),
            *(() if is_fast else (fastest_option(path),)),
            f"--gpu-architecture=sm_{architecture}",
        )
    ]
    code = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert code == 0 and "warning" not in log.value.decode(), log.value.decode()
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    assert size.value > 0
    library.nvrtcDestroyProgram(ctypes.byref(program))


class NotingGpu(ShimGpu):
    """GPU that runs nothing; `defines` lists the variants that would be compiled."""

    def __init__(self, capability: int) -> None:
        super().__init__()
        self.capability = capability

    def launch(self, *_: object, defines: tuple[str, ...] = (), **__: object) -> None:
        self.defines.append(defines)


def forms_of_alignment(architecture: str) -> set[tuple[str, ...]]:
    """Return the macros of alignment.cu for an architecture.

    They are for the smallest and largest strips of a warp, and for several warps, with one query and with two, in all number types.
    """
    subjects, scores, forms = random_sequences(np.random.default_rng(1), [3, 5]), np.eye(N_CODES, dtype=np.int64), set()
    for numbers in (None, THIRTY_TWO_BITS):
        for shape in ((2, 16), (8, 72), (128, 4)):
            for n_queries in (1, 2):
                gpu = NotingGpu(int(architecture))
                queries, out = random_sequences(np.random.default_rng(2), [7] * n_queries), np.zeros((n_queries, 2), np.int32)
                list(search_with(gpu, subjects, numbers=numbers, shape=shape).score(queries, scores, 11, 1, out))
                forms |= {defines for defines in gpu.defines if defines}
    return forms


@every_source_and_architecture
def test_cuda_source_compiles_for_each_architecture(name: str, architecture: str) -> None:
    compile_for(LIBRARIES[-1], source(name), architecture)


# Sources with instructions of some architectures, and all others with --all.
@pytest.mark.parametrize("architecture", [OLDEST, pytest.param(NEWEST, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if _depends_on_architecture(name) else pytest.mark.long) for name in SOURCES])
def test_cuda_source_compiles_with_optimisation(name: str, architecture: str) -> None:
    compile_for(LIBRARIES[-1], source(name), architecture, is_fast=True)


@every_architecture
def test_sequence_alignment_kernels_compile_for_each_macro_set(architecture: str) -> None:
    forms = forms_of_alignment(architecture)
    numbers = {"7": THIRTY_TWO_BITS, "8": HALF_PRECISION}.get(architecture[0], SIXTEEN_BITS)
    for wanted in ({f"NUMBERS={numbers}"}, {f"NUMBERS={THIRTY_TWO_BITS}"}, {"SUBJECTS=1", "COLUMNS=72"}):
        assert any(wanted <= set(form) for form in forms)
    assert any("SUBJECTS=2" in form for form in forms) == (numbers != THIRTY_TWO_BITS)
    for form in forms:
        # Forms with numbers of 32 bits are the same program on all architectures: the oldest compiles them.
        if numbers == THIRTY_TWO_BITS or f"NUMBERS={THIRTY_TWO_BITS}" not in form:
            compile_for(LIBRARIES[-1], source("alignment.cu"), architecture, form)


def forms_of_reads(architecture: str) -> set[tuple[str, ...]]:
    """Return the macros of gapsmis.cu for an architecture: each mode, with and without directions, for alphabets of several sizes."""
    forms = set()
    for mode, n_symbols, seed, is_published in ((PREFIX, 4, 0, False), (WITHIN, 6, 2, False), (LOCAL, 20, 0, False), (PREFIX, 4, 0, True)):
        matrix = np.where(np.eye(n_symbols, dtype=bool), 2, -3).astype(np.int32)
        texts = [np.arange(n_symbols).repeat(4)] * 8
        gpu = NotingGpu(int(architecture))
        # Nothing records the symbols in use: the full table, and the requested form.
        for scores in (None, FOUR if n_symbols <= 4 else EIGHT):
            options = {"traces_on_host": False, "scores": scores}
            rules = GapRules(matrix, 5, 2, 2, mode, seed, is_published)
            for traces in (False, True):
                with suppress(AssertionError):  # no row is reported
                    aligned(gpu, texts, texts, rules, np.arange(8), np.arange(8), traces=traces, **options)
        forms |= {defines for defines in gpu.defines if defines}
    return forms


@pytest.mark.parametrize(
    "architecture", [pytest.param(name, marks=() if name in (OLDEST, NEWEST) else pytest.mark.long) for name in ARCHITECTURES]
)
def test_read_alignment_kernels_compile_for_each_macro_set(architecture: str) -> None:
    forms = forms_of_reads(architecture)
    numbers = NARROW if int(architecture) >= 90 else WIDE
    assert len(forms) >= 8
    assert all(f"NUMBERS={numbers}" in form for form in forms)
    for form in forms:
        compile_for(LIBRARIES[-1], source("gapsmis.cu"), architecture, form)


@pytest.mark.parametrize("library", LIBRARIES[:-1], ids=lambda path: path.name)
@pytest.mark.parametrize("name", SOURCES)
def test_older_nvrtc_compiles_for_the_oldest_architecture(name: str, library: Path) -> None:
    compile_for(library, source(name), OLDEST)


@every_library
def test_probe_kernel_compiles_with_each_nvrtc(library: Path) -> None:
    compile_for(library, probe.KERNEL, "75")


@every_library
def test_failed_compilation_raises_the_log_of_the_compiler(library: Path) -> None:
    with pytest.raises(AssertionError, match="nonsense"):
        compile_for(library, 'extern "C" __global__ void broken() { nonsense(); }', "75")
