"""Classes of matches, compared with their definitions."""

from types import SimpleNamespace

import numpy as np
import pytest

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.matches.class_counts import CLASSES, TRANSLATED
from proteoscope.engine.matches.match_classes import class_names, classify_matches, classify_second_pass
from proteoscope.engine.peptides.protein_index import ProteinIndex

N_VARIABLE, N_KNOWN = 2, 3


def protein_index(random, *, kinds="tvc", stops=()):
    """Return an index of eight proteins: two targets (t), a variant of the first (v), and a contaminant (c), and their decoys."""
    sequences = ["".join(random.choice(list("ACDKRPMGL"), 60)) for _ in range(4)]
    sequences = ["M" + text for text in sequences]
    sequences += [text[::-1] for text in sequences]
    lengths = list(map(len, sequences))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    names = [f"P{i}" for i in range(4)] + [f"DECOY_P{i}" for i in range(4)]
    texts = SimpleNamespace(
        offsets=offsets,
        residues=np.frombuffer("".join(sequences).encode(), np.uint8),
        accession_bytes=np.frombuffer("".join(names).encode(), np.uint8),
        accession_offsets=np.concatenate(([0], np.cumsum(list(map(len, names))))),
    )
    replaced = np.column_stack((np.arange(8), np.zeros(8, int), np.zeros(8, int)))
    replaced[[2, 6], 0] = [0, 4]
    of_database = SimpleNamespace(modifications=("a", "b", "c")[:N_KNOWN])
    return sequences, ProteinIndex(
        _Proteins(texts, 8),
        4,
        "DECOY_",
        1 if "c" in kinds else 0,
        replaced=replaced if "v" in kinds else None,
        known_modifications=of_database,
        stops=np.array(stops, np.int64),
    )


class _Proteins:
    """Columns of proteins, with their number."""

    def __init__(self, columns, n):
        self.__dict__.update(vars(columns))
        self._n = n

    def __len__(self):
        return self._n


def drawn_matches(random, index, n):
    """Draw matches with one to three occurrences within proteins, and up to two modifications."""
    counts, n_modifications = random.integers(1, 4, n), random.integers(0, 3, n)
    length = random.integers(5, 12, n)
    occurrences = [
        int(index.proteins.offsets[protein]) + int(random.choice([0, 1, 50 - size, random.integers(0, 61 - size)]))
        for size, count in zip(length.tolist(), counts.tolist(), strict=True)
        for protein in random.integers(0, 4, count) + 4 * random.integers(0, 2)
    ]

    class Matches(SimpleNamespace):
        def __len__(self):
            return n

    return Matches(
        occurrence_offsets=np.concatenate(([0], np.cumsum(counts))),
        occurrences=np.array(occurrences),
        length=length,
        isotope_error=random.choice([0, 0, 1, -1], n),
        modification_offsets=np.concatenate(([0], np.cumsum(n_modifications))),
        modification=random.choice([0, 1, 2, 4, 5, 6, 7], int(n_modifications.sum()), p=[0.3, 0.2, 0.05, 0.05, 0.1, 0.2, 0.1]),
    )


def defined_class(matches, row, sequences, index, agent, kinds, clip_methionine):
    """Return the last class that applies, by plain loops over the occurrences."""
    applies = ["specific"]
    if matches.isotope_error[row]:
        applies.append("isotope error")
    table, ends, origins, stops = agent.cleavage_table(), [], [], set(index.stops.tolist())
    for place in range(matches.occurrence_offsets[row], matches.occurrence_offsets[row + 1]):
        position = int(matches.occurrences[place])
        number = max(i for i in range(8) if index.proteins.offsets[i] <= position)
        start = position - int(index.proteins.offsets[number])
        stop, text = start + int(matches.length[row]), sequences[number]

        def is_cut(at, text=text, offset=int(index.proteins.offsets[number])):
            if at in (0, len(text)) or {at + offset - 1, at + offset} & stops:
                return True
            return bool(table[ord(text[at - 1]) - 65, ord(text[at]) - 65])

        first = start - 1  # of the protein, or of a part of it after a stop
        before = int(index.proteins.offsets[number]) + first
        is_first = first == 0 or (first > 0 and bool({before - 1, before} & stops))
        clipped = clip_methionine and is_first and text[first] == "M"
        ends.append((is_cut(start) or clipped) + is_cut(stop))
        origins.append(number % 4)
    if max(ends) < 2:
        applies.append("semi-specific" if max(ends) == 1 else "non-specific")
    which = matches.modification[matches.modification_offsets[row] : matches.modification_offsets[row + 1]]
    if any(N_VARIABLE <= number < N_VARIABLE + N_KNOWN for number in which):
        applies.append("known modification")
    if "v" in kinds and set(origins) == {2}:
        applies.append("variant")
    if "c" in kinds and set(origins) == {3}:
        applies.append("contaminant")
    return applies[-1]


@pytest.mark.parametrize("name", ["Trypsin", "Asp-N", "unspecific cleavage"])
@pytest.mark.parametrize(("kinds", "clip_methionine"), [("tvc", True), ("t", True), ("tc", False)])
def test_match_classes_equal_their_definition(name, kinds, clip_methionine):
    random, agent = np.random.default_rng(4), enzyme(name)
    sequences, index = protein_index(random, kinds=kinds, stops=(20, 85) if kinds == "t" else ())
    matches = drawn_matches(random, index, 3000)
    computed = classify_matches(matches, index, agent, N_VARIABLE, clip_methionine=clip_methionine)
    defined = [defined_class(matches, row, sequences, index, agent, kinds, clip_methionine) for row in range(3000)]
    assert [CLASSES[number] for number in computed.tolist()] == defined
    expected = {"specific", "isotope error", "known modification"}
    expected |= {name for name, kind in (("variant", "v"), ("contaminant", "c")) if kind in kinds}
    assert set(defined) >= expected
    assert ({"semi-specific", "non-specific"} <= set(defined)) == (not agent.is_unspecific)


def test_second_pass_is_the_last_match_class():
    classes = classify_second_pass(np.array([0, 3]), 2)
    assert [CLASSES[number] for number in classes.tolist()] == ["specific", "non-specific", "second pass", "second pass"]
    assert class_names(is_translated=True) == (TRANSLATED, *CLASSES[1:])
