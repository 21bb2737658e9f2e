"""Colours of each scheme for each residue, distinct for any colour vision, and pictures as scripts."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.structures.chains import Chains
from proteoscope.engine.structures.colouring import (
    CHAIN_COLOURS,
    MAXIMUM_HITS,
    SCALE,
    SCHEMES,
    UNALIGNED,
    ColouredScene,
    ShownChain,
    coloured,
    conservation,
)
from proteoscope.engine.structures.outputs import PictureChain, chain_atoms, write_picture
from proteoscope.engine.structures.reading import read_structure
from proteoscope.engine.structures.residue_atoms import b_factors, residue_atoms
from proteoscope.engine.structures.scripts import ScriptedChain, chimerax_script, pymol_script
from tests.engine.colour_vision import VISIONS, lab, linear
from tests.engine.structures.examples import as_mmcif, as_pdb, atoms_of, helix


def chain(sequence: str, name: str = "one", **columns: NDArray) -> Chains:
    n = len(sequence)
    made = Chains(
        (name,),
        ("",),
        np.array([0, n]),
        helix(n).astype(np.float32),
        np.array([SYMBOLS.index(residue) for residue in sequence], np.int8),
        np.ones(n, np.uint8),
        np.full(n, np.nan, np.float32),
        np.arange(1, n + 1, dtype=np.int32),
        np.zeros(n, np.uint8),
        np.arange(1, n + 1, dtype=np.int32),
    )
    return dataclasses.replace(made, **columns)


def scene(**more: object) -> ColouredScene:
    pairs = np.array([[0, 1], [1, 2], [2, 3]], np.int32)
    hit = ShownChain(chain("WACLE", "hit"), 1, pairs, np.array([0.0, 4.0, 20.0]))
    return ColouredScene((ShownChain(chain("ACIX")), hit), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("eyes", [VISIONS[name] for name in ("full", "protanopia", "deuteranopia")])
def test_structure_hit_colours_differ_for_any_colour_vision(eyes: NDArray) -> None:
    assert len(CHAIN_COLOURS) == MAXIMUM_HITS + 1
    seen = lab(np.clip(linear(np.array([*CHAIN_COLOURS, UNALIGNED])) @ eyes.T, 0, 1))
    distance = np.linalg.norm(seen[:, None] - seen[None], axis=2) + 99.0 * np.eye(len(seen))
    # Two colours are just distinguishable side by side at 2.3.
    assert distance.min() > 10.0
    assert distance[:2, :2].min() > 40.0


def test_colour_scale_lightens_in_even_steps() -> None:
    light = lab(linear(np.array(SCALE)))[:, 0]
    assert (np.diff(light) > 5.0).all() and np.diff(light).max() < 2.5 * np.diff(light).min()


def test_every_colour_scheme_colours_all_residues_with_legend() -> None:
    shown = scene(conservation=np.zeros(4), n_hits=1)
    for scheme in SCHEMES:
        coloured_scene = coloured(shown, scheme.name)
        assert [colour.shape for colour in coloured_scene.colours] == [(4, 3), (5, 3)]
        assert all(colour.dtype == np.uint8 for colour in coloured_scene.colours)
        assert coloured_scene.legend.title and (
            coloured_scene.legend.entries or coloured_scene.legend.scales or scheme.name == "confidence"
        )
    assert {scheme.name for scheme in SCHEMES if scheme.needs(shown)} == {"confidence"}
    alone = ColouredScene((ShownChain(chain("ACDE")),))
    assert {scheme.name for scheme in SCHEMES if scheme.needs(alone)} == {"distance", "identity", "conservation", "confidence"}
    for scheme in SCHEMES:
        assert coloured(alone, scheme.name).colours[0].shape == (4, 3)
    # A file that was read has B-factors, or has none that are numbers.
    for b_factor, lacks in ((np.full(4, np.nan, np.float32), True), (np.array([np.nan, 20, 30, 40], np.float32), False)):
        read = ColouredScene((ShownChain(chain("ACDE"), b_factor=b_factor),))
        assert bool(next(scheme for scheme in SCHEMES if scheme.name == "confidence").needs(read)) is lacks
        assert bool(coloured(read, "confidence").legend.scales) is not lacks


def test_identity_colours_mark_same_similar_other_and_unaligned() -> None:
    coloured_scene = coloured(scene(), "identity")
    same, similar, _, none = (colour for colour, _ in coloured_scene.legend.entries)
    # A-A and C-C are identical; I-L score 2 in BLOSUM62; X of the query has no partner.
    assert coloured_scene.colours[0].tolist() == [list(colour) for colour in (same, same, similar, none)]
    assert coloured_scene.colours[1].tolist() == [list(colour) for colour in (none, same, same, similar, none)]


def test_distance_colours_are_clipped_and_equal_in_both_chains() -> None:
    coloured_scene = coloured(scene(), "distance")
    assert coloured_scene.colours[0][[0, 2, 3]].tolist() == [list(SCALE[0]), list(SCALE[-1]), list(UNALIGNED)]
    assert coloured_scene.colours[0][:3].tolist() == coloured_scene.colours[1][1:4].tolist()


def test_structure_conservation_counts_hits_with_equal_residue() -> None:
    query = chain("ACIX").residue
    pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4]], np.int32)
    hits = [(pairs, chain("WACLX").residue), (pairs[:1], chain("WACLE").residue), (pairs[1:], chain("WWCIE").residue)]
    assert conservation(query, hits).tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 3, 0.0])
    assert conservation(query, []).tolist() == [0.0] * 4


def test_confidence_colours_show_plddt_bands_or_b_factor_scale() -> None:
    predicted = chain("ACDEF", confidence=np.array([95.0, 90.0, 70.0, 50.0, 12.0], np.float32))
    measured = ShownChain(chain("ACDE"), 1, b_factor=np.array([10.0, 20.0, 30.0, np.nan]))
    coloured_scene = coloured(ColouredScene((ShownChain(predicted), measured)), "confidence")
    bands = {text: list(colour) for colour, text in coloured_scene.legend.entries}
    assert coloured_scene.colours[0].tolist() == [bands[name] for name in ("pLDDT over 90", "70 to 90", "50 to 70", "under 50", "under 50")]
    assert coloured_scene.colours[1][3].tolist() == list(UNALIGNED)
    (scale,) = coloured_scene.legend.scales
    assert (scale.low, scale.high) == tuple(np.percentile([10.0, 20.0, 30.0], [5, 95])) and scale.unit == "Å²"


def commands(text: str) -> list[str]:
    return [splitline for splitline in text.splitlines() if splitline and not splitline.startswith("#")]


def numbers_in(text: str) -> set[str]:
    numbers: set[str] = set()
    for part in re.split(r"[+,]", text.replace("\\-", "~")):
        ends = part.split("-") if "~" in part or not part.startswith("-") else [part]
        if len(ends) == 2:
            numbers |= {str(number) for number in range(*(int(end.replace("~", "-")) for end in ends))} | {ends[1].replace("~", "-")}
        else:
            numbers.add(ends[0].replace("~", "-"))
    return numbers


def test_structure_scripts_have_the_colours_of_the_picture() -> None:
    n = 900
    rng = np.random.default_rng(3)
    number = np.arange(n, dtype=np.int32) * 2 - 5
    insertion = np.zeros(n, np.uint8)
    number[11], insertion[11] = number[10], ord("A")
    colours = np.array([[1, 2, 3], [200, 100, 0], [0, 0, 255]], np.uint8)[rng.integers(0, 3, n)]
    colours[11] = colours[10] ^ 255
    scripted = ScriptedChain("query", chain("A" * n, author_number=number, insertion=insertion), colours)
    labels = [f"{a}{chr(b) if b else ''}" for a, b in zip(number.tolist(), insertion.tolist(), strict=True)]
    text = pymol_script([scripted])
    assert max(map(len, text.splitlines())) < 1000
    got: dict[str, str] = {}
    for line in commands(text):
        if match := re.fullmatch(r"color 0x(\w{6}), query(?: and resi (.*))?", line):
            for label in (
                numbers_in(match[2]) if match[2] else [f"{a}{chr(b) if b else ''}" for a, b in zip(number, insertion, strict=True)]
            ):
                got[label] = match[1]
    want = {label: bytes(colour.tolist()).hex() for label, colour in zip(labels, colours, strict=True)}
    assert {label: got[label] for label in want} == want
    for line in commands(chimerax_script([scripted])):
        assert re.fullmatch(r"[\w #,.:@-]+", line)


def test_structure_scripts_contain_no_commands_from_names(tmp_path: Path) -> None:
    path = tmp_path / "x;system('touch owned').cif"
    path.write_bytes(as_mmcif(atoms_of(helix(9)), shift=-4))
    chains = read_structure(path).chains
    insertion = chains.insertion.copy()
    insertion[3] = ord(";")
    hostile = dataclasses.replace(chains, insertion=insertion, names=("a;delete all",))
    colours = coloured(ColouredScene((ShownChain(hostile),)), "rainbow").colours[0]
    shown = np.arange(9) > 1
    parts = [
        PictureChain(ScriptedChain("query", hostile, colours), chain_atoms(path, chains)),
        PictureChain(ScriptedChain("hit_1", hostile, colours, shown), None, np.eye(3), np.array([1.0, 2.0, 3.0])),
    ]
    for style in ("ribbon", "tube", "line", "spheres"):
        written = write_picture(tmp_path, parts, style)  # type: ignore[arg-type]
        for script in (path for path in written if path.suffix in (".pml", ".cxc")):
            assert not re.search(r"touch|owned|system|delete|;|\$|`|'", script.read_text())
    assert [path.name for path in written] == ["query.cif", "query.pdb", "hit_1.cif", "hit_1.pdb", "picture.pml", "picture.cxc"]
    moved = read_structure(tmp_path / "hit_1.pdb").chains.position
    assert np.allclose(moved, chains.position + np.array([1.0, 2.0, 3.0]), atol=2e-3)
    with pytest.raises(ValueError, match="must differ, and consist of ASCII"):
        write_picture(tmp_path, [PictureChain(ScriptedChain("../up", hostile, colours))])


def test_residue_atoms_reads_atoms_from_the_file_of_the_chain(tmp_path: Path) -> None:
    path = tmp_path / "one.pdb"
    rows = atoms_of(helix(6))
    place = helix(6)[2]
    more = [
        ("ATOM", name, "", "MSE", "A", 3, "", *(place + shift), 1.0, 33.0) for name, shift in (("CB", [1.1, 1.1, 0]), ("CG", [1.1, 2.6, 0]))
    ]
    path.write_bytes(as_pdb([*rows[:9], *more, *rows[9:]]))
    chains = read_structure(path).chains
    atoms = residue_atoms(path, chains, np.array([2]))
    assert atoms.name == ("CA", "CB", "CG") and set(atoms.residue.tolist()) == {2}
    assert atoms.bonds.tolist() == [[0, 1], [1, 2]]
    whole = residue_atoms(path, chains, np.array([1, 2]), with_backbone=True)
    assert len(whole.name) == 8 and b_factors(path, chains).tolist() == [20.0] * 6
    bare = tmp_path / "bare.pdb"
    bare.write_bytes(as_pdb([row for row in rows if row[1] == "CA"]))
    with pytest.raises(InputError, match="only Cα atoms"):
        residue_atoms(bare, read_structure(bare).chains, np.array([2]))
    with pytest.raises(InputError, match="has changed"):
        residue_atoms(path, dataclasses.replace(chains, position=chains.position + 1), np.array([2]))
    path.unlink()
    with pytest.raises(InputError):
        residue_atoms(path, chains, np.array([2]))
