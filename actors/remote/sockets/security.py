"""Access to a server: secrets, certificates, and the users of Unix sockets."""

from __future__ import annotations

import hmac
import os
import pwd
import socket
import ssl
import stat
from pathlib import Path
from struct import Struct

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.remote.protocol.kinds import LONGEST_SECRET
from callboard.remote.sockets.address import Address, UnixAddress

# 128 bits, if each byte counts as four bits: the secret may be in hexadecimal digits.
_SHORTEST_SECRET = 32

_CREDENTIALS = Struct("iII")  # of SO_PEERCRED: process, user, group

PathLike = str | os.PathLike[str]


class Secret:
    """A secret that both sides know. The object's texts do not contain it."""

    def __init__(self, secret: str | bytes, source: str) -> None:
        """Take a secret, whose `source` is named in errors. Raises ConfigError."""
        try:  # in the environment, invalid bytes are surrogates
            raw = secret.encode(errors="surrogateescape") if isinstance(secret, str) else secret
        except UnicodeEncodeError:
            raise ConfigError(
                f"the secret from {source} has characters that UTF-8 cannot encode"
            ) from None
        if not _SHORTEST_SECRET <= len(raw) <= LONGEST_SECRET or len(set(raw)) < 8:
            raise ConfigError(
                f"the secret from {source} has {len(raw)} characters, {len(set(raw))} of them "
                f"different; it must have at least 128 bits, in {_SHORTEST_SECRET} to "
                f"{LONGEST_SECRET} characters: openssl rand -hex 32 makes one"
            )
        self.value = raw

    def fits(self, other: bytes) -> bool:
        """Compare it with the other side's secret, in constant time."""
        return hmac.compare_digest(self.value, other)

    def __repr__(self) -> str:
        return "<Secret>"


def find_secret(secret: str | None = None, secret_file: PathLike | None = None) -> Secret | None:
    """Return the secret given, or that of a file, or of the environment; None if there is none.

    In the environment, `CALLBOARD_SECRET_FILE` names a file, and `CALLBOARD_SECRET` is the secret
    itself. Raises ConfigError, also for a file that others may read.
    """
    if secret is not None and secret_file is not None:
        raise ConfigError("expected a secret or a file with it, got both")
    if secret is not None:
        if not isinstance(secret, str):
            raise ConfigError(f"expected a secret as a string, got a {type(secret).__name__}")
        return Secret(secret, "secret=")
    path = secret_file or os.environ.get("CALLBOARD_SECRET_FILE")
    if path:
        return Secret(_read_secret(_path("secret_file", path)), str(path))
    said = os.environ.get("CALLBOARD_SECRET")
    return None if said is None else Secret(said, "CALLBOARD_SECRET")


def _read_secret(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_IRWXO | stat.S_IWGRP):
                raise ConfigError(
                    f"{path} has the mode {stat.S_IMODE(mode):04o}: only its owner and group may "
                    "read a secret's file (chmod 600)"
                )
            return file.read(LONGEST_SECRET + 2).strip()
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        raise ConfigError(f"the secret's file cannot be read: {error}") from None


def _path(what: str, path: PathLike) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise ConfigError(f"{what} expects a path, got {safe_repr(path)}") from None


def server_context(
    address: Address, certificate: PathLike | None, key: PathLike | None
) -> ssl.SSLContext | None:
    """Return the TLS context of a server; None without TLS. Raises ConfigError.

    `certificate` and `key` are files in PEM format. Off loopback, TCP needs both.
    """
    if (certificate is None) != (key is None):
        raise ConfigError("TLS needs a certificate and its key, but one of them is missing")
    if isinstance(address, UnixAddress):
        if certificate is not None:
            raise ConfigError(f"{address} does not use TLS, as a Unix socket cannot be intercepted")
        return None
    if certificate is None or key is None:
        if not address.is_loopback:
            raise ConfigError(
                f"{address} can be reached from other machines, and so needs TLS: give a "
                "certificate and its key"
            )
        return None
    _warn_of_readers(_path("key", key))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    files = _path("certificate", certificate), _path("key", key)
    try:
        context.load_cert_chain(*files)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the certificate {safe_repr(str(certificate))} with the key {safe_repr(str(key))} "
            f"cannot be used: {error}"
        ) from None
    return context


def _warn_of_readers(key: Path) -> None:
    """Log that others may read a key: not an error, as containers often mount secrets so."""
    try:
        found = key.stat()
    except (OSError, ValueError):
        return  # loading it raises the error
    if stat.S_ISREG(found.st_mode) and found.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        log.warning("other users may read or write the TLS key", path=str(key), mode=mode)


def client_context(address: Address, authority: PathLike | None) -> ssl.SSLContext | None:
    """Return the TLS context of a client; None without TLS. Raises ConfigError.

    `authority` is a file with the certificate to trust, in PEM format: the server's or its
    signer's. Without one, TCP off loopback trusts the machine's authorities, and loopback has no
    TLS.
    """
    if isinstance(address, UnixAddress):
        if authority is not None:
            raise ConfigError(f"{address} does not use TLS, as a Unix socket cannot be intercepted")
        return None
    if authority is None and address.is_loopback:
        return None
    file = None if authority is None else _path("ca_file", authority)
    try:
        context = ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the certificate {safe_repr(str(authority))} cannot be used: {error}"
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def user_id(user: int | str | None) -> int:
    """Return the number of a user, given by number or name; by default of this process.

    Raises ConfigError.
    """
    if user is None:
        return os.geteuid()
    if isinstance(user, str) and not user.isdecimal():
        try:
            return pwd.getpwnam(user).pw_uid
        except (KeyError, ValueError):
            raise ConfigError(f"there is no user {safe_repr(user)}") from None
    number = int(user) if isinstance(user, str) else user
    return checks.whole("a user", number, 0, 2**32 - 2, error=ConfigError)


def untrusted_peer(peer: socket.socket, user: int | None = None) -> str | None:
    """Describe the other end of a Unix socket, unless it belongs to a user or root.

    The user is by default that of this process.
    """
    expected = os.geteuid() if user is None else user
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, found, _ = _CREDENTIALS.unpack(raw)
    return None if found in (expected, 0) else f"user {found}, process {process}"
