"""Every CUDA source compiles for every architecture that is supported, with NVRTC and without a GPU."""

from __future__ import annotations

import ctypes
import sysconfig
from importlib.resources import files
from pathlib import Path

import pytest

from kernels.cuda import probe
from kernels.cuda.modules import COMPILER_OPTIONS, source

ARCHITECTURES = ("75", "80", "86", "89", "90", "100", "120")
SOURCES = sorted(entry.name for entry in files("kernels.cuda").iterdir() if entry.name.endswith(".cu"))


def _libraries() -> list[Path]:
    """NVRTC of the packages nvidia-cuda-nvrtc (CUDA 13) and nvidia-cuda-nvrtc-cu12, where they are installed."""
    places = Path(sysconfig.get_paths()["purelib"], "nvidia").glob("*/lib/libnvrtc.so.*")
    found = (path for path in places if path.suffix[1:].isdigit() and ".alt." not in path.name)
    return sorted(found, key=lambda path: int(path.suffix[1:]))


LIBRARIES = _libraries()
pytestmark = pytest.mark.skipif(not LIBRARIES, reason="NVRTC is not installed (nvidia-cuda-nvrtc, of the extra 'dev')")
every_library = pytest.mark.parametrize("library", LIBRARIES or [Path()], ids=lambda path: path.name)


def compile_for(path: Path, text: str, architecture: str) -> None:
    """Raises AssertionError with the compiler's log where the source does not compile, or not without a warning."""
    library, program, size = ctypes.CDLL(str(path)), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
    options = [option.encode() for option in (*COMPILER_OPTIONS, f"--gpu-architecture=sm_{architecture}")]
    code = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert code == 0 and "warning" not in log.value.decode(), log.value.decode()
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    assert size.value > 0
    library.nvrtcDestroyProgram(ctypes.byref(program))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", SOURCES)
def test_it_compiles(name: str, architecture: str) -> None:
    compile_for(LIBRARIES[-1], source(name), architecture)


@every_library
@pytest.mark.parametrize("name", SOURCES)
def test_every_compiler_knows_the_oldest_architecture(name: str, library: Path) -> None:
    compile_for(library, source(name), ARCHITECTURES[0])


@every_library
def test_the_kernel_that_tries_a_device_compiles(library: Path) -> None:
    compile_for(library, probe.KERNEL, "75")


@every_library
def test_an_error_comes_with_the_log(library: Path) -> None:
    with pytest.raises(AssertionError, match="nonsense"):
        compile_for(library, 'extern "C" __global__ void broken() { nonsense(); }', "75")
