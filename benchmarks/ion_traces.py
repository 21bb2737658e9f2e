"""Speed of ion traces on the CPU and on a GPU, and whether both give identical traces: one JSON line for each figure.

    python -m benchmarks.ion_traces [--peaks 1000000] [--ions 20000] [--threads 2] [--repeats 5] [--gpu]

A synthetic run of an hour with MS1 peaks and ions of three isotopes each, extracted for two minutes around them. `seconds` is the time of
`proteoscope.engine.quantification.ion_traces.measured_traces`, with sorting, all transfers and the measurement of each trace; `cutting_s`
is the time of the kernel with its transfers. All are the minimum of the repeats, after one that compiles; `same` is true if the bytes are
those of one CPU thread.
"""

from __future__ import annotations

import argparse
import platform
import time
from datetime import date
from typing import Any

import numpy as np

from benchmarks.figures import emit, usable_gpus
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from proteoscope.engine.quantification import ion_traces
from proteoscope.engine.quantification.ion_traces import TraceQuery, measured_traces
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.kernels.cuda.modules import open_gpu
from tests.shim.trace_inputs import synthetic_ms1_spectra


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peaks", type=int, default=1_000_000)
    parser.add_argument("--ions", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    surveys, query = synthetic_ms1_spectra(options.peaks, options.ions, seed=1)
    about = {"date": date.today().isoformat(), "peaks": len(surveys.mz), "ions": len(query), "repeats": options.repeats}
    expected = measured_traces(surveys, query, QuantificationParameters(), Resources(1))
    figure(
        about | {"device": "cpu", "machine": platform.processor() or platform.machine(), "threads": options.threads},
        surveys,
        query,
        Resources(options.threads),
        options.repeats,
        expected,
    )
    if options.gpu:
        device = usable_gpus(needed=True)[0]
        figure(
            about | {"device": device.description, "threads": options.threads},
            surveys,
            query,
            Resources(options.threads, [open_gpu(device.numbers[0])]),
            options.repeats,
            expected,
        )


def figure(about: dict[str, Any], surveys: Ms1Spectra, query: TraceQuery, resources: Resources, repeats: int, expected: Any) -> None:
    """Print figures of whole measurements, and of the kernel with its transfers."""
    seconds, cutting = list[float](), list[float]()
    extract, spent = ion_traces._extract, [0.0]

    def timed(*arguments: Any) -> None:
        began = time.perf_counter()
        extract(*arguments)
        spent[0] += time.perf_counter() - began

    ion_traces._extract = timed
    try:
        for _ in range(repeats + 1):
            spent[0], began = 0.0, time.perf_counter()
            measured = measured_traces(surveys, query, QuantificationParameters(), resources)
            seconds.append(time.perf_counter() - began)
            cutting.append(spent[0])
    finally:
        ion_traces._extract = extract
    n_found = int((measured[:, 0] > 0).sum())
    is_same = measured.tobytes() == np.asarray(expected).tobytes()
    emit(
        about,
        seconds=round(min(seconds[1:]), 4),
        cutting_s=round(min(cutting[1:]), 4),
        first_s=round(seconds[0], 3),
        found=n_found,
        same=is_same,
    )


if __name__ == "__main__":
    main()
