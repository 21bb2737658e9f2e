"""Indexes in the cache that were changed together with their checksums, and searches with them.

    python -m tests.fuzz.indexes [--searches] [--one-of N]

Every column of a peptide index and of a packed database, of a thousand proteins, is corrupted in every way, and opened. Indexes that are
not rejected are searched, in this process: if it crashes, the last line names the corruption. With ``--searches``, rejected indexes are
searched too, through the cache, which must rebuild them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from proteoscope.engine.errors import InputError
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.parameters import read_preset
from proteoscope.engine.project.index_store import index_store
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from tests.fuzz.places import IN_MEMORY
from tests.searching import align, few_proteins, identify

SAMPLES = Path(__file__).resolve().parents[2] / "resources" / "samples"
SPECTRA = SAMPLES / "Ecoli_MS2_small.mzML.gz"
QUERY = ">query\nMKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVKLVNELTEFAK\n"

Way = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _extreme(value: str) -> Way:
    def change(column: np.ndarray, _: np.random.Generator) -> np.ndarray:
        limits = np.finfo(column.dtype) if column.dtype.kind == "f" else np.iinfo(column.dtype)
        return np.full_like(column, getattr(limits, value))

    return change


def _one(value: str) -> Way:
    def change(column: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        changed = column.copy()
        if len(changed):
            changed[generator.integers(len(changed))] = _extreme(value)(column[:1], generator)[0]
        return changed

    return change


def _random_bytes(column: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return np.frombuffer(generator.bytes(column.nbytes), column.dtype)


WAYS: dict[str, Way] = {
    "empty": lambda column, _: column[:0],
    "one less": lambda column, _: column[:-1],
    "one more": lambda column, _: np.concatenate((column, column[-1:])),
    "zeros": lambda column, _: np.zeros_like(column),
    "all largest": _extreme("max"),
    "all smallest": _extreme("min"),
    "one largest": _one("max"),
    "one smallest": _one("min"),
    "turned round": lambda column, _: column[::-1],
    "shuffled": lambda column, generator: generator.permutation(column),
    "random": _random_bytes,
    "not a number": lambda column, _: np.full_like(column, np.nan) if column.dtype.kind == "f" else ~column,
    "wider": lambda column, _: column.astype(np.float64 if column.dtype.itemsize < 8 else np.complex128),
    "two dimensions": lambda column, _: column[: len(column) // 2 * 2].reshape(2, -1),
    "other end first": lambda column, _: column.astype(column.dtype.newbyteorder(">")),
    "pickled": lambda column, _: np.array([None] * min(3, len(column)), object),
}


def seal(path: Path) -> None:
    """Renew size and checksum of a file in the manifest of its index."""
    folder = path.parent
    manifest = json.loads((folder / "manifest.json").read_text())
    (record,) = (record for record in manifest["files"] if record["path"] == path.name)
    content = path.read_bytes()
    record["bytes"], record["crc32"] = len(content), [zlib.crc32(content)] if content else []  # the checksum of its only chunk
    (folder / "manifest.json").write_text(json.dumps(manifest))


def corrupt(folder: Path, seed: int = 0) -> Iterator[str]:
    """Corrupt the index in `folder` in each way in turn, starting from the original, and yield descriptions."""
    retained = folder.with_name("originals")
    shutil.copytree(folder, retained)
    for path in sorted(retained.glob("*.npy")):
        for name, way in WAYS.items():
            changed = way(np.load(path), np.random.default_rng(seed))
            np.save(folder / path.name, changed, allow_pickle=True)
            seal(folder / path.name)
            yield f"{path.stem}: {name}"
            _renew(folder, retained, path.name)
        for name, content in (("no header", b""), ("half a header", path.read_bytes()[:40]), ("false shape", _longer(path.read_bytes()))):
            (folder / path.name).write_bytes(content)
            seal(folder / path.name)
            yield f"{path.stem}: {name}"
            _renew(folder, retained, path.name)
    for path in sorted(set(retained.glob("*.json")) - {retained / "manifest.json"}):
        for name in json.loads(path.read_text()):
            for value in (-1, 1 << 40, 1.5, None, True, "x", [], {}):
                (folder / path.name).write_text(json.dumps({**json.loads(path.read_text()), name: value}))
                seal(folder / path.name)
                yield f"{path.stem}.{name}: {value!r}"
                _renew(folder, retained, path.name)
    shutil.rmtree(retained)


def _renew(folder: Path, originals: Path, name: str) -> None:
    """Restore a corrupted file and the manifest of an index."""
    folder.mkdir(exist_ok=True)
    shutil.copyfile(originals / name, folder / name)
    shutil.copyfile(originals / "manifest.json", folder / "manifest.json")


def _longer(content: bytes) -> bytes:
    """Return a column whose header announces far more than there is."""
    start, _, rest = content.partition(b"'shape': (")
    return start + b"'shape': (999999999999,), }".ljust(len(rest[: rest.index(b"\n")]) + 10) + rest[rest.index(b"\n") :]


def search_peptides(folder: Path) -> None:
    """Identify."""
    parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
    identify([SPECTRA], [few_proteins(folder)], folder / "project", parameters, device="cpu", threads=2, progress=Progress())


def search_sequences(folder: Path) -> None:
    """Align."""
    (folder / "query.fasta").write_text(QUERY)
    align(
        [folder / "query.fasta"],
        [few_proteins(folder)],
        folder / "hits.tsv",
        SequenceSearchParameters(),
        all_scores=folder / "scores.npy",
        device="cpu",
        threads=2,
        progress=Progress(),
    )


def run(every: bool, one_of: int, folder: Path) -> tuple[int, list[str]]:
    """Corrupt and search both kinds of index.

    Returns
    -------
    tuple
        Number of corruptions, and those that were not rejected; one in `one_of` of these is searched.
    """
    n, taken = 0, []
    for search, kind in ((search_peptides, "peptides"), (search_sequences, "sequences")):
        subfolder = folder / kind
        subfolder.mkdir()
        search(subfolder)
        (index,) = [stored.folder for stored in index_store(kind).indexes() if stored.kind == kind]
        for what in corrupt(index):
            n += 1
            if not every and _is_refused(kind, index):
                continue
            print(f"not rejected: {what}", flush=True)
            taken.append(what)
            if every or len(taken) % one_of == 0:
                try:
                    search(subfolder)
                except InputError as error:
                    # A name in the tables may be one that no export can write.
                    print(f"reported: {error}", flush=True)
    return n, taken


def _is_refused(kind: str, index: Path) -> bool:
    from proteoscope.engine.peptides.digestion import Digestion
    from proteoscope.engine.peptides.peptide_index import open_peptide_index
    from proteoscope.engine.peptides.protein_index import open_protein_index
    from proteoscope.engine.project.index_store import InvalidIndexError
    from proteoscope.engine.sequences.database import _open

    try:
        if kind == "sequences":
            _open(index)
        else:
            parameters = IdentificationParameters.checked(read_preset("identify", "low-resolution"))
            open_peptide_index(index, open_protein_index(index), Digestion.from_settings(parameters, parameters.specificity))
    except InvalidIndexError:
        return True
    return False


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", action="store_true", help="search rejected indexes too")
    parser.add_argument("--one-of", type=int, default=1, metavar="N", help="search every Nth index that is not rejected")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proteoscope-fuzz-", dir=IN_MEMORY) as folder:
        n, taken = run(options.searches, options.one_of, Path(folder))
    print(f"{n} corrupt indexes, {len(taken)} of them not refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
