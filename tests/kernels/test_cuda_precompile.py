"""Variants of the CUDA sources that are compiled in advance."""

from __future__ import annotations

from importlib.resources import files
from threading import Lock

import pytest

from proteoscope.engine.jobs.progress import Cancelled
from proteoscope.kernels.cuda.compiled import source
from proteoscope.kernels.cuda.precompile import compile_usual_forms, usual_forms
from proteoscope.kernels.device import DeviceError
from tests.kernels.test_cuda_compiles import LIBRARIES, compile_for


class NotingGpu:
    """GPU that records the variants that it is requested to compile."""

    name = "cuda:7"

    def __init__(self, broken: str = "") -> None:
        self.broken, self.compiled, self._turn = broken, list[tuple[str, tuple[str, ...]]](), Lock()

    def compile(self, file: str, macros: tuple[str, ...]) -> None:
        with self._turn:
            self.compiled.append((file, macros))
        if file == self.broken:
            raise DeviceError("a kernel does not compile for cuda:7:\nline 3: nonsense")


def test_precompile_compiles_and_counts_each_kernel_variant_once() -> None:
    gpu, steps = NotingGpu(), []
    assert compile_usual_forms(gpu, 4, steps.append) == []
    assert sorted(gpu.compiled) == sorted(usual_forms())
    assert sum(steps) == len(usual_forms())


def test_precompile_reports_failures_and_continues() -> None:
    broken = usual_forms()[0][0]
    gpu = NotingGpu(broken)
    failures = compile_usual_forms(gpu, 2, lambda n: None)
    assert failures == [f"{broken} could not be compiled in advance for cuda:7: a kernel does not compile for cuda:7:"] * len(failures)
    assert len(failures) == sum(file == broken for file, _ in usual_forms())
    assert len(gpu.compiled) == len(usual_forms())


def test_precompile_stops_when_cancelled() -> None:
    def cancel(n: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        compile_usual_forms(NotingGpu(), 1, cancel)


def test_precompiled_kernel_variants_refer_to_existing_sources() -> None:
    there = {entry.name for entry in files("proteoscope.kernels.cuda").iterdir()}
    assert {file for file, _ in usual_forms()} <= there


@pytest.mark.skipif(not LIBRARIES, reason="NVRTC is not installed (nvidia-cuda-nvrtc, of the extra 'dev')")
@pytest.mark.parametrize(
    ("file", "macros"),
    [form for form in usual_forms() if form[1]],  # without macros it is only the source, which test_cuda_compiles compiles
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_precompiled_kernel_variants_compile_with_nvrtc(file: str, macros: tuple[str, ...]) -> None:
    compile_for(LIBRARIES[-1], source(file), "90", macros)
