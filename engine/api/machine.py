"""Devices of this machine, their measurement, compiled kernels, and files in the cache, for scripts."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine import cached_files as cached_files_of_user
from proteoscope.engine import calibration, cost_model, execution
from proteoscope.engine.api.arguments import OnProgress, PathLike, choice, number, one_path, progress_of
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.project.index_store import CachedIndex
from proteoscope.kernels.cpu.signatures import kernel_groups

__all__ = ["cached_files", "clear_cache", "compile_kernels", "cost_report", "devices"]

_MAXIMUM_PROCESSES = 1024


def devices(*, calibrate: bool = False, progress: OnProgress = None) -> list[Device]:
    """List the devices of this machine.

    Parameters
    ----------
    calibrate : bool
        True to measure each usable device for some seconds; estimates and ``device="auto"`` use the measurements.
    progress : callable or Progress, optional
        Receives each `ProgressEvent` of the measurement.

    Returns
    -------
    list of Device
        Devices, the CPU first, each with name, description, memory, and the reason if it is not usable.

    Raises
    ------
    ParameterError
        If `calibrate` is neither True nor False.

    Examples
    --------
    >>> import proteoscope
    >>> proteoscope.devices()[0].name
    'cpu'
    """
    if not isinstance(calibrate, bool):
        raise ParameterError(f"calibrate = {calibrate!r:.100}: expected True or False")
    execution.devices.gpus.cache_clear()  # report the present state
    listed = execution.devices.devices()
    if calibrate:
        calibration.calibrate(listed, progress_of(progress))
    return listed


def cost_report(out: PathLike, *, device: str = "auto", progress: OnProgress = None) -> Path:
    """Compare predicted and measured times on this machine, and write a page about the cost model.

    Parameters
    ----------
    out : str or Path
        File of the HTML page.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    progress : callable or Progress, optional
        Receives each `ProgressEvent`.

    Returns
    -------
    Path
        File of the page.

    Raises
    ------
    ParameterError
        If the device is not usable, or there is no such folder.
    StorageError
        If writing fails.

    Examples
    --------
    >>> import proteoscope
    >>> proteoscope.cost_report("no_such_folder/page.html")
    Traceback (most recent call last):
    ...
    proteoscope.engine.errors.ParameterError: no_such_folder/page.html: there is no folder no_such_folder. Create it, or choose another.
    """
    path = one_path("out", out)
    cost_model.check_report_path(path)
    cost_model.write_cost_report(path, device, progress_of(progress))
    return path


def compile_kernels(*, processes: int | None = None, progress: OnProgress = None) -> list[str]:
    """Compile the kernels of all searches in advance, which takes up to a minute.

    Parameters
    ----------
    processes : int, optional
        Maximum number of processes, at most eight; by default one for each core.
    progress : callable or Progress, optional
        Receives each `ProgressEvent`.

    Returns
    -------
    list of str
        A sentence for each kernel that could not be compiled; it is compiled when it is first used.

    Examples
    --------
    >>> import proteoscope
    >>> proteoscope.compile_kernels()
    []
    """
    n_processes = None if processes is None else int(number("processes", processes, 1, _MAXIMUM_PROCESSES))
    reports = progress_of(progress)
    failures = execution.precompile.compile_kernels(kernel_groups(), reports, n_processes)
    return failures + execution.precompile.compile_for_gpus(reports, n_processes)


def cached_files() -> list[CachedIndex]:
    """List the indexes for later searches, and the checkpoints of unfinished runs, in the user's cache.

    Returns
    -------
    list of CachedIndex
        Kind, folder, size in bytes, last use and origin of each.

    Examples
    --------
    >>> import proteoscope
    >>> isinstance(proteoscope.cached_files(), list)
    True
    """
    return cached_files_of_user.list_cached_files()


def clear_cache(kind: str = "all") -> list[CachedIndex]:
    """Remove files from the user's cache.

    Later searches build the indexes again. A run without its checkpoint cannot be resumed.

    Parameters
    ----------
    kind : str
        Kind of the files to remove: a kind of indexes, ``checkpoints``, or ``all``.

    Returns
    -------
    list of CachedIndex
        Removed files; checkpoints of active runs are not removed.

    Raises
    ------
    ParameterError
        If there is no such kind.

    Examples
    --------
    >>> import proteoscope
    >>> proteoscope.clear_cache("no such kind")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    proteoscope.engine.errors.ParameterError: kind = 'no such kind': expected all, ... or checkpoints
    """
    choice("kind", kind, ("all", *cached_files_of_user.index_kinds(), cached_files_of_user.CHECKPOINTS))
    return cached_files_of_user.clear_cached_files(kind)
