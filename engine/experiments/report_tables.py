"""Tables of the error rates of an experiment: peptides and protein groups over all runs, best matches in each run, and the runs."""

from dataclasses import replace

from proteoscope.engine.experiments.run_matches import CLASSES_OF_MASSES, CLASSES_OF_SHIFTS
from proteoscope.engine.matches.columns import MATCH_CLASS, PEPTIDE_COLUMNS, PROTEIN_COLUMNS, described_columns
from proteoscope.engine.results.columns import Column, Table

__all__ = ["EXPERIMENT_MATCHES", "EXPERIMENT_PEPTIDES", "EXPERIMENT_PROTEINS", "EXPERIMENT_RUNS"]

_COPIED_PEPTIDE = ("peptide", "sequence", "proteins", "n_psms", "best_score", "q_value", "is_decoy", "posterior_error_probability")
_COPIED_PROTEIN = (
    "group",
    "accessions",
    "n_peptides",
    "n_unique_peptides",
    "n_psms",
    "score",
    "q_value",
    "is_decoy",
    "razor_peptides",
    "posterior_error_probability",
)
_SCORE = "-log10 of the lowest posterior error of a match within its run"
_CLASS = replace(
    MATCH_CLASS,
    meaning="Class of the match with its own error rate. Identification: as in its table of PSMs; open modification search: kind of the "
    "mass shift (none, named, end, unnamed); library search: same or shifted mass",
    pattern="|".join((str(MATCH_CLASS.pattern), *CLASSES_OF_SHIFTS, *CLASSES_OF_MASSES)),
    is_optional=False,
)

EXPERIMENT_PROTEINS = Table.from_columns(
    "experiment_proteins",
    "Proteins of the experiment",
    described_columns(
        tuple(column for column in PROTEIN_COLUMNS if column.name in _COPIED_PROTEIN),
        n_psms={"title": "PSMs in runs", "meaning": "Number of PSMs, accepted within their runs, of accepted peptides of the group"},
        score={"meaning": f"Score of the best peptide of the group: {_SCORE}"},
        q_value={
            "title": "Experiment q-value",
            "meaning": "Minimum FDR, over all runs of the experiment, at which the protein group is accepted",
            "width": 12,
        },
        posterior_error_probability={
            "title": "Experiment PEP",
            "meaning": "Posterior error probability over all runs of the experiment: probability that the protein group is wrong",
        },
    ),
    shown="group n_peptides n_unique_peptides n_psms q_value score razor_peptides posterior_error_probability is_decoy",
    links="group accessions is_decoy",
    saved="group accessions n_peptides n_unique_peptides n_psms score q_value is_decoy",
)
EXPERIMENT_PEPTIDES = Table.from_columns(
    "experiment_peptides",
    "Peptides of the experiment",
    (
        *described_columns(
            tuple(column for column in PEPTIDE_COLUMNS if column.name in (*_COPIED_PEPTIDE, "calculated_mass")),
            n_psms={"title": "PSMs in runs", "meaning": "Number of PSMs of the peptide that are accepted within their runs", "low": 0},
            best_score={"meaning": f"Score of the peptide: {_SCORE}", "is_nullable": False},
            q_value={
                "title": "Experiment q-value",
                "meaning": "Minimum FDR, over all runs of the experiment, at which the peptide is accepted among those of its class; "
                "missing if the class is too small for a rate",
                "width": 12,
            },
            posterior_error_probability={
                "title": "Experiment PEP",
                "meaning": "Posterior error probability over all runs of the experiment: probability that the peptide is wrong",
            },
        ),
        _CLASS,
        Column("n_runs", "Runs", "Number of runs that accept a PSM of the peptide", "integer", 6, type="int32", low=0),
        Column("best_run", "Best run", "Run with the best PSM of the peptide", width=20),
        Column("best_psm", meaning="Row of the best PSM in the table of PSMs of its run, from 0", kind="identifier", low=0),
        Column(
            "protein_group",
            meaning="Row, in the table of proteins of the experiment, of the group to which the peptide is assigned, from 0; missing for "
            "peptides that are not accepted",
            kind="identifier",
            is_nullable=True,
            rows_of="experiment_proteins",
        ),
    ),
    shown="peptide q_value match_class n_runs n_psms best_score calculated_mass proteins best_run sequence "
    "posterior_error_probability is_decoy",
    links="peptide sequence is_decoy best_run best_psm proteins",
    saved="peptide sequence proteins match_class n_runs n_psms best_score q_value best_run best_psm is_decoy",
)
EXPERIMENT_MATCHES = Table.from_columns(
    "experiment_matches",
    "Matches of the experiment",
    (
        Column("run", "Run", "Name of the run", width=20),
        Column(
            "peptide",
            meaning="Row of the peptide in the table of peptides of the experiment, from 0",
            kind="identifier",
            type="int32",
            rows_of="experiment_peptides",
        ),
        _CLASS,
        Column(
            "best_psm",
            meaning="Row of the best PSM of the peptide, in this class, in the table of PSMs of the run, from 0",
            kind="identifier",
            low=0,
        ),
        Column(
            "q_value",
            "Run q-value",
            "Minimum FDR, within the run, at which the best PSM is accepted among the PSMs of its class; missing if the class is too small",
            "probability",
            9,
            is_nullable=True,
        ),
        Column(
            "posterior_error_probability",
            "Run PEP",
            "Probability that the best PSM is wrong, among all PSMs of the run; runs are compared by this value",
            "probability",
            9,
            low=0,
            high=1,
        ),
        Column("n_psms", "PSMs", "Number of PSMs of the peptide, in this class, that the run accepts", "integer", 6, type="int32", low=0),
        Column(
            "is_accepted_in_experiment",
            "Accepted in experiment",
            "True if the peptide is a target and accepted at the FDR over all runs of the experiment, in this class",
            "truth",
            9,
        ),
    ),
    shown="run q_value match_class n_psms posterior_error_probability is_accepted_in_experiment",
    links="peptide best_psm",
)
EXPERIMENT_RUNS = Table.from_columns(
    "experiment_runs",
    "Runs of the experiment",
    (
        Column("run", "Run", "Name of the run", width=20),
        Column("psms_sha256", meaning="SHA-256 of the table of PSMs of the run", pattern="[0-9a-f]{64}"),
        Column("n_rows", meaning="Number of rows of the run in the table of matches of the experiment", kind="integer", low=0),
        Column("n_psms", "PSMs", "Number of target PSMs that the run accepts", "integer", 8, low=0),
        Column("n_peptides", "Peptides", "Number of target peptides with a PSM that the run accepts", "integer", 8, low=0),
        Column(
            "n_accepted_peptides",
            "Peptides of the experiment",
            "Number of these peptides that are accepted over all runs of the experiment",
            "integer",
            9,
            low=0,
        ),
    ),
    shown="run n_psms n_peptides n_accepted_peptides",
    links="run",
)
