"""Speed of building the shapes of chains, colouring them, and rendering them without OpenGL.

    .venv/bin/python -m benchmarks.structure_geometry [FILE] [--residues 300] [--chains 20] [--times 30] > figures.jsonl

One JSON line for each figure, in milliseconds of this thread's CPU time, one core: `median` and `least`. FILE is a structure whose
first chain is repeated up to the number of residues; without FILE a synthetic chain of helices and strands is used. `picture` is of
900 x 700 pixels.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structures.chains import HELIX, STRAND
from proteoscope.engine.structures.meshes import DETAILS, MAXIMUM_TRIANGLES, Detail, Mesh, ribbon, spheres, tube
from proteoscope.engine.structures.projection import Projection, drawn
from proteoscope.engine.structures.reading import read_structure
from tests.engine.structures.examples import helix


def emit(figure: str, times: int, made: Callable[[], Any], **more: Any) -> None:
    """Print a figure as a JSON line immediately."""
    made()
    values = []
    for _ in range(times):
        begin = time.thread_time()
        made()
        values.append(1e3 * (time.thread_time() - begin))
    values.sort()
    print(json.dumps({"figure": figure, "median": round(values[len(values) // 2], 2), "least": round(values[0], 2), **more}), flush=True)


def chain(path: str | None, n: int) -> tuple[NDArray[np.floating], NDArray[np.uint8]]:
    """Return Cα and secondary structure of `n` residues."""
    if path is None:
        place = np.concatenate([helix(25) + np.array([9.0 * k, 0.0, 0.0]) for k in range(-(-n // 25))])
        return place[:n], np.where(np.arange(n) // 25 % 2, HELIX, STRAND).astype(np.uint8)
    chains = read_structure(path).chains
    residues = np.arange(n) % int(chains.lengths[0])
    return chains.position[residues], chains.secondary[residues]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--residues", type=int, default=300)
    parser.add_argument("--chains", type=int, default=20)
    parser.add_argument("--times", type=int, default=30)
    options = parser.parse_args()
    place, states = chain(options.file, options.residues)
    n_residues = options.residues * options.chains
    of_many = next((detail for detail in DETAILS if n_residues * 2 * detail.steps * detail.sides <= MAXIMUM_TRIANGLES), DETAILS[-1])
    for name, detail in (("one chain's", Detail(6, 8, 1)), ("of many chains", of_many)):
        steps, sides, level = detail
        shapes: dict[str, Callable[[], Mesh]] = {
            "ribbon": lambda steps=steps, sides=sides: ribbon(place, states, steps, sides),  # type: ignore[misc]
            "tube": lambda steps=steps, sides=sides: tube(place, 0.3, steps, sides),  # type: ignore[misc]
            "spheres": lambda level=level: spheres(place, 0.8, level),  # type: ignore[misc]
        }
        for shape, made in shapes.items():
            emit(shape, options.times, made, detail=name, residues=len(place), triangles=len(made().triangles))
    compile_kernels(["drawing"], Progress())
    steps, sides, _ = of_many
    rng = np.random.default_rng(0)
    many = [place + 4.0 * rng.normal(size=3) for _ in range(options.chains)]
    whole = Mesh.joined([tube(backbone, 0.3, steps, sides) for backbone in many], [len(place)] * options.chains)
    colours = rng.integers(0, 255, (len(place) * options.chains, 3)).astype(np.uint8)
    camera = Projection(np.eye(3), (place.min(axis=0) + place.max(axis=0)) / 2.0, 650.0 / float(np.ptp(place, axis=0).max()))
    emit("picture", options.times, lambda: drawn(whole, colours, camera, 900, 700), chains=options.chains, triangles=len(whole.triangles))


if __name__ == "__main__":
    main()
