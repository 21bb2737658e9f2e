"""Estimates of searches for scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from proteoscope.engine.api.searching import EstimateMade, is_estimating
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.estimates import Estimate

__all__ = ["estimate"]

P = ParamSpec("P")


def estimate(search: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Estimate:
    """Estimate the time and memory of a search; nothing is run or written.

    Parameters
    ----------
    search : callable
        Function of a search, such as ``proteoscope.identify``, or the method `run` of an experiment.
    *args, **kwargs
        Arguments of this function. Only sizes and beginnings of files are read.

    Returns
    -------
    Estimate
        Device, seconds of the run and of each step, bytes of memory, and counts.

    Raises
    ------
    ParameterError
        If an argument is wrong, or the function is not a search.
    InputError
        If a file cannot be used.

    Examples
    --------
    >>> import proteoscope
    >>> from proteoscope.resources import path
    >>> spectra, proteins = path("samples", "BSA1.mzML.gz"), path("samples", "albumin_proteins.fasta.gz")
    >>> expected = proteoscope.estimate(proteoscope.identify, spectra, proteins, preset="low-resolution", device="cpu")
    >>> expected.device, 0 < expected.seconds < 600
    ('cpu', True)
    """
    if not callable(search) or not getattr(search, "__module__", "").startswith("proteoscope."):
        raise ParameterError(f"search = {search!r:.100}: expected the function of a search, such as proteoscope.identify")
    token = is_estimating.set(True)
    try:
        search(*args, **kwargs)
    except EstimateMade as made:
        return made.estimate
    finally:
        is_estimating.reset(token)
    raise ParameterError(f"search = {search!r:.100}: is not a search; expected one such as proteoscope.identify")
