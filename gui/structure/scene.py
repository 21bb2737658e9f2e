"""3D scene, independent of widgets: a query, superposed hits, visible residues, style and colours."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.structures import colouring
from proteoscope.engine.structures.meshes import DETAILS, Detail, Mesh, ribbon, spheres, sticks, tube
from proteoscope.engine.structures.residue_atoms import Atoms
from proteoscope.engine.structures.scripts import Style
from proteoscope.engine.views.traces import Trace
from proteoscope.gui.structure.camera import Sphere, sphere_around
from proteoscope.gui.structure.rendering import Body

MAXIMUM_HITS = colouring.MAXIMUM_HITS
_MAXIMUM_PICKS = 12
STYLES = {"ribbon": "Ribbons", "tube": "Tubes", "line": "Lines", "spheres": "Cα spheres", "surface": "Surface"}
EXTENTS = {"file": "All chains", "chain": "Aligned chains", "residues": "Aligned residues"}
_TUBE_RADIUS, _LINE_RADIUS, _SPHERE_RADIUS = 0.35, 0.16, 0.9
_LIGAND_RADIUS = 0.32
_LINE_DETAIL = Detail(2, 4, 0)
_TRIANGLES_OF_BALL = 20
_ATOM_COLOURS = {"N": (48, 80, 248), "O": (228, 40, 40), "S": (214, 180, 30), "SE": (214, 140, 30), "P": (255, 128, 0)}


class Pick(NamedTuple):
    """Residue or atom that the user picked in the 3D view.

    Attributes
    ----------
    trace : Trace
        Chain of the scene.
    row : int
        Row of the residue in the chain, or -1 for a ligand.
    atom : str
        Name of the atom, for a ligand preceded by the ligand's name; '' for a whole residue, whose position is its Cα.
    at : tuple of float or None
        Position of the atom in Å, or None for a residue.
    """

    trace: Trace
    row: int
    atom: str = ""
    at: tuple[float, float, float] | None = None

    @property
    def position(self) -> NDArray[np.float32]:
        """Position of the atom or of the residue's Cα, shape (3,), in Å."""
        if self.at is not None:
            return np.array(self.at, np.float32)
        position: NDArray[np.float32] = self.trace.position[self.row]
        return position

    @property
    def label(self) -> str:
        """Name and number of the residue, and name of the atom."""
        return " ".join(part for part in (self.trace.label(self.row) if self.row >= 0 else "", self.atom) if part)


@dataclass(eq=False)
class ShownHit:
    """Superposed hit of the scene; `number`, from 1, determines its colour, and a pinned hit remains when another hit is selected."""

    trace: Trace
    number: int
    is_shown: bool = True
    is_pinned: bool = False


class Scene:
    """Query, superposed hits (one may be selected), and settings for drawing; `bodies` returns the surfaces to draw.

    Attributes
    ----------
    query : Trace or None
        Chain of the query, or None if the scene is empty.
    hits : list of ShownHit
        Hits in the order in which they were added.
    chosen : ShownHit or None
        Selected hit, which the alignment shows, or None.
    picks : list of Pick
        Picked residues and atoms, newest last.
    style, extent : str
        Keys of `STYLES` and `EXTENTS`.
    scheme : str
        Name of a colour scheme in `proteoscope.engine.structures.colouring.SCHEMES`.
    other_chains : dict
        Other chains of the file of each trace, in the query's frame, as far as they have been read.
    b_factors : dict
        B-factors of each trace, as far as they have been read.
    atoms : dict
        Side-chain atoms of picked residues by (trace, row), as far as they have been read.
    ligands : dict
        Ligand atoms of each trace, as far as they have been read; drawn if `shows_ligands`.
    surfaces : dict
        Surface of each trace, as far as it has been computed; a ribbon is drawn until then.
    lit : dict
        Mask, shape (n,), for each trace: residues that are selected in other views and highlighted in every colour scheme.
    """

    def __init__(self) -> None:
        self.query: Trace | None = None
        self.hits: list[ShownHit] = []
        self.chosen: ShownHit | None = None
        self.picks: list[Pick] = []
        self.style: Style = "ribbon"
        self.extent = "chain"
        self.scheme = "partner"
        self.other_chains: dict[Trace, tuple[Trace, ...]] = {}
        self.b_factors: dict[Trace, NDArray[np.float32]] = {}
        self.atoms: dict[tuple[Trace, int], Atoms] = {}
        self.lit: dict[Trace, NDArray[np.bool_]] = {}
        self.ligands: dict[Trace, Atoms] = {}
        self.surfaces: dict[Trace, Mesh] = {}
        self.shows_ligands = True
        self._meshes: dict[tuple[object, ...], Mesh] = {}
        self._bodies: dict[tuple[object, ...], Body] = {}
        self._used: set[tuple[object, ...]] = set()
        self._sphere: tuple[tuple[object, ...], Sphere] | None = None
        self._shares: tuple[tuple[Trace, ...], NDArray[np.float64]] | None = None

    @property
    def traces(self) -> list[Trace]:
        """Chains of the query and of the visible hits."""
        return [] if self.query is None else [self.query, *(hit.trace for hit in self.hits if hit.is_shown)]

    @property
    def other_traces(self) -> list[Trace]:
        """The other chains of the files of `traces` if the extent is ``file``, otherwise []."""
        return [other for trace in self.traces for other in self.other_chains.get(trace, ())] if self.extent == "file" else []

    def copied(self) -> Scene:
        """Return a copy that later changes of the scene do not affect; immutable data are shared."""
        made = copy.copy(self)
        made.hits = [copy.copy(hit) for hit in self.hits]
        made.chosen = made.hits[self.hits.index(self.chosen)] if self.chosen is not None else None
        made.picks, made.other_chains, made.atoms, made.b_factors = (
            list(self.picks),
            dict(self.other_chains),
            dict(self.atoms),
            dict(self.b_factors),
        )
        made.lit = dict(self.lit)
        made.ligands, made.surfaces = dict(self.ligands), dict(self.surfaces)
        made._meshes, made._bodies = dict(self._meshes), dict(self._bodies)
        return made

    def clear(self) -> None:
        """Empty the scene."""
        self.query = self.chosen = None
        self.hits, self.picks = [], []
        self.other_chains, self.atoms, self.b_factors, self.ligands, self.surfaces, self.lit = {}, {}, {}, {}, {}, {}
        self._meshes, self._bodies, self._sphere, self._shares = {}, {}, None, None

    def show(self, query: Trace, hit: Trace | None) -> None:
        """Show a query and the selected hit. Of the previous hits, only pinned hits of the same query are retained."""
        if self.query is None or not _is_same(self.query, query):
            self.clear()
            self.query = query
        self.hits = [hit for hit in self.hits if hit.is_pinned]
        self.chosen = None
        if hit is not None:
            self.chosen = self._with(hit)
            self.chosen.is_shown = True
        self._drop_missing()

    def add(self, hits: Iterable[Trace]) -> int:
        """Add and pin more hits of the query; return the number of hits left out because of the maximum."""
        left_out = 0
        for hit in hits:
            if len(self.hits) < MAXIMUM_HITS or self._shown(hit) is not None:
                self._with(hit).is_pinned = True
            else:
                left_out += 1
        return left_out

    def unpin_others(self) -> None:
        """Remove all hits except the selected one."""
        for hit in self.hits:
            hit.is_pinned = False
        self.hits = [hit for hit in self.hits if hit is self.chosen]
        self._drop_missing()

    def pick(self, picks: Sequence[Pick]) -> None:
        """Replace the picked residues and atoms by the last 12 of `picks` that have finite coordinates."""
        self.picks = [pick for pick in picks if np.isfinite(pick.position).all()][-_MAXIMUM_PICKS:]
        wanted = {(pick.trace, pick.row) for pick in self.picks}
        self.atoms = {key: atoms for key, atoms in self.atoms.items() if key in wanted}

    def nearest_atoms(self, first_pick: Pick, second_pick: Pick) -> tuple[str, str, float] | None:
        """Return names and distance (Å) of the two nearest atoms of two picked residues' side chains, or None if one is missing."""
        if first_pick.atom or second_pick.atom:
            return None
        first, second = (self.atoms.get((pick.trace, pick.row)) for pick in (first_pick, second_pick))
        if first is None or second is None or not len(first.position) or not len(second.position):
            return None
        apart = np.linalg.norm(first.position[:, None].astype(np.float64) - second.position[None], axis=2)
        i, j = np.unravel_index(int(np.argmin(apart)), apart.shape)
        return first.name[int(i)], second.name[int(j)], float(apart[i, j])

    def atoms_to_pick(self) -> list[tuple[Trace, Atoms, bool]]:
        """Return the side chains and ligands that are drawn, whose atoms can be picked, as (chain, atoms, True for ligands)."""
        shown = self.traces
        result = [(trace, atoms, False) for (trace, _), atoms in self.atoms.items() if trace in shown]
        bound = [(trace, self.ligands[trace], True) for trace in shown if self.shows_ligands and trace in self.ligands]
        return [group for group in (*result, *bound) if len(group[1].position)]

    def mask(self, trace: Trace) -> NDArray[np.bool_] | None:
        """Return the mask, shape (n,), of the visible residues of a chain, or None if all are visible."""
        if self.extent != "residues":
            return None
        if trace.pairs is not None:
            return trace.partner >= 0
        mask = np.zeros(len(trace), np.bool_)
        for hit in self.hits:
            if hit.is_shown and hit.trace.pairs is not None:
                mask[hit.trace.pairs.rows[:, 0]] = True
        return mask

    def places(self, trace: Trace) -> NDArray[np.float32]:
        """Return the positions of the visible Cα of a chain, shape (k, 3), in Å."""
        mask = self.mask(trace)
        return trace.position if mask is None else trace.position[mask]

    def points(self) -> NDArray[np.float32]:
        """Return the positions of all visible Cα, shape (k, 3), in Å."""
        shown = [self.places(trace) for trace in self.traces]
        shown += [other_trace.position for other_trace in self.other_traces]
        return np.concatenate([np.empty((0, 3), np.float32), *shown])

    def aligned_points(self) -> NDArray[np.float32]:
        """Return the positions, shape (k, 3), of the query's Cα that are aligned with the selected hit; if none are, of all visible Cα."""
        chosen = self.chosen.trace if self.chosen else None
        if self.query is None or chosen is None or chosen.pairs is None or not len(chosen.pairs):
            return self.points()
        return self.query.position[chosen.pairs.rows[:, 0]]

    def sphere(self) -> Sphere:
        """Return the bounding sphere of the drawn chains."""
        shown = [(trace, self.mask(trace)) for trace in self.traces]
        key = (*((trace, None if mask is None else mask.tobytes()) for trace, mask in shown), *self.other_traces)
        if self._sphere is None or self._sphere[0] != key:
            self._sphere = key, sphere_around(self.points())
        return self._sphere[1]

    def coloured(self, scheme: str | None = None) -> colouring.Coloured:
        """Return the residue colours of `traces` followed by `other_traces` in a scheme (None: the current one), with a legend."""
        result = colouring.coloured(self.to_colour(), scheme or self.scheme)
        if not any(mask.any() for mask in self.lit.values()):
            return result
        traces = [*self.traces, *self.other_traces]
        colours = tuple(
            colouring.lit(colour, self.lit[trace]) if trace in self.lit else colour
            for trace, colour in zip(traces, result.colours, strict=True)
        )
        return colouring.Coloured(colours, replace(result.legend, entries=(*result.legend.entries, (colouring.LIT, "selected"))))

    def to_colour(self) -> colouring.ColouredScene:
        """Return the chains as input for colour schemes."""
        numbers = {hit.trace: hit.number for hit in self.hits}
        shown = [hit.trace for hit in self.hits if hit.is_shown]
        chains = [_shown_chain(trace, numbers.get(trace, 0), self.b_factors.get(trace)) for trace in self.traces]
        for trace in self.traces if self.extent == "file" else ():
            chains += [_shown_chain(other, numbers.get(trace, 0), is_other_chain=True) for other in self.other_chains.get(trace, ())]
        shares = None
        if self.query is not None and shown:
            key = (self.query, *shown)
            if self._shares is None or self._shares[0] != key:
                of_hits = [(hit.pairs.rows, hit.chains.residue) for hit in shown if hit.pairs is not None]
                self._shares = key, colouring.conservation(self.query.chains.residue, of_hits)
            shares = self._shares[1]
        return colouring.ColouredScene(tuple(chains), self.chosen.number if self.chosen else 0, shares, len(shown))

    def bodies(self, maximum_triangles: int, coloured: colouring.Coloured | None = None) -> list[Body]:
        """Return the bodies to draw, in the finest detail within the maximum number of triangles.

        Unchanged bodies are the same objects as in the previous call; if only the colours of a body have changed, its mesh is the same
        object. `coloured` is the result of the method `coloured`, if it was already computed.
        """
        if self.query is None:
            return []
        self._used = set()
        traces = [*self.traces, *self.other_traces]
        colours = (coloured or self.coloured()).colours
        n_shown = sum(len(self.places(trace)) for trace in traces)
        detail = _detail(self.style, n_shown, maximum_triangles)
        result = [self._body(trace, detail, tones) for trace, tones in zip(traces, colours, strict=True)]
        numbers = {hit.trace: hit.number for hit in self.hits}
        for pick in self.picks:
            atoms = self.atoms.get((pick.trace, pick.row))
            if atoms is not None and pick.trace in traces:
                result.append(self._side_chain(pick, atoms, colours[traces.index(pick.trace)][pick.row]))
        bound = [trace for trace in self.traces if self.shows_ligands and trace in self.ligands and len(self.ligands[trace].position)]
        result += [self._ligand(trace, self.ligands[trace], hit_colour(numbers.get(trace, 0))) for trace in bound]
        self._meshes = {key: mesh for key, mesh in self._meshes.items() if key in self._used}
        self._bodies = {key: body for key, body in self._bodies.items() if key in self._used}
        return [body for body in result if len(body.mesh.triangles)]

    def _with(self, hit: Trace) -> ShownHit:
        shown = self._shown(hit)
        if shown is not None:
            return shown
        taken = {hit.number for hit in self.hits}
        made = ShownHit(hit, next(number for number in range(1, MAXIMUM_HITS + 2) if number not in taken))
        self.hits.append(made)
        return made

    def _shown(self, hit: Trace) -> ShownHit | None:
        return next((scene_hit for scene_hit in self.hits if _is_same(scene_hit.trace, hit)), None)

    def _drop_missing(self) -> None:
        there = {self.query, *(hit.trace for hit in self.hits)}
        self.pick([pick for pick in self.picks if pick.trace in there])
        self.other_chains = {trace: chains for trace, chains in self.other_chains.items() if trace in there}
        self.b_factors = {trace: values for trace, values in self.b_factors.items() if trace in there}
        self.lit = {trace: mask for trace, mask in self.lit.items() if trace in there}
        self.ligands = {trace: atoms for trace, atoms in self.ligands.items() if trace in there}
        self.surfaces = {trace: mesh for trace, mesh in self.surfaces.items() if trace in there}

    def _mesh(self, key: tuple[object, ...], make: Callable[[], Mesh]) -> Mesh:
        if key not in self._meshes:
            self._meshes[key] = make()
        self._used.add(key)
        return self._meshes[key]

    def _coloured(self, key: tuple[object, ...], mesh: Mesh, of_residues: NDArray[np.uint8]) -> Body:
        key = (*key, of_residues.tobytes())
        if key not in self._bodies:
            # Four bytes per colour are packed into one number, the layout of OpenGL: four times faster than rows of three bytes.
            packed = np.zeros((len(of_residues), 4), np.uint8)
            packed[:, :3] = of_residues
            tones = packed.view(np.uint32).ravel().take(mesh.residue) if len(packed) else np.zeros(len(mesh.residue), np.uint32)
            self._bodies[key] = Body(mesh, tones.view(np.uint8).reshape(-1, 4)[:, :3])
        self._used.add(key)
        return self._bodies[key]

    def _body(self, trace: Trace, detail: Detail, colours: NDArray[np.uint8]) -> Body:
        mask = self.mask(trace)
        if self.style == "surface" and trace in self.surfaces:
            surface = self.surfaces[trace]
            key: tuple[object, ...] = (trace, "surface", id(surface), None if mask is None else mask.tobytes())
            return self._coloured(key, self._mesh(key, partial(_part_of, surface, mask)), colours)
        key = (trace, self.style, detail, None if mask is None else mask.tobytes())
        return self._coloured(key, self._mesh(key, partial(_mesh_of, trace, self.style, detail, mask)), colours)

    def _side_chain(self, pick: Pick, atoms: Atoms, of_carbon: NDArray[np.uint8]) -> Body:
        key = (pick.trace, "atoms", pick.row)
        mesh = self._mesh(key, partial(sticks, atoms.position, atoms.bonds))
        tones = np.array([_ATOM_COLOURS.get(element.upper(), of_carbon) for element in atoms.element], np.uint8).reshape(-1, 3)
        return self._coloured(key, mesh, tones)

    def _ligand(self, trace: Trace, atoms: Atoms, of_carbon: tuple[int, int, int]) -> Body:
        """Return the sticks and balls of a ligand. They are thicker than in side chains, so that a single ion is visible."""
        key = (trace, "ligands")
        mesh = self._mesh(key, partial(sticks, atoms.position, atoms.bonds, _LIGAND_RADIUS))
        tones = np.array([_ATOM_COLOURS.get(element.upper(), of_carbon) for element in atoms.element], np.uint8).reshape(-1, 3)
        return self._coloured(key, mesh, tones)


def hit_colour(number: int) -> tuple[int, int, int]:
    """Return the RGB colour of the hit with this number (0: the query) in lists and in the colour scheme by hit."""
    return colouring.CHAIN_COLOURS[number % len(colouring.CHAIN_COLOURS)]


def _shown_chain(
    trace: Trace, number: int, b_factor: NDArray[np.float32] | None = None, *, is_other_chain: bool = False
) -> colouring.ShownChain:
    if trace.pairs is None:
        return colouring.ShownChain(trace.chains, number, is_other_chain=is_other_chain, b_factor=b_factor, evidence=trace.evidence)
    return colouring.ShownChain(trace.chains, number, trace.pairs.rows, trace.pairs.distance, b_factor=b_factor, evidence=trace.evidence)


def _is_same(trace: Trace, other: Trace) -> bool:
    """Return True if two chains are the same hit or the same query, possibly read twice."""
    if trace is other:
        return True
    if trace.evidence is not other.evidence or trace.name != other.name or trace.path != other.path or bool(trace.hit) != bool(other.hit):
        return False
    keys = ("query_index", "target_index", "cigar")
    return all(trace.hit.get(key) == other.hit.get(key) for key in keys) if trace.hit else trace.residues == other.residues


def _detail(style: str, n_residues: int, maximum_triangles: int) -> Detail:
    """Return the finest detail with at most the maximum number of triangles, or the coarsest detail if all have more."""
    for detail in DETAILS:
        of_residue = _TRIANGLES_OF_BALL * 4**detail.level if style == "spheres" else 2 * detail.steps * detail.sides
        if n_residues * of_residue <= maximum_triangles:
            return detail
    return DETAILS[-1]


def _part_of(surface: Mesh, mask: NDArray[np.bool_] | None) -> Mesh:
    """Return the surface with only the triangles whose corners are on visible residues."""
    return surface if mask is None else replace(surface, triangles=surface.triangles[mask[surface.residue][surface.triangles].all(axis=1)])


def _mesh_of(trace: Trace, style: str, detail: Detail, mask: NDArray[np.bool_] | None) -> Mesh:
    position, number = trace.position, trace.chains.label_number
    if style == "spheres":
        return spheres(position, _SPHERE_RADIUS, detail.level, mask)
    if style in ("ribbon", "surface"):
        return ribbon(position, trace.chains.secondary, detail.steps, detail.sides, mask, number)
    if style == "line":
        return tube(position, _LINE_RADIUS, _LINE_DETAIL.steps, _LINE_DETAIL.sides, mask, number)
    return tube(position, _TUBE_RADIUS, detail.steps, detail.sides, mask, number)
