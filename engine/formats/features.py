"""What databases know of a protein beyond its sequence: features from a first to a last residue, as columns, and their kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, offsets_of, take_runs

__all__ = ["FEATURE_GROUPS", "FEATURE_KINDS", "FeatureKind", "FeatureRow", "Features", "kind_code"]

MAXIMUM_TEXT_BYTES = 300
"""Of a feature's description; the longest that say more than references have some 200."""


class FeatureKind(NamedTuple):
    """A kind of feature.

    `name`: in tables. `group`: one of `FEATURE_GROUPS`. `names`: what formats call it: UniProt's key in text and type in XML, then the
    feature keys of GenBank and EMBL.
    """

    name: str
    group: str
    names: tuple[str, ...]


FEATURE_GROUPS = ("chain", "domain", "site", "modification", "disulfide bond", "variant", "secondary structure")
"""Groups of kinds, by which pictures colour and filter, in the order of their rows."""

FEATURE_KINDS = (
    FeatureKind("signal peptide", "chain", ("SIGNAL", "sig_peptide")),
    FeatureKind("transit peptide", "chain", ("TRANSIT", "transit_peptide")),
    FeatureKind("propeptide", "chain", ("PROPEP", "propeptide", "proprotein")),
    FeatureKind("initiator methionine", "chain", ("INIT_MET",)),
    FeatureKind("chain", "chain", ("CHAIN", "mat_peptide")),
    FeatureKind("peptide", "chain", ("PEPTIDE",)),
    FeatureKind("domain", "domain", ("DOMAIN",)),
    FeatureKind("repeat", "domain", ("REPEAT",)),
    FeatureKind("zinc finger", "domain", ("ZN_FING", "zinc finger region")),
    FeatureKind("coiled coil", "domain", ("COILED", "coiled-coil region")),
    FeatureKind("motif", "domain", ("MOTIF", "short sequence motif")),
    FeatureKind("region", "domain", ("REGION", "region of interest", "Region", "misc_feature")),
    FeatureKind("compositional bias", "domain", ("COMPBIAS", "compositionally biased region")),
    FeatureKind("DNA binding", "domain", ("DNA_BIND", "DNA-binding region")),
    FeatureKind("nucleotide binding", "domain", ("NP_BIND", "nucleotide phosphate-binding region")),
    FeatureKind("calcium binding", "domain", ("CA_BIND", "calcium-binding region")),
    FeatureKind("topological domain", "domain", ("TOPO_DOM",)),
    FeatureKind("transmembrane", "domain", ("TRANSMEM", "transmembrane region")),
    FeatureKind("intramembrane", "domain", ("INTRAMEM", "intramembrane region")),
    FeatureKind("active site", "site", ("ACT_SITE",)),
    FeatureKind("binding site", "site", ("BINDING", "misc_binding", "Het")),
    FeatureKind("metal binding", "site", ("METAL", "metal ion-binding site")),
    FeatureKind("site", "site", ("SITE", "Site")),
    FeatureKind("modified residue", "modification", ("MOD_RES",)),
    FeatureKind("lipidation", "modification", ("LIPID", "lipid moiety-binding region")),
    FeatureKind("glycosylation", "modification", ("CARBOHYD", "glycosylation site")),
    FeatureKind("cross-link", "modification", ("CROSSLNK",)),
    FeatureKind("non-standard residue", "modification", ("NON_STD", "non-standard amino acid", "SE_CYS")),
    FeatureKind("disulfide bond", "disulfide bond", ("DISULFID", "Bond")),
    FeatureKind("variant", "variant", ("VARIANT", "sequence variant", "variation", "Variation")),
    FeatureKind("splice variant", "variant", ("VAR_SEQ", "splice variant", "VARSPLIC")),
    FeatureKind("mutagenesis", "variant", ("MUTAGEN", "mutagenesis site")),
    FeatureKind("sequence conflict", "variant", ("CONFLICT", "conflict")),
    FeatureKind("sequence uncertainty", "variant", ("UNSURE", "unsure residue", "unsure")),
    FeatureKind("helix", "secondary structure", ("HELIX",)),
    FeatureKind("strand", "secondary structure", ("STRAND",)),
    FeatureKind("turn", "secondary structure", ("TURN",)),
)
"""All kinds that are kept; ends of fragments and the sources of sequences are none."""
_CODES = {name: code for code, kind in enumerate(FEATURE_KINDS) for name in (kind.name, *kind.names)}
_STRUCTURES = {"helix": "helix", "sheet": "strand", "strand": "strand", "turn": "turn"}
"""What GenBank's ``SecStr`` says in its qualifier."""


def kind_code(name: str, detail: str = "") -> int:
    """Place in `FEATURE_KINDS` of the kind that a format calls so, -1 where it is none; `detail` is GenBank's for secondary structures.

    >>> FEATURE_KINDS[kind_code("SIGNAL")].name, FEATURE_KINDS[kind_code("modified residue")].name, kind_code("source")
    ('signal peptide', 'modified residue', -1)
    """
    return _CODES.get(_STRUCTURES.get(detail, "") if name == "SecStr" else name, -1)


class FeatureRow(NamedTuple):
    """A feature as it is read: its place in `FEATURE_KINDS`, first and last residue from 1, description."""

    kind: int
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Features:
    """Features of n proteins (CSR): those of protein i are rows `offsets[i]:offsets[i + 1]`.

    Attributes
    ----------
    offsets : (n + 1,) int64. kind : (f,) uint8, places in `FEATURE_KINDS`. first, last : (f,) int32, residues from 1, the last included.
    texts : f descriptions.
    """

    offsets: NDArray[np.int64]
    kind: NDArray[np.uint8]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    texts: Texts

    @classmethod
    def none(cls, n: int) -> Features:
        """No feature of n proteins."""
        empty = np.zeros(0, np.int32)
        return cls(np.zeros(n + 1, np.int64), empty.astype(np.uint8), empty, empty, Texts.of(()))

    @classmethod
    def of(cls, rows: Sequence[Sequence[FeatureRow]]) -> Features:
        """Those of some proteins, as they were read."""
        flat = [row for of_protein in rows for row in of_protein]
        kind, first, last, texts = zip(*flat, strict=True) if flat else ((), (), (), ())
        offsets = offsets_of(np.fromiter(map(len, rows), np.int64, len(rows)))
        return cls(offsets, np.array(kind, np.uint8), np.array(first, np.int32), np.array(last, np.int32), Texts.of(map(_cut, texts)))

    @classmethod
    def joined(cls, parts: Sequence[Features]) -> Features:
        """Those of several sets of proteins, one behind the other."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        text_lengths = np.concatenate([np.diff(part.texts.offsets) for part in parts])
        kind, first, last = (np.concatenate([getattr(part, name) for part in parts]) for name in ("kind", "first", "last"))
        return cls(
            offsets_of(lengths), kind, first, last, Texts(np.concatenate([part.texts.own for part in parts]), offsets_of(text_lengths))
        )

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, proteins: NDArray[np.int64]) -> Features:
        """Those of some proteins, in that order."""
        rows, offsets = take_runs(np.arange(len(self)), self.offsets, proteins)
        return Features(offsets, self.kind[rows], self.first[rows], self.last[rows], self.texts.take(rows))


def _cut(text: str) -> str:
    """A description on one line and of no more than `MAXIMUM_TEXT_BYTES` letters."""
    return " ".join(text[: 4 * MAXIMUM_TEXT_BYTES].split())[:MAXIMUM_TEXT_BYTES]
