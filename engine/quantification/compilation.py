"""The kernels of ion traces, compiled together at their first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from proteoscope.engine.execution.compilation import Kernels

__all__ = ["TRACES"]


def _use() -> None:
    """Follow an ion through four survey spectra."""
    from proteoscope.engine.execution.resources import Resources
    from proteoscope.engine.formats.surveys import Surveys
    from proteoscope.engine.quantification.ion_traces import TraceQuery, measured_traces
    from proteoscope.engine.quantification.parameters import QuantificationParameters

    surveys = Surveys(np.arange(4.0), np.arange(4), np.arange(5), np.full(4, 500.0), np.array([1, 3, 2, 1], np.float32))
    query = TraceQuery(
        np.full(1, 500.0), np.full(1, 2), np.array([[0.6, 0.3]]), np.array([0, 1]), np.full(1, 1.0), np.zeros(1), 10.0
    )  # fmt: skip
    measured_traces(surveys, query, QuantificationParameters(isotopes=2), Resources(threads=1))


def _last() -> Any:
    from proteoscope.kernels.cpu.elution import measure_elution

    return measure_elution


TRACES = Kernels("kernels of ion traces", _last, _use, family="traces")
