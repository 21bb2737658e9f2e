"""Certificates of the scheduler, the workers and the client of a cluster: each shows its own, and believes nobody without one.

Whoever has one can run any program on all of the machines, since `distributed` sends functions around: they are the boundary of trust.
"""

from __future__ import annotations

import datetime
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from proteoscope.engine.errors import InputError, ParameterError, StorageError, WorkersError, shortened
from proteoscope.engine.files import atomic_file, open_regular, storage_errors
from proteoscope.engine.shared_folders import make_folder
from proteoscope.kernels.trusted_folders import is_of_this_user, untrusted_folder

if TYPE_CHECKING:
    from distributed import Security

__all__ = [
    "AUTHORITY",
    "ROLES",
    "USUAL_DAYS",
    "Certificates",
    "Role",
    "make_certificates",
    "needs_cryptography",
    "read_certificates",
    "write_certificates",
]

Role = Literal["scheduler", "worker", "client"]
ROLES: tuple[Role, ...] = ("scheduler", "worker", "client")
AUTHORITY = "authority.pem"
USUAL_DAYS = 365
"""That certificates are valid which somebody makes to keep."""
_MAXIMUM_BYTES = 1 << 20
_MAXIMUM_DAYS = 3650
_ANEW = "Make new ones with: proteoscope workers certificates --out DIR"


@dataclass(frozen=True)
class Certificates:
    """PEM texts: of the authority that signed them, and for each role its certificate with its key."""

    authority: str
    of_role: dict[Role, tuple[str, str]]

    def security(self) -> Security:
        """As `distributed` takes them; without encryption it connects nothing."""
        from distributed import Security  # optional: installed with the extra "workers"

        fields = {}
        for role, (certificate, key) in self.of_role.items():
            fields[f"tls_{role}_cert"], fields[f"tls_{role}_key"] = certificate, key
        return Security(require_encryption=True, tls_ca_file=self.authority, **fields)

    def bundle(self, role: Role) -> str:
        """What one role needs, as a line of JSON."""
        return json.dumps({"authority": self.authority, "role": role, "certificate": list(self.of_role[role])})

    @classmethod
    def from_bundle(cls, line: str) -> Certificates:
        """What `bundle` gave.

        Raises
        ------
        ParameterError : it is something else.
        """
        try:
            found = json.loads(line)
            authority, role, (certificate, key) = found["authority"], found["role"], found["certificate"]
            if role not in ROLES or not all(isinstance(text, str) for text in (authority, certificate, key)):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ParameterError("--certificates -: expected one line from a run of the program on standard input") from None
        return cls(authority, {role: (certificate, key)})


def make_certificates(days: int = 1) -> Certificates:
    """New ones, which are valid for so many days. The key of the authority is kept nowhere: nobody can make more of them.

    Raises
    ------
    ParameterError : so many days cannot be.
    """
    from cryptography import x509  # optional: installed with the extra "workers"
    from cryptography.hazmat.primitives import hashes, serialization  # optional: installed with the extra "workers"
    from cryptography.hazmat.primitives.asymmetric import ec  # optional: installed with the extra "workers"
    from cryptography.x509.oid import NameOID  # optional: installed with the extra "workers"

    if not 1 <= days <= _MAXIMUM_DAYS:
        raise ParameterError(f"days = {days}: expected 1 to {_MAXIMUM_DAYS}")
    now = datetime.datetime.now(datetime.UTC)
    begin, end = now - datetime.timedelta(hours=1), now + datetime.timedelta(days=days)  # clocks differ

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"proteoscope {name}")])

    def certificate(name: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey, *, is_authority: bool) -> str:
        made = (
            x509.CertificateBuilder()
            .subject_name(named(name))
            .issuer_name(named("authority"))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(not is_authority, False, False, False, False, is_authority, is_authority, False, False), critical=True
            )
            .sign(signer, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def text(key: ec.EllipticCurvePrivateKey) -> str:
        plain = serialization.NoEncryption()
        return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()

    authority = ec.generate_private_key(ec.SECP256R1())
    keys: dict[Role, ec.EllipticCurvePrivateKey] = {role: ec.generate_private_key(ec.SECP256R1()) for role in ROLES}
    return Certificates(
        certificate("authority", authority, authority, is_authority=True),
        {role: (certificate(role, key, authority, is_authority=False), text(key)) for role, key in keys.items()},
    )


def write_certificates(certificates: Certificates, folder: Path) -> list[Path]:
    """Write certificates and keys into a folder, and return the paths of what was written.

    A folder that is made can be read by the user only; the mode of one that exists does not change. Keys can be read by the user only in
    either.

    Raises
    ------
    ParameterError : there are some already. StorageError : the disk refuses.
    """
    if (folder / AUTHORITY).exists():
        raise ParameterError(f"{folder}: there are certificates in it already; give a folder that is not there yet")
    texts = {AUTHORITY: certificates.authority}
    for role, (certificate, key) in certificates.of_role.items():
        texts[f"{role}.pem"], texts[f"{role}-key.pem"] = certificate, key
    _require_own(folder)
    with storage_errors(folder):
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        if not is_of_this_user(folder.lstat()):  # another user made it meanwhile
            raise StorageError(f"{folder}: other users can replace certificates here. Give a folder of your own.")
    written = []
    for name, text in sorted(texts.items(), reverse=True):  # the authority is there when all are
        with atomic_file(folder / name) as file:
            os.chmod(file.fileno(), 0o600)  # noqa: PTH101 - the file has no name of its own yet
            file.write(text.encode())
        written.append(folder / name)
    return sorted(written)


def _require_own(folder: Path) -> None:
    if (part := untrusted_folder(folder / AUTHORITY)) is not None:
        raise StorageError(f"{part}: other users can replace certificates here. Give a folder of your own.")


def read_certificates(folder: Path, *roles: Role) -> Certificates:
    """Those of some roles in a folder.

    Raises
    ------
    InputError : one is missing, is none, is not valid now, is of another authority or key, or its key can be read by others.
    """
    authority = _read(folder / AUTHORITY)
    found: dict[Role, tuple[str, str]] = {}
    for role in roles:
        key = folder / f"{role}-key.pem"
        found[role] = _read(folder / f"{role}.pem"), _read(key)
        if os.name == "posix" and key.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InputError(key, "others than you can read this key", remedy=f"chmod 600 {key}")
    _check(folder, authority, found)
    return Certificates(authority, found)


def _read(path: Path) -> str:
    try:
        with open_regular(path) as file:
            text = file.read(_MAXIMUM_BYTES)
        return text.decode("ascii")
    except (OSError, ValueError) as error:
        remedy = "Make them with: proteoscope workers certificates --out DIR"
        raise InputError(path, f"is no certificate ({getattr(error, 'strerror', None) or error})", remedy=remedy) from None


def _check(folder: Path, authority: str, of_role: Mapping[Role, tuple[str, str]]) -> None:
    """Require certificates that are valid now, signed by the authority, each with its key."""
    needs_cryptography()
    from cryptography import x509  # optional: installed with the extra "workers"
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm  # optional: installed with the extra "workers"
    from cryptography.hazmat.primitives import serialization  # optional: installed with the extra "workers"

    try:
        signer = x509.load_pem_x509_certificate(authority.encode())
        loaded = {role: x509.load_pem_x509_certificate(certificate.encode()) for role, (certificate, _) in of_role.items()}
        keys = {role: serialization.load_pem_private_key(key.encode(), None).public_key() for role, (_, key) in of_role.items()}
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(folder, f"holds a certificate or key that is none ({shortened(str(error))})", remedy=_ANEW) from None
    for certificate in (signer, *loaded.values()):
        _check_time(folder, certificate.not_valid_before_utc, certificate.not_valid_after_utc)
    for role, certificate in loaded.items():
        try:
            certificate.verify_directly_issued_by(signer)
        except (ValueError, TypeError, InvalidSignature):
            raise InputError(folder / f"{role}.pem", f"is not signed by the authority in {AUTHORITY}", remedy=_ANEW) from None
        if certificate.public_key() != keys[role]:
            raise InputError(folder / f"{role}.pem", f"does not belong to the key in {role}-key.pem", remedy=_ANEW)


def _check_time(folder: Path, begin: datetime.datetime, end: datetime.datetime) -> None:
    now = datetime.datetime.now(datetime.UTC)
    if end < now:
        raise InputError(folder, f"its certificates were valid until {end:%Y-%m-%d}", remedy=_ANEW)
    if begin > now:
        remedy = "Correct the clock of this machine, or make new ones with: proteoscope workers certificates --out DIR"
        raise InputError(folder, f"its certificates are valid from {begin:%Y-%m-%d %H:%M} UTC on", remedy=remedy)


def needs_cryptography() -> None:
    """Say what is missing where the libraries for workers are not installed.

    Raises
    ------
    WorkersError : they are not.
    """
    try:
        import cryptography  # optional: installed with the extra "workers"
        import distributed  # noqa: F401 - optional: installed with the extra "workers"

        del cryptography
    except ImportError as error:
        raise WorkersError(f"workers need libraries that are not installed ({error}); install proteoscope[workers]") from None
