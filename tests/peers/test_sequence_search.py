"""The sequence search beside BLAST+ and SSEARCH: scores, bit scores and E-values of real proteins."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sequence_peers import installed, run_peer

from engine.sequence_search.parameters import SequenceSearchParameters
from engine.sequence_search.search import align

pytestmark = pytest.mark.peers
MAX_E_VALUE, MOST_HITS = 1.0, 400


def first_records(path, n, target):
    records = path.read_text().split("\n>")
    target.write_text("\n>".join(records[:n]) + "\n")
    return target


@pytest.fixture(scope="module")
def searched(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    queries = first_records(shared_data / "sequences" / "mmseqs_QUERY.fasta", 25, folder / "queries.fasta")
    database = shared_data / "sequences" / "mmseqs_DB.fasta"
    parameters = SequenceSearchParameters(max_e_value=100 * MAX_E_VALUE, top=20_000)
    align([queries], [database], folder / "hits.tsv", parameters, project_folder=folder / "project")
    with (folder / "hits.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return queries, database, {(row["query"], row["subject"]): row for row in rows}


@pytest.mark.skipif(not installed("blastp"), reason="blastp is not installed")
def test_blast_finds_no_better_score_and_gives_the_same_e_value_to_the_same(searched):
    queries, database, ours = searched
    found, _ = run_peer("blastp", queries, database, MAX_E_VALUE, MOST_HITS)
    assert len(found) > 500
    n_same = 0
    for hit in found:
        row = ours[hit.query, hit.subject]
        # E-values are printed with few digits. Newer versions of BLAST score X -1 with everything; the matrix file says 0 to -4.
        assert int(row["score"]) >= hit.score - 2
        if int(row["score"]) == hit.score:
            n_same += 1
            assert float(row["bit_score"]) == pytest.approx(hit.bit_score, rel=0.012, abs=0.06)
            if hit.e_value > 1e-170:
                assert float(row["e_value"]) == pytest.approx(hit.e_value, rel=0.06, abs=0.0006)
    assert n_same > 0.7 * len(found)


@pytest.mark.skipif(not installed("ssearch"), reason="ssearch36 is not installed")
def test_ssearchs_hits_are_ours_and_e_values_agree_in_size(searched):
    """SSEARCH fits its statistics to each search, so that E-values agree within an order or two of magnitude, not in digits."""
    queries, database, ours = searched
    found, _ = run_peer("ssearch", queries, database, 1e-3, MOST_HITS)
    assert len(found) > 200
    assert all((hit.query, hit.subject) in ours for hit in found)
    weak = [hit for hit in found if hit.e_value > 1e-12]
    differences = [math.log10(float(ours[hit.query, hit.subject]["e_value"]) / hit.e_value) for hit in weak]
    assert abs(float(np.median(differences))) < 1.5
