"""Machine code of kernels, compiled by CUDA's compiler NVRTC and cached in the user's cache folder.

CuPy, which finds and loads the compiler, is imported only if something is compiled.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from proteoscope.kernels.device import DeviceError
from proteoscope.kernels.trusted_folders import cache_folder, untrusted_folder, write_cached

__all__ = ["COMPILER_OPTIONS", "header_options", "machine_code", "source"]

COMPILER_OPTIONS = ("-std=c++17", "--fmad=false")
"""Options of the compiler; fused multiply-adds are off, since they round differently from the kernels of the CPU."""
_OPTIONS = "-ftz=true", "--device-as-default-execution-space"
_DIGEST_BYTES = 32


def source(file: str) -> str:
    """Return the text of a `.cu` or `.cuh` file of this package."""
    return (files(__package__) / file).read_text(encoding="utf-8")


@lru_cache
def header_options() -> tuple[str, ...]:
    """Return the compiler options with which source files find the headers of this package.

    They include a digest of the headers, since the cache depends only on the text of a source file and the options.
    """
    folder = Path(str(files(__package__)))
    digest = sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.cuh")))).hexdigest()
    return f"-I{folder}", f"-DHEADERS_{digest[:16]}"


def machine_code(file: str, defines: tuple[str, ...], capability: int) -> bytes:
    """Return the machine code of a source file with the given macros, from the cache or from the compiler.

    Parameters
    ----------
    file, defines
        Name of the source file, and macros such as ``"LANES=8"``.
    capability
        Ten times the compute capability of the GPU.

    Raises
    ------
    DeviceError
        If the compilation fails.
    """
    text, options = source(file), (*COMPILER_OPTIONS, *_OPTIONS, *header_options(), *(f"-D{define}" for define in defines))
    identity = text, capability, [option for option in options if not option.startswith("-I")]  # the digest of the headers is an option
    name = sha256(repr(identity).encode()).hexdigest()
    folder = _folder()
    path = None if folder is None else folder / f"{name}.cubin"
    with suppress(OSError):
        content = b"" if path is None else path.read_bytes()
        if content[:_DIGEST_BYTES] == sha256(content[_DIGEST_BYTES:]).digest():  # a computer that crashed may leave incomplete files
            return content[_DIGEST_BYTES:]
    code = _compile(text, file, options, capability)
    if path is not None:
        with suppress(OSError):  # on a full disk, the next process compiles again
            write_cached(path, sha256(code).digest() + code)
    return code


@lru_cache
def _folder() -> Path | None:
    """Return the folder of the cache; None if other users could change its files, which are executed."""
    folder = cache_folder() / "gpu_kernels"
    return None if untrusted_folder(folder) is not None else folder


def _compile(text: str, file: str, options: tuple[str, ...], capability: int) -> bytes:
    """Return the machine code of a source text, or PTX code for the driver's compiler if NVRTC is older than the GPU."""
    try:
        from cupy.cuda import nvrtc  # optional, and slow to import: only for compilation
    except ImportError as error:
        raise DeviceError(f"kernels cannot be compiled, since CuPy cannot be imported: {error}") from error
    try:
        target = max(architecture for architecture in nvrtc.getSupportedArchs() if architecture <= capability)
        program = nvrtc.createProgram(text, file, (), ())
    except Exception as error:  # CuPy raises several kinds if the compiler's library is missing
        raise DeviceError(f"kernels cannot be compiled: {error}") from error
    try:
        nvrtc.compileProgram(program, (*options, f"-arch={'sm' if target == capability else 'compute'}_{target}"))
        code = nvrtc.getCUBIN(program) if target == capability else nvrtc.getPTX(program)
        return code if isinstance(code, bytes) else code.encode()
    except nvrtc.NVRTCError as error:
        raise DeviceError(f"{file} does not compile:\n{nvrtc.getProgramLog(program)}") from error
    finally:
        nvrtc.destroyProgram(program)
