"""Database information on identified proteins as tables of a run: features, and positions of reading frames."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from proteoscope.engine.arrays import Texts
from proteoscope.engine.formats.features import FEATURES, features_table
from proteoscope.engine.formats.translation import parse_frame_name
from proteoscope.engine.matches.columns import READING_FRAMES
from proteoscope.engine.peptides.protein_index import ProteinIndex
from proteoscope.engine.project.run import Run

__all__ = ["write_protein_knowledge"]


def write_protein_knowledge(run: Run, proteins: ProteinIndex, accessions: Iterable[str], *, is_translated: bool) -> None:
    """Write the features and reading frames of proteins as tables of a run.

    Parameters
    ----------
    run : Run
        Run to which the tables `FEATURES` and `READING_FRAMES` are written, if the database contains the information.
    proteins : ProteinIndex
        Proteins of the search.
    accessions : iterable of str
        Accessions of the identified proteins, in the order of the rows.
    is_translated : bool
        True if the proteins are translated from reading frames.

    Raises
    ------
    StorageError
        If writing fails.
    """
    wanted = list(accessions)
    if is_translated:
        positions = [(accession, position) for accession in wanted if (position := parse_frame_name(accession)) is not None]
        names = ("sequence", "first", "last", "strand")
        columns: dict[str, Any] = {name: [getattr(position, name) for _, position in positions] for name in names}
        run.write_table(READING_FRAMES.name, READING_FRAMES.arrow({"accession": [accession for accession, _ in positions], **columns}))
    if proteins.features is not None:
        stored = Texts(proteins.proteins.accession_bytes, proteins.proteins.accession_offsets)[: proteins.n_targets].strings()
        numbers = {accession: i for i, accession in enumerate(stored)}
        chosen = np.array([numbers[accession] for accession in wanted if accession in numbers], np.int64)
        features = proteins.features.take(chosen)
        # Feature positions of a variant count from the start of the excised sequence.
        shift = np.repeat(proteins.first_in_whole()[chosen], np.diff(features.offsets)).astype(np.int32)
        features = replace(features, first=features.first + shift, last=features.last + shift)
        run.write_table(FEATURES.name, features_table([stored[i] for i in chosen.tolist()], features))
