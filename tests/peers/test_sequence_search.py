"""The sequence search compared with BLAST+ and SSEARCH: scores, bit scores and E-values of real proteins, and domains of SCOP."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from benchmarks import sequence_search as benchmark
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequence_search.parameters import SequenceSearchParameters
from tests.peers.sequence_peers import PEERS, installed, run_peer
from tests.searching import align

pytestmark = pytest.mark.peers
MAXIMUM_E_VALUE, MAXIMUM_HITS = 1.0, 400


def first_records(path, n, target):
    records = path.read_text().split("\n>")
    target.write_text("\n>".join(records[:n]) + "\n")
    return target


@pytest.fixture(scope="module")
def searched(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    queries = first_records(shared_data / "sequences" / "mmseqs_QUERY.fasta", 25, folder / "queries.fasta")
    database = shared_data / "sequences" / "mmseqs_DB.fasta"
    parameters = SequenceSearchParameters(maximum_e_value=100 * MAXIMUM_E_VALUE, hits_per_query=20_000, composition=False)
    align([queries], [database], folder / "hits.tsv", parameters, project_folder=folder / "project")
    with (folder / "hits.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return queries, database, {(row["query"], row["subject"]): row for row in rows}


@pytest.mark.skipif(not installed("blastp"), reason="blastp is not installed")
def test_alignment_scores_and_e_values_equal_blast(searched):
    queries, database, ours = searched
    actual, _ = run_peer("blastp", queries, database, MAXIMUM_E_VALUE, MAXIMUM_HITS)
    assert len(actual) > 500
    n_same = 0
    for hit in actual:
        row = ours[hit.query, hit.subject]
        # E-values are printed with few digits. Newer versions of BLAST score X -1 with everything; the matrix file has 0 to -4.
        assert int(row["score"]) >= hit.score - 2
        if int(row["score"]) == hit.score:
            n_same += 1
            assert float(row["bit_score"]) == pytest.approx(hit.bit_score, rel=0.012, abs=0.06)
            if hit.e_value > 1e-170:
                assert float(row["e_value"]) == pytest.approx(hit.e_value, rel=0.06, abs=0.0006)
    assert n_same > 0.7 * len(actual)


@pytest.mark.skipif(not installed("ssearch"), reason="ssearch36 is not installed")
def test_sequence_hits_equal_ssearch_with_similar_e_values(searched):
    """SSEARCH fits its statistics to each search, so E-values agree within an order or two of magnitude, not in digits."""
    queries, database, ours = searched
    actual, _ = run_peer("ssearch", queries, database, 1e-3, MAXIMUM_HITS)
    assert len(actual) > 200
    assert all((hit.query, hit.subject) in ours for hit in actual)
    weak = [hit for hit in actual if hit.e_value > 1e-12]
    differences = [math.log10(float(ours[hit.query, hit.subject]["e_value"]) / hit.e_value) for hit in weak]
    assert abs(float(np.median(differences))) < 1.5


@pytest.fixture(scope="module")
def scop(shared_data):
    """Every 150th domain against all: the database, the labels, the queries and the hits of this program."""
    database = benchmark.read_sequences([shared_data / "sequences" / "scop40.fa"], Progress())
    place = {database.accession(i): i for i in range(len(database))}
    labels = benchmark.Scop(shared_data / "sequences", list(place))
    numbers, queries = np.array([place[name] for name in labels.number]), np.arange(0, len(labels), 150)
    actual, _ = benchmark.searched(database, numbers, queries, 2, is_adjusted=True)
    return database, labels, numbers, queries, actual


@pytest.mark.parametrize("peer", PEERS)
def test_sequence_search_finds_as_many_scop_domains_as_peers(scop, shared_data, tmp_path, peer):
    if not installed(peer):
        pytest.skip(f"{peer} is not installed")
    database, labels, numbers, queries, ours = scop
    names, path = list(labels.number), tmp_path / "queries.fasta"
    path.write_text("".join(f">{names[k]}\n{benchmark.decode(database.codes(int(numbers[k])))}\n" for k in queries))
    theirs, _ = benchmark.found_by_peer(peer, path, shared_data / "sequences" / "scop40.fa", labels, 2)
    at_first_error = [benchmark.first_error(actual, labels, queries) for actual in (ours, theirs)]
    for level in ("family", "superfamily"):
        assert at_first_error[0][level] > at_first_error[1][level] - 0.03
    rate = benchmark.ERRORS_PER_QUERY.index(0.1)
    curves = [benchmark.coverage(actual, labels, queries, 1)["linear"][rate] for actual in (ours, theirs)]
    assert curves[0] > curves[1] - 0.03


def test_coverage_of_scop_benchmark_equals_the_definition(scop):
    """Compute coverage hit by hit, on a few hundred hits of this program."""
    _, labels, _, queries, actual = scop
    retained = np.sort(np.random.default_rng(1).choice(len(actual.query), 400, replace=False))
    few = benchmark.Found(actual.query[retained], actual.subject[retained], actual.e_value[retained], actual.score[retained])
    ranked = sorted(zip(few.e_value, -few.score, few.query, few.subject, strict=True))
    for level in range(3):
        group = labels.label[:, level]
        relatives = {q: sum(group == group[q]) - 1 for q in queries}
        having = [q for q in queries if relatives[q]]
        for name, weight in (
            ("unweighted", lambda q: 1 / sum(relatives.values())),  # noqa: B023 - called in this iteration
            ("linear", lambda q: 1 / relatives[q] / len(having)),  # noqa: B023
            (
                "quadratic",
                lambda q: (
                    1 / relatives[q] / sum(group[domain] == group[q] for domain in having) / len({group[domain] for domain in having})  # noqa: B023
                ),
            ),
        ):
            expected = []
            for rate in benchmark.ERRORS_PER_QUERY:
                errors, reached = 0, 0.0
                for _, _, q, s in ranked:
                    errors += labels.label[q, 2] != labels.label[s, 2]
                    if errors > round(rate * len(queries)):
                        break
                    reached += weight(q) if group[q] == group[s] else 0.0
                expected.append(reached)
            assert benchmark.coverage(few, labels, queries, level)[name] == pytest.approx(expected, abs=1e-4), (level, name)
