"""Peers of the sequence search, each run as a program of its own: blastp (Debian's ncbi-blast+) and ssearch36 (Debian's fasta3)."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PEERS", "PeerHit", "installed", "run_peer"]

PEERS = {"blastp": "blastp", "ssearch": "ssearch36"}


@dataclass(frozen=True)
class PeerHit:
    """A hit of a peer; `score` is the raw score, or -1 for ssearch36, whose tabular format has none."""

    query: str
    subject: str
    score: int
    bit_score: float
    e_value: float


def installed(peer: str) -> bool:
    """True if the peer's program is installed."""
    return shutil.which(PEERS[peer]) is not None


def run_peer(
    peer: str,
    queries: Path,
    database: Path,
    maximum_e_value: float,
    maximum_hits: int,
    threads: int = 1,
    *,
    is_adjusted: bool = False,
) -> tuple[list[PeerHit], float]:
    """Return the hits of a peer, the best of each pair, with BLOSUM62 and a gap of k costing 11 + k, and its wall seconds.

    With `is_adjusted`, blastp uses its default composition-based statistics; without, it scores the alignments as they are.
    """
    if peer == "blastp":
        columns, composition = "6 qseqid sseqid score bitscore evalue", "2" if is_adjusted else "0"
        command = [
            "blastp",
            "-query",
            queries,
            "-subject",
            database,
            "-comp_based_stats",
            composition,
            "-seg",
            "no",
            "-evalue",
            maximum_e_value,
            "-max_target_seqs",
            maximum_hits,
            "-outfmt",
            columns,
        ]
    else:
        command = [
            "ssearch36",
            "-q",
            "-s",
            "BL62",
            "-f",
            "-11",
            "-g",
            "-1",
            "-E",
            maximum_e_value,
            "-b",
            maximum_hits,
            "-d",
            "0",
            "-m",
            "8",
            "-T",
            threads,
            queries,
            database,
        ]
    began = time.perf_counter()
    output = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout
    seconds = time.perf_counter() - began
    hits: dict[tuple[str, str], PeerHit] = {}
    for line in output.splitlines():
        words = line.split("\t")
        if peer == "blastp":
            hit = PeerHit(words[0], words[1], int(words[2]), float(words[3]), float(words[4]))
        else:
            hit = PeerHit(words[0], words[1], -1, float(words[11]), float(words[10]))
        hits.setdefault((hit.query, hit.subject), hit)
    return list(hits.values()), seconds
