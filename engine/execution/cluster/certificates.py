"""Certificate and key shared by scheduler, workers and runs; each presents the certificate and trusts no other certificate.

Anyone with the key can run any program on all these machines, because `distributed` sends functions: the key is the boundary of trust.
"""

from __future__ import annotations

import datetime
import json
import os
import stat
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from proteoscope.engine.errors import InputError, ParameterError, StorageError, WorkersError, shortened
from proteoscope.engine.files import atomic_file, open_regular, storage_errors
from proteoscope.engine.project.outputs import check_outputs
from proteoscope.engine.shared_folders import make_folder
from proteoscope.kernels.trusted_folders import is_owned_by_this_user, untrusted_folder

if TYPE_CHECKING:
    from distributed import Security

__all__ = [
    "CERTIFICATE",
    "KEY",
    "USUAL_DAYS",
    "Certificates",
    "make_certificates",
    "needs_cryptography",
    "read_certificates",
    "read_text",
    "write_certificates",
]

CERTIFICATE, KEY = "certificate.pem", "key.pem"
"""Names of the certificate file and the key file in a folder."""
USUAL_DAYS = 365
"""Default validity of certificates, days."""
_MAXIMUM_BYTES = 1 << 20
_MAXIMUM_DAYS = 3650
_REMEDY = "Create new certificates with: proteoscope workers certificates --out DIR"
_REPLACEABLE = "other users can replace certificates here. Give a folder of your own."


@dataclass(frozen=True)
class Certificates:
    """Self-signed certificate with its key, as PEM texts or as paths of files; `distributed` reads both."""

    certificate: str
    key: str

    def security(self) -> Security:
        """Return the settings of `distributed`, which refuse connections without encryption."""
        from distributed import Security  # optional: installed with the extra "workers"

        files = {"cert": self.certificate, "key": self.key}
        fields = {f"tls_{role}_{name}": file for role in ("scheduler", "worker", "client") for name, file in files.items()}
        return Security(require_encryption=True, tls_ca_file=self.certificate, **fields)

    def to_line(self) -> str:
        """Return the certificate and key as a line of JSON, for the standard input of a process."""
        return json.dumps(astuple(self))

    @classmethod
    def from_line(cls, line: str) -> Certificates:
        """Read the certificate and key from a result of `to_line`.

        Raises
        ------
        ParameterError
            If the line is not such a result.
        """
        try:
            return cls(*TypeAdapter(tuple[str, str]).validate_json(line))
        except ValidationError:
            raise ParameterError("--certificates -: expected one line from a run of the program on standard input") from None


def make_certificates(days: int = 1) -> Certificates:
    """Create a self-signed certificate with a new key.

    Parameters
    ----------
    days : int
        Validity of the certificate, days.

    Raises
    ------
    ParameterError
        If `days` is out of range.
    """
    from cryptography import x509  # optional: installed with the extra "workers"
    from cryptography.hazmat.primitives import hashes, serialization  # optional: installed with the extra "workers"
    from cryptography.hazmat.primitives.asymmetric import ec  # optional: installed with the extra "workers"
    from cryptography.x509.oid import NameOID  # optional: installed with the extra "workers"

    if not 1 <= days <= _MAXIMUM_DAYS:
        raise ParameterError(f"days = {days}: expected 1 to {_MAXIMUM_DAYS}")
    now, name = datetime.datetime.now(datetime.UTC), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "proteoscope")])
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    return Certificates(
        certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode(),
    )


def write_certificates(certificates: Certificates, folder: Path) -> list[Path]:
    """Write a certificate and its key into a folder.

    Only the user can read the files. A new folder is readable by the user only; the mode of an existing folder is not changed.

    Returns
    -------
    list of Path
        Paths of the written files.

    Raises
    ------
    ParameterError
        If the folder already contains a certificate or key.
    StorageError
        If writing fails, or other users can replace files in the folder.
    """
    check_outputs([folder / CERTIFICATE], [])
    if (folder / CERTIFICATE).exists():
        raise ParameterError(f"{folder}: already contains certificates; give a new folder")
    if (part := untrusted_folder(folder / CERTIFICATE)) is not None:
        raise StorageError(f"{part}: {_REPLACEABLE}")
    with storage_errors(folder):
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        if not is_owned_by_this_user(folder.lstat()):  # another user created it in the meantime
            raise StorageError(f"{folder}: {_REPLACEABLE}")
    # The certificate is written last: if it exists, the key exists too.
    for name, text in ((KEY, certificates.key), (CERTIFICATE, certificates.certificate)):
        with atomic_file(folder / name) as file:
            os.chmod(file.fileno(), 0o600)  # noqa: PTH101 - the file has no name of its own yet
            file.write(text.encode())
    return [folder / CERTIFICATE, folder / KEY]


def read_certificates(folder: Path) -> Certificates:
    """Read the certificate and key in a folder.

    Raises
    ------
    InputError
        If a file is missing or damaged, the certificate is not valid now or does not belong to the key, or other users can read the key.
    """
    certificates = Certificates(*(read_text(folder / name, remedy=_REMEDY) for name in (CERTIFICATE, KEY)))
    if os.name == "posix" and (folder / KEY).stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(folder / KEY, "other users can read this private key", remedy=f"chmod 600 {folder / KEY}")
    needs_cryptography()
    from cryptography import x509  # optional: installed with the extra "workers"
    from cryptography.exceptions import UnsupportedAlgorithm  # optional: installed with the extra "workers"
    from cryptography.hazmat.primitives import serialization  # optional: installed with the extra "workers"

    try:
        certificate = x509.load_pem_x509_certificate(certificates.certificate.encode())
        key = serialization.load_pem_private_key(certificates.key.encode(), None)
        belongs = certificate.public_key() == key.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(folder, f"has a damaged certificate or key ({shortened(str(error))})", remedy=_REMEDY) from None
    if not belongs:
        raise InputError(folder, f"{CERTIFICATE} does not belong to {KEY}", remedy=_REMEDY)
    begin, end, now = certificate.not_valid_before_utc, certificate.not_valid_after_utc, datetime.datetime.now(datetime.UTC)
    if end < now:
        raise InputError(folder, f"its certificate was valid until {end:%Y-%m-%d}", remedy=_REMEDY)
    if begin > now:
        remedy = f"Correct the clock of this machine. {_REMEDY}"
        raise InputError(folder, f"its certificate is valid from {begin:%Y-%m-%d %H:%M} UTC on", remedy=remedy)
    return certificates


def read_text(path: Path, *, remedy: str = "") -> str:
    """Read a small UTF-8 file of the user.

    Parameters
    ----------
    path : Path
        File to read.
    remedy : str
        Advice to the user in errors (see `InputError`).

    Raises
    ------
    InputError
        If the file cannot be read, or is not UTF-8.
    """
    try:
        with open_regular(path) as file:
            return file.read(_MAXIMUM_BYTES).decode()
    except (OSError, ValueError) as error:
        raise InputError(path, f"cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})", remedy=remedy) from None


def needs_cryptography() -> None:
    """Raise an error unless the libraries for workers are installed.

    Raises
    ------
    WorkersError
        If the libraries are not installed.
    """
    try:
        import cryptography  # noqa: F401 - optional: installed with the extra "workers"
        import distributed  # noqa: F401 - optional: installed with the extra "workers"
    except ImportError as error:
        raise WorkersError(f"workers need missing libraries ({error}); in the source folder: pip install -e '.[workers]'") from None
