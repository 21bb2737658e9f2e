"""All formats give the same PSMs for the same matches; any content is read or rejected with an error of this program."""

from __future__ import annotations

import csv
import gzip
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.formats.libraries.reading import read_libraries
from proteoscope.engine.imported.reading import read_identifications
from proteoscope.engine.imported.summary import ImportSummary
from proteoscope.engine.jobs.progress import Progress, RecordingProgress
from proteoscope.engine.project import Project
from tests.engine.imported.small_results import FORMATS, TRUTH, write_database, write_parquet_report, write_results, write_spectra
from tests.searching import import_results

each = pytest.mark.parametrize("name", list(FORMATS))
WITHOUT_DECOYS = {"dia-nn", "peptideshaker"}
WITH_Q_VALUES = {"crux", "percolator", "mokapot", "sage", "dia-nn", "mztab", "mzidentml", "idxml"}
XML = {"pepxml", "mzidentml", "xtandem", "idxml"}


@pytest.fixture(scope="module")
def spectra(tmp_path_factory) -> Path:
    return write_spectra(tmp_path_factory.mktemp("spectra") / "run.mgf")


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    return write_database(tmp_path_factory.mktemp("database") / "proteins.fasta")


def psms_of(project: Path) -> dict[int, dict]:
    opened = Project.open(project)
    return {row["scan"]: row for row in pq.read_table(opened.table("psms", opened.latest("import"))).to_pylist()}


@pytest.fixture(scope="module")
def with_database(spectra, database, tmp_path_factory) -> Callable[[str], tuple[ImportSummary, dict[int, dict]]]:
    """The summary and the PSMs of the results in a format, imported with the database."""

    @cache
    def imported(name: str) -> tuple[ImportSummary, dict[int, dict]]:
        folder = tmp_path_factory.mktemp(name)
        summary = import_results([write_results(name, folder)], [spectra], folder / "project", [database])
        return summary, psms_of(folder / "project")

    return imported


@each
def test_import_gives_equal_psms_for_every_format(name, with_database):
    expected = {match.scan: match for match in TRUTH if not (match.is_decoy and name in WITHOUT_DECOYS)}
    summary, psms = with_database(name)
    assert psms.keys() == expected.keys()
    for scan, match in expected.items():
        row = psms[scan]
        text = match.text
        if name in ("xtandem",) and match.modifications and match.modifications[0][0] == 0:
            text = "M[Acetyl]EEPLKSR"  # X!Tandem assigns modifications of a terminus to the first residue
        assert (row["peptide"], row["charge"], tuple(row["proteins"])) == (text, match.charge, match.proteins)
        assert row["is_decoy"] == match.is_decoy
        assert row["calculated_mass"] == pytest.approx(match.mass, abs=2e-4) and abs(row["mass_error_ppm"]) < 1
        assert row["rank"] == 1
        if name in WITH_Q_VALUES:
            assert row["q_value"] == pytest.approx(match.q_value)
        if match.charge == 2:  # all ions have charge 1, and the spectrum holds them all
            assert row["matched_ions"] == row["total_ions"] == 2 * (len(match.sequence) - 1)
    assert summary.n_imported == len(expected) and not summary.left_out
    assert summary.source_of["psms"] == ("file" if name in WITH_Q_VALUES else "none" if name == "peptideshaker" else "decoys")


@each
def test_import_locates_peptides_in_the_given_database(name, spectra, with_database, tmp_path):
    row = with_database(name)[1][12]
    assert row["protein_starts"] == [11, 9] and row["residues_before"] == ["R", "R"] and row["residues_after"] == ["-", "W"]
    import_results([write_results(name, tmp_path)], [spectra], tmp_path / "without")
    row = psms_of(tmp_path / "without")[12]
    assert row["proteins"] == ["P1", "P2"] and row["protein_starts"] == [None, None] and row["residues_before"] == [None, None]


def test_import_stores_and_exports_scores_of_search_engines(spectra, tmp_path):
    import_results([write_results("comet", tmp_path)], [spectra], tmp_path / "project")
    row = psms_of(tmp_path / "project")[12]
    assert (row["score_e_value"], row["score_xcorr"], row["score_matched_ions"]) == (1e-5, 3.0, 10.0)
    assert row["score"] == pytest.approx(5.0)
    with (tmp_path / "project" / "exports" / "psms.tsv").open() as file:
        exported = {int(row["scan"]): row for row in csv.DictReader(file, delimiter="\t")}
    assert float(exported[12]["score_e_value"]) == 1e-5 and float(exported[12]["score_ions_total"]) == 14


@each
def test_read_identifications_accepts_gzip(name, tmp_path):
    path = write_results(name, tmp_path)
    packed = tmp_path / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    plain, unpacked = (read_identifications([file]) for file in (path, packed))
    assert plain.peptides == unpacked.peptides and plain.accessions == unpacked.accessions
    assert plain.charge.tolist() == unpacked.charge.tolist()


@each
def test_read_identifications_survives_corrupt_files(name, tmp_path):
    content = write_results(name, tmp_path).read_bytes()
    path = tmp_path / f"corrupt-{FORMATS[name][0]}"
    chance = random.Random(name)
    corrupt = [content[: len(content) * i // 40] for i in range(1, 40)]
    for _ in range(100):
        text = bytearray(content)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(text))
            text[at : at + chance.randint(0, 9)] = chance.choice(
                [b"", b"\t", b"\n", b"-1", b"nan", b"1e999", b"\xff", b"\0", b'"', b"<", b">", b"[", b"&lol;", b"999999999999999999", b"\r"]
            )
        corrupt.append(bytes(text))
    n_rejected = 0
    for text in corrupt:
        path.write_bytes(text)
        try:
            read_identifications([path])
        except ProteoscopeError as error:
            n_rejected += 1
            assert "\n" not in str(error) and len(str(error)) < 1000 and str(path) in str(error)
    assert n_rejected
    if name in XML:
        path.write_bytes(content[: len(content) * 9 // 10])
        with pytest.raises(InputError, match="broken or cut off"):
            read_identifications([path])


@pytest.mark.parametrize("name", sorted(XML))
@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE x SYSTEM "http://localhost/x.dtd">',
    ],
)
def test_read_identifications_rejects_declared_entities(name, declared, tmp_path):
    path = write_results(name, tmp_path)
    head, _, rest = path.read_text().partition("\n")
    path.write_text(f"{head}\n{declared}\n{rest}")
    with pytest.raises(InputError, match="document type declaration"):
        read_identifications([path])


@pytest.mark.parametrize("name", sorted(XML))
def test_read_identifications_rejects_declaration_after_comment(name, tmp_path):
    path = write_results(name, tmp_path)
    head, _, rest = path.read_text().partition("\n")
    path.write_text(f'{head}\n<!--{" " * 200_000}--><!DOCTYPE x [<!ENTITY e "x">]>\n{rest}')
    with pytest.raises(InputError, match="broken XML"):
        read_identifications([path])


@pytest.mark.parametrize("encoding", ['encoding="UTF-7"', f'{" " * 5000}encoding = "UTF-7"', "encoding='cp037'"])
def test_read_identifications_rejects_encodings_that_hide_markup(encoding, tmp_path):
    path = write_results("pepxml", tmp_path)
    head, _, rest = path.read_text().partition("\n")
    declared = (
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/hostname">]>'.encode("utf-7").decode().replace("<", "+ADw-").replace("!", "+ACE-")
    )
    head = head.replace('encoding="UTF-8"', encoding)
    path.write_text(f"{head}\n{declared}\n{rest}")
    with pytest.raises(InputError, match=r"is in the encoding '(UTF-7|cp037)'"):
        read_identifications([path])


def test_read_identifications_separates_runs_of_joined_pepxml(tmp_path):
    path = write_results("pepxml", tmp_path)
    head, _, rest = path.read_text().partition("<msms_run_summary")
    run, _, tail = rest.partition("</msms_run_summary>")
    second = run.replace("/data/run", "/data/other").replace("Comet", "Other")
    path.write_text(f"{head}<msms_run_summary{run}</msms_run_summary><msms_run_summary{second}</msms_run_summary>{tail}")
    matches = read_identifications([path])
    assert matches.run.to_pylist() == ["/data/run.mzML"] * len(TRUTH) + ["/data/other.mzML"] * len(TRUTH) and matches.program == "Comet"


def test_read_identifications_accepts_tpp_probabilities(tmp_path):
    path = write_results("pepxml", tmp_path)
    results = (
        '<search_score name="xcorr" value="3.1" type="float"/>'
        '<analysis_result analysis="peptideprophet">'
        '<peptideprophet_result probability="0.75" all_ntt_prob="(0.1,0.5,0.75)"/></analysis_result>'
        '<analysis_result analysis="interprophet"><interprophet_result probability="0.5" all_ntt_prob="(0.1,0.5,0.75)"/></analysis_result>'
    )
    path.write_text(path.read_text().replace('<search_score name="xcorr" value="3.1"/>', results))
    matches = read_identifications([path])
    assert set(matches.scores["score_peptideprophet"]) == {0.75} and set(matches.scores["score_iprophet"]) == {0.5}
    assert set(matches.scores["score_xcorr"]) == {3.1} and set(matches.posterior_error) == {0.25}


def test_read_identifications_error_names_truncated_line(tmp_path):
    path = write_results("sage", tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], lines[-1][: len(lines[-1]) // 2]]))
    with pytest.raises(InputError, match=r"line 6: has \d+ cells where there are 17 columns"):
        read_identifications([path])


def test_read_identifications_accepts_missing_last_cells(tmp_path):
    path = write_results("philosopher", tmp_path)
    header, *rows = path.read_text().splitlines()
    added = "".join(f"\tEmpty {i}" for i in range(2))
    path.write_text("\n".join([header + added, *rows]) + "\n")
    whole = read_identifications([path])
    assert len(whole) == len(rows)
    path.write_text("\n".join([header + added, *rows]))  # without an end, as a file that was cut off
    with pytest.raises(
        InputError, match=rf"line {len(rows) + 1}: has \d+ cells where there are \d+ columns. Copy it again: the file may be cut off"
    ):
        read_identifications([path])


def test_maxquant_decoys_without_protein_are_named_by_group(spectra, tmp_path):
    path = write_results("maxquant", tmp_path)
    header, *rows = path.read_text().splitlines()
    lines = [f"{row.replace('DECOY_P1', '')}\t{i};{i + 1}" for i, row in enumerate(rows)]
    path.write_text("\n".join([f"{header}\tProtein group IDs", *lines]) + "\n")
    summary = import_results([path], [spectra], tmp_path / "project")
    (decoy,) = [row for row in psms_of(tmp_path / "project").values() if row["is_decoy"]]
    assert decoy["sequence"] == "KEDLTPEPR" and decoy["proteins"] == ["REV__group_3", "REV__group_4"]
    assert summary.source_of["psms"] == "decoys" and not summary.left_out


def test_percolator_psms_are_assigned_by_spectrum_name(spectra, tmp_path):
    path = write_results("percolator", tmp_path)
    path.write_text(re.sub(r"run_(\d+)_\d_1", r"controllerType=0 controllerNumber=1 scan=\1", path.read_text()))
    summary = import_results([path], [spectra], tmp_path / "project")
    assert summary.n_imported == len(TRUTH) and summary.found_by == {"scan": len(TRUTH)}
    path.write_text(re.sub(r"controllerType=0 controllerNumber=1 scan=", "", path.read_text()))
    with pytest.raises(InputError, match="its spectrum is in none of the files"):  # a bare number may count anything
        import_results([path], [spectra], tmp_path / "numbers")


def test_read_identifications_ignores_unnamed_column(tmp_path):
    path = write_results("dia-nn", tmp_path)
    path.write_text("".join(f"{i or ''}\t{line}\n" for i, line in enumerate(path.read_text().splitlines())))
    matches = read_identifications([path])
    assert set(matches.native_id.to_pylist()) == {""} and len(matches) == 4


def test_read_identifications_rejects_small_molecules(tmp_path):
    (tmp_path / "x.mzTab").write_text("MTD\tmzTab-version\t2.0.0-M\nSMH\tSML_ID\nSML\t1\n")
    with pytest.raises(InputError, match="is mzTab-M, which lists small molecules"):
        read_identifications([tmp_path / "x.mzTab"])


@pytest.mark.parametrize("is_mixed", [False, True])
def test_read_libraries_accepts_decimal_commas_in_all_rows(tmp_path, is_mixed):
    path = tmp_path / "lib.tsv"
    number = "400.25" if is_mixed else "400,25"
    path.write_text(
        "ModifiedPeptide\tPrecursorCharge\tPrecursorMz\tFragmentMz\tRelativeIntensity\n"
        f"_AAAGKA_\t2\t{number}\t200,5\t1\n_AAAGKE_\t2\t{number}\t210\t1\n"
    )
    progress = RecordingProgress(Progress())
    library, messages = read_libraries([path], progress), progress.messages
    assert library.name.to_pylist() == (["AAAGKE/2"] if is_mixed else ["AAAGKA/2", "AAAGKE/2"])
    assert library.mz.tolist() == ([210.0] if is_mixed else [200.5, 210.0]) and library.skipped.n == is_mixed
    assert len(messages) == 1 and ("left out" if is_mixed else "decimals have a comma") in messages[0]


def test_read_identifications_rejects_two_formats(tmp_path):
    with pytest.raises(InputError, match="scores cannot be compared"):
        read_identifications([write_results("sage", tmp_path), write_results("comet", tmp_path)])


def test_read_identifications_joins_files_of_a_format(tmp_path):
    (tmp_path / "second").mkdir()
    both = read_identifications([write_results("pepxml", tmp_path), write_results("pepxml", tmp_path / "second")])
    assert len(both) == 2 * len(TRUTH) and len(both.peptides) == len(TRUTH) and set(both.file.tolist()) == {0, 1}


def test_readers_reject_exchanged_spectra_and_results(spectra, tmp_path):
    with pytest.raises(InputError, match="is MGF, not results of a search engine"):
        read_identifications([spectra])
    from proteoscope.engine.formats import read_spectra

    with pytest.raises(InputError, match="is pepXML: identifications, not spectra"):
        read_spectra([write_results("pepxml", tmp_path)])


def test_dia_nn_parquet_and_text_reports_give_equal_psms(spectra, database, tmp_path):
    psms = {}
    for name, path in (("text", write_results("dia-nn", tmp_path)), ("parquet", write_parquet_report(tmp_path / "report.parquet"))):
        summary = import_results([path], [spectra], tmp_path / name, [database])
        assert summary.n_imported == 4 and summary.program == "DIA-NN"
        psms[name] = psms_of(tmp_path / name)
    assert psms["text"].keys() == psms["parquet"].keys()
    for scan, row in psms["text"].items():
        other = psms["parquet"][scan]
        for column in ("peptide", "charge", "proteins", "is_decoy", "rank", "matched_ions", "spectrum_id"):
            assert row[column] == other[column]
        assert other["q_value"] == pytest.approx(row["q_value"], rel=1e-6)
        assert other["posterior_error_probability"] == pytest.approx(row["posterior_error_probability"], rel=1e-6)


def test_unknown_parquet_error_names_the_missing_column(tmp_path):
    pq.write_table(pa.table({"peptide": ["PEPTIDEK"], "scannr": ["scan=1"]}), tmp_path / "results.sage.parquet")
    with pytest.raises(InputError, match=r"has no column .*Modified.Sequence.*results.sage.tsv"):
        read_identifications([tmp_path / "results.sage.parquet"])


def test_nested_or_oversized_parquet_reports_are_rejected(tmp_path):
    n = len(TRUTH) - 1
    nested = write_parquet_report(tmp_path / "nested.parquet", **{"Q.Value": pa.array([[0.1]] * n)})
    with pytest.raises(InputError, match="contains lists of numbers instead of numbers"):
        read_identifications([nested])
    packed = tmp_path / "report.parquet.gz"
    packed.write_bytes(gzip.compress(write_parquet_report(tmp_path / "report.parquet").read_bytes()))
    with pytest.raises(InputError, match="packed with gzip"):
        read_identifications([packed])
    many = 6_000_000
    columns = {
        "Modified.Sequence": pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int32()), ["PEPTIDEK"]),
        "Precursor.Charge": pa.array([2] * 1000),
        "Q.Value": pa.array([0.01] * 1000),
    }
    small = pa.table(columns)
    pq.write_table(pa.concat_tables([small] * (many // 1000)), tmp_path / "long.parquet")
    with pytest.raises(InputError, match="more than 5,000,000"):
        read_identifications([tmp_path / "long.parquet"])
    sequences = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), ["A" * 100_000])
    pq.write_table(
        pa.table({"Modified.Sequence": sequences, "Precursor.Charge": [2] * 100_000, "Q.Value": [0.1] * 100_000}), tmp_path / "x"
    )
    with pytest.raises(InputError, match=r"expands to more than [\d,]+ bytes"):
        read_identifications([tmp_path / "x"])


def test_read_identifications_survives_corrupt_parquet(tmp_path):
    content = write_parquet_report(tmp_path / "report.parquet").read_bytes()
    path = tmp_path / "corrupt.parquet"
    chance = random.Random(3)
    corrupt = [b"PAR1" + bytes(100), *(content[: max(5, len(content) * i // 20)] for i in range(1, 20))]
    for _ in range(80):
        text = bytearray(content)
        for _ in range(chance.randint(1, 5)):
            text[chance.randrange(4, len(text))] = chance.randrange(256)
        corrupt.append(bytes(text))
    n_rejected = 0
    for text in corrupt:
        path.write_bytes(text)
        try:
            read_identifications([path])
        except ProteoscopeError as error:
            n_rejected += 1
            assert "\n" not in str(error) and len(str(error)) < 1000 and str(path) in str(error)
    assert n_rejected >= 20


@pytest.mark.parametrize("name", ["percolator", "mokapot"])
def test_import_warns_of_truncated_last_protein(name, spectra, database, tmp_path):
    path = write_results(name, tmp_path)
    whole = path.read_text().rstrip("\n")
    warnings = []
    for number, text in enumerate((whole, whole + "\n", whole[:-1], whole[:-1] + "\n")):
        path.write_text(text)
        messages = import_results([path], [spectra], tmp_path / str(number), [database]).messages
        warnings.append([message for message in messages if "cut off" in message])
    # Complete tables, some without an end of the last line, as some programs write them; and an unusual name in a complete line.
    assert warnings[0] == warnings[1] == warnings[3] == []
    line = whole.count("\n") + 1
    assert len(warnings[2]) == 1 and "is not in the database" in warnings[2][0]
    assert f"line {line}, the last, has no line end" in warnings[2][0]


def test_import_does_not_warn_of_database_with_other_names(spectra, database, tmp_path):
    path = write_results("percolator", tmp_path)
    path.write_text(path.read_text().rstrip("\n").replace("P1", "other1").replace("P2", "other2"))
    messages = import_results([path], [spectra], tmp_path / "project", [database]).messages
    assert not [message for message in messages if "cut off" in message]


@pytest.mark.parametrize("name", ["percolator", "mokapot"])
def test_read_identifications_warns_of_missing_last_column(name, tmp_path):
    path = write_results(name, tmp_path)
    lines = path.read_text().splitlines()
    last = "\t".join(lines[-1].split("\t")[: lines[0].count("\t")])
    for cut in (last, last + "\t"):
        path.write_text("\n".join([*lines[:-1], cut]))
        progress = RecordingProgress(Progress())
        read_identifications([path], progress)
        assert any(f"the last line, {len(lines)}, is the only one without a value in column" in message for message in progress.messages)
    # No warning if other rows lack it too, or if the line has its end.
    path.write_text("\n".join([*lines[:-2], last, last]))
    progress = RecordingProgress(Progress())
    read_identifications([path], progress)
    path.write_text("\n".join([*lines[:-1], last, ""]))
    read_identifications([path], progress)
    assert not any("cut off" in message for message in progress.messages)


def test_read_identifications_keeps_unpaired_quotes_in_cells(tmp_path: Path) -> None:
    text = FORMATS["maxquant"][1]()
    path = tmp_path / "msms.txt"
    path.write_text(text.replace("\tP3\t", '\t"P3\t').replace("\tP2\t", '\t"P""2"\t'))
    assert '"P3' in (names := read_identifications([path]).accessions)
    assert 'P"2' in names


def test_read_identifications_rejects_ambiguous_accessions(tmp_path: Path) -> None:
    text = FORMATS["mzidentml"][1]().replace('accession="P1"', 'accession="a&#9;b"').replace('accession="P2"', 'accession="a%09b"')
    path = tmp_path / "x.mzid"
    path.write_text(text)
    with pytest.raises(InputError, match=r"two accessions become a%09b when control characters are .*Rename one of the two"):
        read_identifications([path])
