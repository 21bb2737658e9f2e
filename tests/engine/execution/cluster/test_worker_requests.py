"""User input about workers: values of --workers, host files, Slurm configurations, certificates."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.cluster.certificates import Certificates, make_certificates, read_certificates, write_certificates
from proteoscope.engine.execution.cluster.launchers import ssh_command
from proteoscope.engine.execution.cluster.requests import Host, checked_address, parse_workers, read_hosts, read_slurm
from proteoscope.engine.execution.cluster.worker_process import program_version, version_difference


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("local:0", "N from 1"),
        ("local:", "N from 1"),
        ("local:1000000000", "N from 1"),
        ("", "expected local:N"),
        ("many", "expected"),
        ("ssh:nowhere.txt", "no such file"),
        ("slurm:", "no such file"),
        ("tls://host", "not a scheduler address"),
        ("tls://host:99999", "not a scheduler address"),
        ("tcp://10.0.0.5:8786", "without encryption"),
        ("tls://a b:1", "not a scheduler address"),
        ("tls://host:1/../x", "not a scheduler address"),
    ],
)
def test_parse_workers_rejects_invalid_requests(text: str, part: str) -> None:
    with pytest.raises(ParameterError, match=part):
        parse_workers(text)


def test_parse_workers_reads_valid_requests(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("a\n")
    assert parse_workers("local:3").count == 3
    assert parse_workers(f"ssh:{tmp_path / 'hosts'}").file == tmp_path / "hosts"
    assert parse_workers("tls://node.example.org:8786").address == "tls://node.example.org:8786"
    assert checked_address("tcp://127.0.0.1:80") and checked_address("tcp://[::1]:80") and checked_address("tls://[fe80::1]:80")


def test_read_hosts_reads_a_host_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text("# ours\nnode1\n\nanna@node2 workers=2 threads=8 command=/opt/p/bin/proteoscope # fast\nnode3 device=cpu\n")
    assert read_hosts(path) == [
        Host(name="node1"),
        Host(name="anna@node2", workers=2, threads=8, command="/opt/p/bin/proteoscope"),
        Host(name="node3", device="cpu"),
    ]
    command = ssh_command(read_hosts(path)[1], "tls://10.0.0.1:5")
    assert command[-2] == "anna@node2" and command[-3] == "--"
    assert command[-1] == "/opt/p/bin/proteoscope workers start tls://10.0.0.1:5 --certificates - --device auto --count 2 --threads 8"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# none\n",
        "-oProxyCommand=x\n",
        "node1 workers=0\n",
        "node1 nodes=2\n",
        "no;de\n",
        "node1 command=rm$IFS-rf\n",
        "a command=`x`\n",
        "a name=b\n",
        "a workers=1 workers=2\n",
        "a workers\n",
    ],
)
def test_read_hosts_rejects_invalid_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text(text)
    with pytest.raises(InputError):
        read_hosts(path)


@pytest.mark.parametrize(
    "text", ["jobs = 0", "jobs = 'x'", "nodes = 3", "[", "memory = 3", "cores = true", "walltime = 3", "job_extra_directives = [1]"]
)
def test_read_slurm_rejects_invalid_configurations(tmp_path: Path, text: str) -> None:
    path = tmp_path / "slurm.toml"
    path.write_text(text)
    with pytest.raises(InputError):
        read_slurm(path)


def test_written_certificates_are_private_and_read_back(tmp_path: Path) -> None:
    made, folder = make_certificates(3), tmp_path / "certificates"
    written = write_certificates(made, folder)
    assert [path.name for path in written] == ["certificate.pem", "key.pem"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in [folder, *written])
    assert read_certificates(folder) == made == Certificates.from_line(made.to_line())
    with pytest.raises(ParameterError, match="already"):
        write_certificates(made, folder)
    (folder / "key.pem").chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        read_certificates(folder)
    (folder / "certificate.pem").write_text("nothing")
    with pytest.raises(InputError, match="certificate"):
        read_certificates(folder)
    (folder / "key.pem").unlink()
    with pytest.raises(InputError, match="No such file"):
        read_certificates(folder)


@pytest.mark.skipif(os.name != "posix", reason="this system has other file modes")
@pytest.mark.parametrize("mode", [0o2775, 0o1777, 0o755])
def test_write_certificates_leaves_mode_of_existing_folder(tmp_path: Path, mode: int, capsys: pytest.CaptureFixture[str]) -> None:
    folder, link = tmp_path / "shared", tmp_path / "link"
    folder.mkdir()
    folder.chmod(mode)
    link.symlink_to(folder, target_is_directory=True)
    assert main(["workers", "certificates", "--out", str(link)]) == 0
    assert stat.S_IMODE(folder.stat().st_mode) == mode
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert ("other users may write in" in capsys.readouterr().err) == bool(mode & 0o022)


def test_write_certificates_makes_private_folder(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        write_certificates(make_certificates(1), tmp_path / "parent" / "private")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "parent" / "private").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "parent").stat().st_mode) == 0o777, "a parent folder has the usual mode"


@pytest.mark.parametrize("line", ["", "{}", "[1]", "[1, 2]", '["a", "b", "c"]', "[" * 9999])
def test_certificates_from_line_rejects_invalid_text(line: str) -> None:
    with pytest.raises(ParameterError, match="standard input"):
        Certificates.from_line(line)


def test_version_difference_names_version_sources_or_python() -> None:
    current = program_version()
    assert version_difference(current, dict(current)) == ""
    assert version_difference({**current, "version": "0.0.1"}, current) == f"version 0.0.1 there, version {current['version']} here"
    assert "sources 0123" in version_difference({**current, "sources": "0123"}, current)
    assert version_difference({**current, "python": "3.1"}, current).startswith("Python 3.1 there")


@pytest.mark.parametrize(
    "arguments",
    [
        ["workers", "start", "tls://127.0.0.1:1"],
        ["workers", "start", "tcp://example.org:1"],
        ["workers", "scheduler", "here"],
        ["workers", "start", "tls://127.0.0.1:1", "--certificates", "nowhere"],
        ["workers", "certificates", "--out", "/dev/null"],
        ["workers"],
        ["workers", "certificates", "--out", "x", "--days", "0"],
    ],
)
def test_invalid_workers_command_is_reported_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("proteoscope: ") and error.count("\n") == 1 and "Traceback" not in error
