"""Page that compares predicted times of the cost model with times measured on this machine."""

from pathlib import Path

from proteoscope import kernels
from proteoscope.engine import execution, views
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution import cost
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.outputs import check_outputs

__all__ = ["check_report_path", "write_cost_report"]

_SIZES = tuple(1_000_000 * number for number in range(1, 11))
_SIDES = (64, 128, 256, 384, 512, 768, 1024)


def check_report_path(path: Path) -> None:
    """Check the path of a page before the measurement, which takes a while.

    Raises
    ------
    ParameterError
        If there is no such folder, or the path belongs to a project.
    """
    if not path.parent.is_dir():
        raise ParameterError(f"{path}: there is no folder {path.parent}. Create it, or choose another.")
    check_outputs([path], [])


def write_cost_report(path: Path, device: str, progress: Progress) -> None:
    """Measure the benchmark problems of the ATGPU cost function on a device, and write a page with predictions and measurements.

    Parameters
    ----------
    path : Path
        File of the page.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``; the CPU if no GPU is usable.
    progress : Progress
        Progress, which can cancel. A device without a calibration is calibrated first.

    Raises
    ------
    ParameterError
        If the device is not usable.
    StorageError
        If writing fails.
    Cancelled
        If the user cancels.
    """
    threads, notes = execution.resources.available_threads(), list[str]()
    chosen = execution.devices.resolve_device(device, progress)
    gpus = execution.device_lookup.open_gpus(chosen, progress)
    if not gpus:
        chosen = execution.devices.processor()
        notes.append("No GPU is used: these are CPU times, without transfers.")
    parameters = cost.calibration_store.stored_calibration(chosen, threads)
    if parameters is None:
        parameters = (
            cost.calibration.calibrate_gpu(chosen.numbers[0], chosen.description, (), progress)
            if gpus
            else cost.calibration.calibrate_processor(threads, (), progress)
        )
    used = gpus[0] if gpus else kernels.cpu.processor.Processor(threads)
    progress.stage("Comparing", len(kernels.analyses_layouts.PROBLEMS))
    result = {}
    for problem in kernels.analyses_layouts.PROBLEMS:
        progress.check()
        result[problem] = cost.analyses.compared(used, parameters, problem, _SIDES if problem == "matrix multiplication" else _SIZES)
        progress.advance(1)
    with atomic_file(path) as file:
        file.write(views.predictions.report_page(parameters, result, notes).encode())
