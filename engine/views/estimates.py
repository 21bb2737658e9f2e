"""Texts on the estimated time and memory of a search."""

from dataclasses import dataclass

from proteoscope.engine.estimates import Estimate
from proteoscope.engine.results.counts import counted

__all__ = ["EstimateText", "count_text", "estimate_text", "memory_text", "seconds_text", "sureness_text"]


@dataclass(frozen=True)
class EstimateText:
    """Texts that describe an estimate.

    `headline` contains the time, the device and the limiting step; `memory` and `sureness` (the basis and the uncertainty) are short texts;
    `details` are further lines.
    """

    headline: str
    memory: str
    sureness: str
    details: tuple[str, ...]


def estimate_text(estimate: Estimate) -> EstimateText:
    """Return an estimate as text."""
    details = [
        "steps: " + ", ".join(f"{step} {seconds_text(seconds)}" for step, seconds in estimate.steps.items() if seconds >= 0.0005),
        "shares: " + ", ".join(f"{part} {100 * fraction:.1f} %" for part, fraction in estimate.shares().items()),
        f"memory: {memory_text(estimate)}",
        *([] if estimate.disk_bytes is None else [f"disk: {estimate.disk_bytes / 1e9:.2f} GB for the results"]),
        "counted: " + ", ".join(f"{name} {count_text(value)}" for name, value in estimate.counts.items()),
        *(f"only {device}: about {seconds_text(seconds)}" for device, seconds in estimate.alternatives.items()),
        *estimate.notes,
    ]
    if not estimate.is_measured:
        details.append("calibrated on another machine; proteoscope devices --calibrate measures this machine")
    if estimate.n_runs:
        details.append(sureness_text(estimate))
    # Estimates are not accurate to more than two digits.
    about = seconds_text(float(f"{estimate.seconds:.2g}"))
    return EstimateText(f"about {about}, {estimate.bound}-bound", memory_text(estimate), sureness_text(estimate), tuple(details))


def memory_text(estimate: Estimate) -> str:
    """Return the memory of an estimate as text, such as ``1.20 GB on the host, 0.40 GB on each GPU``."""
    gpu = f", {estimate.gpu_bytes / 1e9:.2f} GB on each GPU" if estimate.gpu_bytes else ""
    return f"{estimate.memory_bytes / 1e9:.2f} GB on the host{gpu}"


def sureness_text(estimate: Estimate) -> str:
    """Return the basis and the uncertainty of an estimate as text."""
    if not estimate.n_runs:
        calibrated = "" if estimate.is_measured else "; not calibrated"
        return f"rough: no similar run yet; compilation may add up to a minute{calibrated}"
    runs = f"corrected by {counted(estimate.n_runs, 'earlier run')} of this machine"
    return runs if estimate.typical_error is None else f"{runs}, typical error {max(1.0, 100 * estimate.typical_error):.0f} %"


def seconds_text(seconds: float) -> str:
    """Return a time as text, such as ``320 ms``, ``12.4 s``, ``7.5 min`` or ``3 h``."""
    if seconds < 0.95:
        return f"{1000 * seconds:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def count_text(value: float) -> str:
    """Format a count."""
    return f"{value:,.0f}" if value < 1e7 else f"{value:.2e}"
