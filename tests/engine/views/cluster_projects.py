"""Projects with a clustering or an explanation for tests of views, with tables as the engine writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from proteoscope.engine.clustering.parameters import ClusteringParameters, ExplanationParameters
from proteoscope.engine.project import Project
from tests.engine.identification_tables import identification
from tests.engine.views.result_projects import project_with_results, run_spectra

SIZES = (6, 4, 3, 2, 1, 1, 1)
"""Number of spectra of each cluster, in descending order; a size of 1 is not a cluster."""


def _spectra(rows: list[tuple[np.ndarray, np.ndarray]]) -> pa.Table:
    return pa.table(
        {
            "spectrum": pa.array(range(len(rows)), pa.int64()),
            "mz": pa.array([mz.tolist() for mz, _ in rows], pa.large_list(pa.float64())),
            "intensity": pa.array([intensity.tolist() for _, intensity in rows], pa.large_list(pa.float32())),
        }
    )


def project_with_clusters(folder: Path, *, sizes: tuple[int, ...] = SIZES, with_labels: bool = False, with_spectra: bool = True) -> Project:
    """Return a project with one finished clustering; spectra have the peaks of their consensus and random peaks."""
    random = np.random.default_rng(11)
    spectra, precursors, consensus, clusters, members = [], [], [], [], []
    for number, size in enumerate(sizes, start=1):
        mz, intensity = np.sort(random.uniform(150, 1200, 25)), random.lognormal(4, 1, 25)
        precursor, charge = float(random.uniform(400, 900)), int(random.choice([2, 3]))
        for member in range(size):
            noise = random.uniform(150, 1200, 10)
            peak_mz = np.concatenate((mz + random.normal(0, 0.004, 25), noise))
            order = np.argsort(peak_mz)
            heights = np.concatenate((intensity * random.uniform(0.7, 1.3, 25), random.lognormal(2, 0.5, 10)))
            spectra.append((peak_mz[order], heights[order]))
            precursors.append((precursor + 0.001 * member, 1 << charge))
            members.append(
                {
                    "spectrum": len(members),
                    "cluster": number,
                    "title": f"scan={100 * number + member}",
                    "spectrum_file": "run.mgf",
                    "spectrum_id": f"scan={100 * number + member}",
                    "precursor_mz": precursor + 0.001 * member,
                    "charge": charge,
                    "retention_time": 60.0 * number + member,
                    "similarity_to_consensus": 1.0 - 0.01 * member,
                    "is_consensus": member == 0,
                    "n_members": size,
                }
            )
        if size > 1:
            first = members[-size]
            clusters.append(
                {
                    **{name: first[name] for name in ("cluster", "n_members", "precursor_mz", "charge", "retention_time", "title")},
                    "mean_similarity": 0.95,
                    "least_similarity": 0.9,
                    "consensus": len(consensus),
                    "label": f"PEPTIDE{number}" if with_labels else None,
                    "label_share": 0.5 if with_labels else None,
                }
            )
            consensus.append((mz, intensity))
    project = Project.create_or_open(folder)
    parameters = ClusteringParameters().model_dump(mode="json")
    schema = pa.schema([("label", pa.string()), ("label_share", pa.float64())])
    with project.run("cluster", parameters) as run:
        table = pa.Table.from_pylist(clusters) if clusters else _no_clusters()
        for name in schema.names:
            table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(schema.field(name).type))
        run.write_table("clusters", table)
        run.write_table("members", pa.Table.from_pylist(members))
        run.write_table("consensus", _spectra(consensus))
        if with_spectra:
            peaks = [list(zip(mz.tolist(), heights.tolist(), strict=True)) for mz, heights in spectra]
            run.write_table("spectra", run_spectra(peaks, *map(list, zip(*precursors, strict=True))))
    return project


def _no_clusters() -> pa.Table:
    columns: dict[str, Any] = dict.fromkeys(("cluster", "n_members", "consensus"), pa.int64())
    columns |= dict.fromkeys(("precursor_mz", "mean_similarity", "least_similarity", "retention_time", "label_share"), pa.float64())
    columns |= {"charge": pa.int32(), "title": pa.string(), "label": pa.string()}
    return pa.schema(list(columns.items())).empty_table()


def project_with_explanation(
    folder: Path, *, with_spectra: bool = True, with_map: bool = True, with_record: bool = True, **parameters: Any
) -> Project:
    """Return a project with an identification and its explanation: each tenth spectrum is explained by its predecessor."""
    project, _ = project_with_results(folder, identification(n_spectra=120), with_spectra=with_spectra)
    import pyarrow.parquet as pq

    psms = pq.read_table(project.table("psms")).to_pylist()
    first = {row["spectrum"]: row for row in reversed(psms)}
    n = max(first) + 1
    rows = []
    for at, spectrum in enumerate(candidate for candidate in range(9, n, 10) if candidate - 1 in first):
        nearest = first[spectrum - 1]
        rows.append(
            {
                "spectrum": spectrum,
                "spectrum_file": "run.mzML",
                "spectrum_id": f"scan={spectrum}",
                "scan": spectrum,
                "peptide": nearest["peptide"],
                "charge": nearest["charge"],
                "similarity": 0.9 - 0.01 * at,
                "mass_difference": 15.9949 if at % 3 == 2 else 0.001,
                "q_value": 0.002 * at,
                "nearest_spectrum": f"scan={spectrum - 1}",
                "nearest": spectrum - 1,
                "precursor_mz": nearest["precursor_mz"],
                "retention_time": 20.0 * spectrum,
                "kind": "modified" if at % 3 == 2 else "same",
            }
        )
    explained = {row["spectrum"]: row for row in rows if row["q_value"] <= 0.01}
    status = [2 if spectrum in explained else 1 if spectrum % 10 < 4 and spectrum in first else 0 for spectrum in range(n)]
    random = np.random.default_rng(2)
    with project.run("explain", {**ExplanationParameters().model_dump(mode="json"), **parameters}) as run:
        run.write_table("explained", pa.Table.from_pylist(rows))
        if with_map:
            run.write_table(
                "map",
                pa.table(
                    {
                        "spectrum": np.arange(n),
                        "retention_time": 20.0 * np.arange(n),
                        "precursor_mz": random.uniform(400, 1200, n),
                        "status": pa.array(status, pa.uint8()),
                        "peptide": pa.array(
                            [first[spectrum]["peptide"] if status[spectrum] and spectrum in first else None for spectrum in range(n)]
                        ),
                        "scan": np.arange(n),
                        "spectrum_file": ["run.mzML"] * n,
                    }
                ),
            )
        if with_record:
            run.write_json("run", {"source_run": "identify-0001"})
    return project
