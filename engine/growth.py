"""What large searches take on many GPUs, projected by the cost model: seconds, memory, and cost where a GPU's hour has a price.

The devices' part is shared out among the cards, in partitions whose largest is `_IMBALANCE` times the mean. A machine has eight cards and
`_THREADS` threads for each; the host's part is shared out among the machines. Nothing is said of a network between them.
"""

from __future__ import annotations

from typing import NamedTuple

from proteoscope.engine.estimates import Expectation, predicted_run
from proteoscope.engine.execution.cost.kept import known_parameters
from proteoscope.engine.execution.cost.prediction import predicted_work
from proteoscope.engine.execution.cost.reference import reference_parameters
from proteoscope.engine.execution.devices import Device, gpus, processor
from proteoscope.engine.formats.sizes import InputSize
from proteoscope.engine.identification import expecting as identification
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.sequence_search import expecting as sequence_search

__all__ = ["GPUS", "Projection", "projections"]

GPUS = (1, 8, 64)
_CARDS_OF_MACHINE, _THREADS = 8, 16
_IMBALANCE = 1.05
_SPECTRA = (5e6, 1e8)
_SPECTRUM_BYTES = 4000.0
_PROTEOME = InputSize(1, 13_000_000, 1.3e7, 20_500, 1.14e7)  # human, one protein for each gene
_RESIDUES, _QUERIES, _LENGTH = 1e9, 1e4, 350.0
_HOUR = 3600.0


class Projection(NamedTuple):
    """A search on so many GPUs. `cost`: in the currency of the price; None without one. `host_bytes`: of each machine; `card_bytes`: of
    each card."""

    title: str
    gpus: int
    seconds: float
    host_bytes: float
    card_bytes: float
    cost: float | None


def projections(price: float | None = None) -> list[Projection]:
    """All of them. `price`: of an hour of a GPU."""
    parameters = IdentificationParameters.checked(read_preset("identify", "high-resolution"))
    works = [
        (f"identify {n:,.0f} spectra", identification.expectation(InputSize(1, 0, n * _SPECTRUM_BYTES, n), _PROTEOME, parameters))
        for n in _SPECTRA
    ]
    lengths = tuple(round(_LENGTH * (0.2 + 0.016 * number)) for number in range(100))
    queries = InputSize(1, 0, _QUERIES * _LENGTH, _QUERIES, _QUERIES * _LENGTH, lengths)
    database = InputSize(1, 0, _RESIDUES, _RESIDUES / _LENGTH, _RESIDUES, lengths)
    works.append((f"align {_QUERIES:,.0f} queries with {_RESIDUES:.0e} residues", sequence_search.expectation(queries, database)))
    return [_projected(title, expectation, count, price) for title, expectation in works for count in GPUS]


def _projected(title: str, expectation: Expectation, count: int, price: float | None) -> Projection:
    card = next((gpu for gpu in gpus() if gpu.usable), _A_CARD)
    parameters = (known_parameters(card, _THREADS) if card is not _A_CARD else None) or reference_parameters(card, _THREADS)
    on_cards, card_bytes = 0.0, 0.0
    for work in expectation.works:
        size = work.size(parameters.card)
        if work.kind in parameters.kinds:
            on_cards += predicted_work(parameters, work.kind, size).seconds
        card_bytes = max(card_bytes, work.card_bytes(size, count))
    machines = -(-count // _CARDS_OF_MACHINE)
    threads = _THREADS * min(count, _CARDS_OF_MACHINE)
    host = predicted_run("", Expectation((), expectation.host, {}, 0.0), processor(), threads).seconds
    seconds = host / machines + on_cards / count * (1.0 if count == 1 else _IMBALANCE)
    cost = None if price is None else price * count * seconds / _HOUR
    return Projection(title, count, seconds, expectation.memory_bytes / machines, min(card_bytes, 0.8 * parameters.memory_bytes), cost)


_A_CARD = Device("cuda:0", "a card as it was measured once", 0, False, numbers=(0,))
