"""Machine code of CUDA sources is compiled once and found again; damaged and unsafe files are not used."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from proteoscope.kernels.cuda import compiled
from proteoscope.kernels.device import DeviceError


class NVRTCError(RuntimeError):
    """Error of the compiler, by CuPy's name."""


class Compiler(ModuleType):
    """Compiler in place of that of CuPy, whose code contains what it was called with."""

    NVRTCError = NVRTCError

    def __init__(self) -> None:
        super().__init__("cupy.cuda.nvrtc")
        self.architectures, self.programs, self.compiled = (75, 80, 90), dict[int, tuple[str, tuple[str, ...]]](), list[tuple[str, ...]]()
        functions = {
            "getSupportedArchs": lambda: self.architectures,
            "createProgram": self.create,
            "compileProgram": self.compile,
            "getCUBIN": lambda program: b"machine code \0" + repr(self.programs[program]).encode(),
            "getPTX": lambda program: "PTX code " + repr(self.programs[program]),
            "getProgramLog": lambda program: "line 3: nonsense",
            "destroyProgram": self.programs.pop,
        }
        vars(self).update(functions)

    def create(self, text, name, headers, names):
        self.programs[id(text)] = text, ()
        return id(text)

    def compile(self, program, options):
        self.compiled.append(options)
        self.programs[program] = self.programs[program][0], options
        if "-DBROKEN" in options:
            raise NVRTCError("compilation failed")


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Compiler:
    """Replace CuPy, and use an empty cache."""
    result, cuda = Compiler(), ModuleType("cupy.cuda")
    cuda.nvrtc = result
    for name, module in (("cupy", ModuleType("cupy")), ("cupy.cuda", cuda), ("cupy.cuda.nvrtc", result)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(compiled, "_folder", lambda: tmp_path / "cache")
    return result


def code(file="digestion.cu", defines=(), capability=90):
    return compiled.machine_code(file, defines, capability)


def test_source_is_compiled_once_per_macros_and_architecture(compiler):
    requests = [("digestion.cu", ()), ("digestion.cu", ("LANES=8",)), ("traces.cu", ()), ("digestion.cu", (), 80)]
    codes = [code(*request) for request in requests]
    assert len(set(codes)) == len(compiler.compiled) == 4
    assert all(text.startswith(b"machine code") for text in codes)
    assert ["-DLANES=8" in options for options in compiler.compiled] == [False, True, False, False]
    assert [options[-1] for options in compiler.compiled] == ["-arch=sm_90"] * 3 + ["-arch=sm_80"]
    assert all({*compiled.COMPILER_OPTIONS, "-ftz=true", *compiled.header_options()} < set(options) for options in compiler.compiled)
    assert not compiler.programs
    sys.modules.pop("cupy.cuda.nvrtc")  # code from the cache needs no compiler
    assert [code(*request) for request in requests] == codes
    assert len(compiler.compiled) == 4


def test_gpu_newer_than_the_compiler_receives_ptx_code(compiler):
    assert code(capability=121).startswith(b"PTX code")
    assert compiler.compiled[0][-1] == "-arch=compute_90"


def test_changed_source_or_header_is_compiled_again(compiler, monkeypatch, tmp_path):
    (tmp_path / "digestion.cu").write_text("first")
    monkeypatch.setattr(compiled, "files", lambda _: tmp_path)
    seen = []
    for name, text in (("shared.cuh", "one"), ("shared.cuh", "other"), ("digestion.cu", "second")):
        (tmp_path / name).write_text(text)
        compiled.header_options.cache_clear()
        seen.append((compiled.header_options(), code()))
    compiled.header_options.cache_clear()
    assert len(compiler.compiled) == len({text for _, text in seen}) == 3
    assert {options[0] for options, _ in seen} == {f"-I{tmp_path}"}
    assert seen[0][0][1] != seen[1][0][1] == seen[2][0][1]


def test_moved_program_finds_its_machine_code(compiler, monkeypatch, tmp_path):
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "digestion.cu").write_text("source")
        monkeypatch.setattr(compiled, "files", lambda _, folder=folder: folder)
        compiled.header_options.cache_clear()
        code()
    compiled.header_options.cache_clear()
    assert len(compiler.compiled) == 1


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: content[:40] + b"?" + content[41:], lambda content: b""])
def test_damaged_machine_code_is_compiled_again(damage, compiler, tmp_path):
    right = code()
    (path,) = (tmp_path / "cache").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert code() == right
    assert len(compiler.compiled) == 2
    assert code() == right
    assert len(compiler.compiled) == 2
    assert [*(tmp_path / "cache").iterdir()] == [path]


def test_machine_code_is_used_if_the_cache_cannot_be_written(compiler, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", None):
        monkeypatch.setattr(compiled, "_folder", lambda folder=folder: folder)
        assert code() == code()
    assert len(compiler.compiled) == 4


def test_folder_that_others_can_change_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setattr(compiled, "cache_folder", lambda: tmp_path)
    compiled._folder.cache_clear()
    assert compiled._folder() == tmp_path / "gpu_kernels"
    (tmp_path / "gpu_kernels").mkdir()
    (tmp_path / "gpu_kernels").chmod(0o777)
    compiled._folder.cache_clear()
    assert compiled._folder() is None
    compiled._folder.cache_clear()


def test_errors_of_the_compiler_are_device_errors(compiler, monkeypatch):
    with pytest.raises(DeviceError, match=r"digestion\.cu does not compile:\nline 3: nonsense"):
        code(defines=("BROKEN",))
    assert not compiler.programs
    monkeypatch.setattr(compiler, "getSupportedArchs", lambda: 1 / 0)
    with pytest.raises(DeviceError, match="cannot be compiled: division by zero"):
        code()
    monkeypatch.setitem(sys.modules, "cupy.cuda", None)
    with pytest.raises(DeviceError, match="CuPy cannot be imported"):
        code()
