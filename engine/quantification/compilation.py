"""The kernels of ion traces, compiled together at their first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from proteoscope import kernels
from proteoscope.engine import execution, formats, quantification
from proteoscope.engine.execution.compilation import Kernels

__all__ = ["TRACES"]


def _use() -> None:
    """Follow an ion through four survey spectra."""
    surveys = formats.surveys.Surveys(np.arange(4.0), np.arange(4), np.arange(5), np.full(4, 500.0), np.array([1, 3, 2, 1], np.float32))
    query = quantification.ion_traces.TraceQuery(
        np.full(1, 500.0), np.full(1, 2), np.array([[0.6, 0.3]]), np.array([0, 1]), np.full(1, 1.0), np.zeros(1), 10.0
    )
    quantification.ion_traces.measured_traces(
        surveys, query, quantification.parameters.QuantificationParameters(isotopes=2), execution.resources.Resources(threads=1)
    )


def _last() -> Any:
    return kernels.cpu.elution.measure_elution


TRACES = Kernels("kernels of ion traces", _last, _use, family="traces")
