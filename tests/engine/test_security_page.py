"""Each sentence of the page on untrusted files is covered by an existing test, and each stated bound is that of the program."""

from __future__ import annotations

import ast
import json
import os
import platform
import re
import unicodedata
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from proteoscope.engine import parameters
from proteoscope.engine.chemistry import noted_peptides
from proteoscope.engine.formats import separated_rows
from proteoscope.engine.formats.libraries import entries, mzspeclib
from proteoscope.engine.imported import table_formats
from proteoscope.engine.project import Project
from proteoscope.engine.sqlite_inputs import LONGEST_VALUE
from proteoscope.engine.structures import binary_cif, reading
from proteoscope.engine.unfolding import BOUNDS
from proteoscope.kernels import trusted_folders
from tests.conftest import REPOSITORY
from tests.fuzz.readers import MEMORY_BYTES, PROCESSOR_SECONDS

TEXT = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
PAGE = " ".join(TEXT.split())
_BOUND = re.compile(r"\| ([^|]+) \| ([^|]+) \| ([\d,]+) \| ([\d.]+) \|")
SENTENCES = (
    f"a preset has up to {parameters._MAXIMUM_PRESET_BYTES:,} bytes",
    f"a table of samples {separated_rows.MAXIMUM_BYTES >> 20} MB and {separated_rows.MAXIMUM_ROWS:,} rows",
    f"a structure {reading.MAXIMUM_BYTES >> 20} MB",
    f"a peptide {noted_peptides._MAXIMUM_CHARACTERS:,} residues in results and {entries._MAXIMUM_LENGTH:,} in libraries",
    f"a Parquet report {table_formats._MAXIMUM_ROWS:,} rows",
    f"an entry of mzSpecLib {mzspeclib._MAXIMUM_OF_SETS:,} attributes from sets",
    f"a column of BinaryCIF {binary_cif._MAXIMUM_ENCODINGS} encodings",
    f"no value is longer than {LONGEST_VALUE >> 20} MB",
    f"up to {PROCESSOR_SECONDS} s of processor time and {MEMORY_BYTES >> 20} MB of memory",
)


def test_security_page_lists_each_bound_and_no_other():
    rows = _BOUND.findall(TEXT)
    assert rows == [(bound.where, bound.what, f"{bound.free:,}", f"{bound.times:g}") for bound in BOUNDS]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_security_page_has_the_size_limits_of_the_program(sentence):
    assert sentence in PAGE


ADVICE = (
    "Leave out `project.sqlite`",
    "Protect the certificates like keys",
    "gpg --verify SHA256SUMS.asc",
    "Report a vulnerability to the developers",
)
"""Sentences that state nothing about the program."""

PAGE_TEST = "engine/test_security_page.py"
READERS = ("fuzz/test_readers.py::test_mutated_files_are_read_or_rejected_within_bounds",)
UNFOLDING = (
    "fuzz/test_unfolding.py::test_files_that_expand_enormously_are_rejected_within_limits",
    "fuzz/test_unfolding.py::test_unfolding_rejects_expanded_sizes_above_a_limit",
)
HELD: dict[str, tuple[str, ...]] = {
    "Spectra, databases, structures, libraries, search results": (
        "fuzz/test_readers.py::test_every_registered_format_has_a_file_to_mutate",
    ),
    "Opening any of them may fail with a message": READERS,
    "The table lists what else such a file may do": ("fuzz/test_projects.py::test_randomly_changed_projects_give_results_or_clear_errors",),
    "| any file |": (
        *READERS,
        "test_house.py::test_sources_unpickle_and_evaluate_nothing",
        f"{PAGE_TEST}::test_program_imports_no_network_client",
    ),
    "| packed files": (*UNFOLDING, "engine/formats/test_hostile_files.py::test_hostile_files_are_read_or_rejected_within_limits"),
    "| XML |": (
        "test_house.py::test_xml_parsers_resolve_no_entities",
        "engine/imported/test_formats.py::test_read_identifications_rejects_declared_entities",
    ),
    "| a project folder |": (
        "engine/project/test_untrusted_projects.py::test_project_rejects_symbolic_links",
        "engine/project/test_untrusted_projects.py::test_clean_up_ignores_run_id_outside_project",
        "engine/project/test_untrusted_projects.py::test_project_open_rejects_unexpected_database_objects",
        "engine/project/test_row_marks.py::test_untrusted_row_marks_are_limited_and_shown_as_text",
        "fuzz/test_result_tables.py::test_corrupt_result_tables_give_results_or_clear_errors",
    ),
    "| a stopped run in it |": (
        "engine/command_line/test_resume.py::test_resume_rejects_a_run_without_checkpoint",
        "engine/command_line/test_resume.py::test_resume_records_actual_inputs_despite_forged_project",
        "engine/command_line/test_resume.py::test_untrusted_project_cannot_resume_run_of_another_project",
        "engine/command_line/test_resume.py::test_resume_of_moved_project_writes_no_file_outside_it",
        "engine/project/test_checkpoint_store.py::test_checkpoint_is_found_by_project_and_run",
    ),
    "| files outside it that it names": (
        "engine/project/test_recorded_files.py::test_recorded_file_check_rejects_changed_and_missing_files",
        "engine/project/test_recorded_files.py::test_file_digest_rejects_pipes_and_devices",
        "fuzz/test_source_runs.py::test_quantify_reads_no_file_listed_by_a_forged_run",
        "fuzz/test_source_runs.py::test_quantify_opens_no_pipe_listed_by_a_forged_run",
    ),
    "| structures of an evidence run in it |": (
        "engine/evidence/test_named_structures.py::test_structure_export_opens_no_path_recorded_in_the_project",
        "engine/evidence/test_named_structures.py::test_structure_export_opens_no_device_or_network_path",
        "engine/evidence/test_named_structures.py::test_shown_structure_opens_only_file_with_recorded_digest",
        "engine/evidence/test_named_structures.py::test_structure_export_omits_different_file_of_same_name",
    ),
    "| parameters of a run in it |": (
        "engine/test_recorded_parameters.py::test_recorded_parameters_rejects_forged_values",
        "fuzz/test_source_runs.py::test_searches_reject_source_runs_with_forged_records",
        "fuzz/test_source_runs.py::test_command_that_uses_a_run_rejects_forged_parameters",
    ),
    "| a structure database, a cached index |": (
        "fuzz/test_structure_databases.py::test_changed_structure_database_is_used_or_rejected",
        "fuzz/test_indexes.py::test_index_with_a_corrupt_column_never_causes_a_crash",
        "engine/project/test_index_store.py::test_index_store_rebuilds_a_damaged_index",
    ),
    "| presets, tables of samples, the window's settings |": (
        "engine/test_parameters.py::test_read_preset_does_not_wait_for_a_pipe",
        "gui/test_settings.py::test_settings_file_that_is_a_pipe_does_not_block",
        "gui/test_settings.py::test_damaged_settings_file_is_replaced_by_defaults",
    ),
    "| names in the input": (
        "engine/formats/test_fasta.py::test_fasta_rejects_long_names",
        "engine/formats/test_fastq.py::test_fastq_rejects_long_names",
        "engine/test_escaped_names.py::test_escape_unprintable_escapes_each_control_character",
        "fuzz/test_names.py::test_hostile_names_in_files_are_read_or_rejected",
    ),
    "| names in the output": (
        "fuzz/test_names.py::test_hostile_names_are_written_and_shown_as_text",
        "engine/command_line/test_terminal.py::test_printable_escapes_control_characters",
        "engine/results/test_separated.py::test_control_characters_in_tsv_names_become_spaces",
        "engine/evidence/test_untrusted_input.py::test_structure_export_escapes_untrusted_names",
        "engine/evidence/test_untrusted_input.py::test_gff3_and_tsv_escape_separators_in_untrusted_names",
        "engine/views/test_run_report.py::test_run_report_shows_untrusted_names_as_text",
    ),
    "| SQLite files": (
        *UNFOLDING,
        "engine/project/test_untrusted_projects.py::test_project_rejects_views_as_tables",
        "engine/formats/libraries/test_readers.py::test_code_in_an_untrusted_blib_is_not_run",
    ),
    "A file may expand": UNFOLDING,
    "Everything read from a file is counted": UNFOLDING,
    "Files of up to 1 MB that try this": (*UNFOLDING, *READERS),
    "Other bounds do not depend on the size": (f"{PAGE_TEST}::test_security_page_has_the_size_limits_of_the_program",),
    "Output files appear complete": (
        "engine/test_files.py::test_concurrent_writers_leave_one_complete_file",
        "fuzz/test_kills_and_disks.py::test_files_of_killed_commands_are_removed_by_the_next_run",
    ),
    "Exported tables can be made safe": (
        "engine/results/test_separated.py::test_spreadsheet_safe_formulas_get_an_apostrophe",
        "engine/results/test_separated.py::test_formulas_after_invisible_characters_are_escaped",
    ),
    "HTML pages contain no script": (
        "engine/views/test_run_report.py::test_run_report_shows_untrusted_names_as_text",
        "engine/evidence/test_untrusted_input.py::test_protein_pages_show_untrusted_names_as_text",
    ),
    "Only `project.sqlite` contains": ("engine/command_line/test_private_names.py::test_demo_and_export_write_no_path_of_this_machine",),
    "Tables (Parquet, TSV), `run.json`": (
        "engine/test_shared_names.py::test_shared_file_names_include_distinguishing_folders",
        "engine/test_shared_names.py::test_shared_relative_names_do_not_contain_the_user_name",
        "engine/matches/writers/test_mzidentml.py::test_mzidentml_file_locations_are_relative_to_export_folder",
    ),
    "While a run writes, `project.lock`": (f"{PAGE_TEST}::test_project_lock_names_machine_and_process_during_a_run",),
    "Machines that compute for each other": ("engine/execution/cluster/test_untrusted.py::test_certificate_of_another_key_is_rejected",),
    "Without them nothing listens": ("engine/execution/cluster/test_worker_requests.py::test_parse_workers_rejects_invalid_requests",),
    "Certificates that are not valid now": (
        "engine/execution/cluster/test_untrusted.py::test_certificates_are_rejected_outside_their_validity_period",
        "engine/execution/cluster/test_untrusted.py::test_certificate_of_another_key_is_rejected",
        "engine/execution/cluster/test_untrusted.py::test_damaged_certificates_are_rejected",
        "engine/execution/cluster/test_untrusted.py::test_worker_with_an_invalid_answer_is_rejected",
    ),
    "A vendor's run is converted": (
        "engine/formats/test_vendor.py::test_thermo_file_is_read_by_the_installed_converter",
        "engine/formats/test_vendor.py::test_vendor_converter_in_the_data_folder_is_not_run",
    ),
    "**Presets** (TOML)": ("engine/test_parameters.py::test_presets_have_only_description_and_parameters",),
    "**The cache**": (
        "kernels/test_trusted_folders.py::test_kernels_are_not_loaded_from_folders_writable_by_others",
        "engine/project/test_checkpoint_store.py::test_checkpoint_folder_is_private",
    ),
    "A folder is not used as cache": (
        "kernels/test_trusted_folders.py::test_untrusted_folder_returns_folders_writable_by_others",
        "kernels/test_trusted_folders.py::test_untrusted_folder_returns_folder_or_link_of_others",
        "kernels/test_trusted_folders.py::test_cache_folder_is_never_a_folder_that_others_can_change",
        "kernels/test_trusted_folders.py::test_kernels_are_not_loaded_from_folders_writable_by_others",
        "engine/command_line/test_bad_input.py::test_search_warns_of_a_cache_folder_that_others_can_change",
    ),
    "Groups that have your user name": (f"{PAGE_TEST}::test_untrusted_folder_accepts_group_named_like_the_user",),
    "Checkpoints are neither written": ("engine/project/test_checkpoint_store.py::test_checkpoint_folder_is_private",),
    "Windows is not checked": (f"{PAGE_TEST}::test_untrusted_folder_checks_nothing_on_windows",),
    "**Temporary files**": ("kernels/test_trusted_folders.py::test_scratch_folder_rejects_a_parent_others_may_change",),
    "A link of another user is never followed": (
        "engine/test_shared_folders.py::test_atomic_path_does_not_follow_planted_links",
        "engine/test_shared_folders.py::test_atomic_path_stays_in_a_folder_replaced_by_a_link",
        "engine/test_shared_folders.py::test_project_changes_no_files_through_replaced_folders",
        "engine/test_shared_folders.py::test_atomic_file_rejects_a_link_of_another_user",
    ),
    "Certificates are not made there": ("engine/test_shared_folders.py::test_write_certificates_rejects_folder_others_can_change",),
    "The database of a project is opened by its name": ("engine/project/test_untrusted_projects.py::test_project_rejects_views_as_tables",),
    "**The window** accepts up to 3,000 dropped": ("gui/test_odd_drops.py::test_window_limits_a_drop_of_10000_files_without_a_stall",),
    "Links to UniProt, PDB and AlphaFold DB open your browser": (
        "gui/test_database_links.py::test_context_menu_of_hit_opens_database_entry_only_by_click",
        "gui/test_database_links.py::test_only_three_modules_open_addresses_in_the_browser",
    ),
    "Such an address holds an accession": (
        "engine/views/test_database_links.py::test_database_links_contain_only_a_valid_accession",
        "engine/views/test_database_links.py::test_names_that_are_not_accessions_have_no_database_link",
    ),
    "Addresses of the network": ("gui/test_odd_drops.py::test_dropped_paths_are_only_files_of_this_machine",),
    "`python installer/audit.py`": (
        "installer/test_audit.py::test_installed_packages_have_no_known_vulnerability",
        "installer/test_audit.py::test_lowest_declared_versions_have_no_known_vulnerability",
        "installer/test_audit.py::test_audit_error_names_the_missing_packaging_package",
        "installer/test_audit.py::test_vulnerability_list_is_outdated_after_200_days",
    ),
    "A release comes with a list": ("installer/test_release.py::test_release_signature_detects_changed_files",),
}
"""Tests that cover each sentence and each row of the page, by its beginning; rows of bounds are compared individually above."""


def sentences(text: str) -> list[str]:
    """Return the sentences and table rows of a Markdown page, without headings, table heads and rows of bounds."""
    result = list[str]()
    for part in re.split(r"\n\s*\n|\n(?=\* |\| |    )", text):
        flat = " ".join(part.split()).removeprefix("* ")
        if flat.startswith("| ") and not _BOUND.fullmatch(flat) and not flat.startswith(("| what is", "| files | number")):
            result.append(flat)
        elif flat and not flat.startswith(("#", "|")):
            result += re.split(r"(?<=\.)\s+(?=[A-Z`*])|(?<=\.\*\*)\s+", flat)
    return [sentence for sentence in result if not re.fullmatch(r"\*\*[A-Za-z ]+\.\*\*", sentence)]


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Return the names of the tests in a module."""
    return frozenset(node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef))


def test_each_sentence_of_security_page_has_a_test():
    beginnings = (*HELD, *ADVICE)
    beginnings_of = {sentence: [beginning for beginning in beginnings if sentence.startswith(beginning)] for sentence in sentences(TEXT)}
    assert [sentence for sentence, held in beginnings_of.items() if len(held) != 1] == []
    assert sorted(beginning for held in beginnings_of.values() for beginning in held) == sorted(beginnings), (
        "a beginning without a sentence"
    )


@pytest.mark.parametrize("test", sorted({test for tests in HELD.values() for test in tests}))
def test_each_test_named_on_the_security_page_exists(test):
    module, name = test.split("::")
    assert name in defined_in(REPOSITORY / "tests" / module)


def test_sentences_are_found_in_tables_paragraphs_and_lists():
    text = "# Head\n\nOne. Two,\nthree.\n\n| what is | x |\n|--|--|\n| a | b. C |\n| a | b | 1 | 2 |\n\n* **Four.** Five.\n* Six.\n"
    assert sentences(text) == ["One.", "Two, three.", "| a | b. C |", "Five.", "Six."]


def test_program_imports_no_network_client():
    """Check that only workers, which the user starts, listen and connect."""
    clients = {"socket", "http", "urllib.request", "requests", "urllib3", "ftplib", "smtplib", "aiohttp", "httpx"}
    named = re.compile("|".join(client.split(".")[0] for client in clients))
    importing = []
    for folder in ("engine", "gui", "kernels"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            # Parsing all files would take seconds. Python normalises names as here.
            for node in ast.walk(ast.parse(text)) if named.search(unicodedata.normalize("NFKC", text)) else ():
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                if any(name in clients or name.split(".")[0] in clients for name in names):
                    importing.append(path.relative_to(REPOSITORY).as_posix())
    # These use the machine name, and a pair of sockets within the process.
    local = ["engine/shared_names.py", "gui/termination.py"]
    assert [path for path in importing if not path.startswith("engine/execution/cluster/")] == local


def test_project_lock_names_machine_and_process_during_a_run(tmp_path):
    project = Project.create_or_open(tmp_path / "project")
    with project.run("identify", {}) as run:
        text = json.loads((project.folder / "project.lock").read_text())
        assert (text["host"], text["pid"]) == (platform.node(), os.getpid()) and run.id in text["purpose"]
    assert (project.folder / "project.lock").read_text() == ""


@pytest.mark.skipif(os.name != "posix", reason="groups differ there")
def test_untrusted_folder_accepts_group_named_like_the_user(tmp_path, monkeypatch):
    import grp
    import pwd

    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o775)
    for name, expected in ((pwd.getpwuid(os.geteuid()).pw_name, None), ("laboratory", folder)):
        monkeypatch.setattr(grp, "getgrgid", lambda _, name=name: SimpleNamespace(gr_name=name))
        assert trusted_folders.untrusted_folder(folder) == expected


def test_untrusted_folder_checks_nothing_on_windows(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.setattr(trusted_folders, "os", SimpleNamespace(name="nt"))
    assert trusted_folders.untrusted_folder(tmp_path) is None
