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
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.remote.errors import SecurityError
from callboard.remote.protocol.kinds import LONGEST_SECRET
from callboard.remote.sockets.address import Address, UnixAddress

# 128 bits, where each byte of a secret is worth four: it may be written in hexadecimal digits.
_SHORTEST_SECRET = 32

_CREDENTIALS = Struct("iII")  # of SO_PEERCRED: process, user, group

PathLike = str | os.PathLike[str]


class Secret:
    """A secret that both sides know. It shows itself nowhere."""

    def __init__(self, secret: str | bytes, source: str) -> None:
        """Take a secret; `source` says in errors where it is from. Raises SecurityError."""
        try:  # the environment has bytes that are no text as surrogates
            raw = secret.encode(errors="surrogateescape") if isinstance(secret, str) else secret
        except UnicodeEncodeError:
            raise SecurityError(
                f"the secret from {source} has characters that UTF-8 cannot encode"
            ) from None
        if not _SHORTEST_SECRET <= len(raw) <= LONGEST_SECRET or len(set(raw)) < 8:
            raise SecurityError(
                f"the secret from {source} has {len(raw)} characters, of which {len(set(raw))} "
                f"differ; it must have 128 bits at least, in {_SHORTEST_SECRET} to "
                f"{LONGEST_SECRET} characters: openssl rand -hex 32 makes one"
            )
        self.value = raw

    def fits(self, other: bytes) -> bool:
        """Tell whether this is the other side's secret, in a time that does not depend on it."""
        return hmac.compare_digest(self.value, other)

    def __repr__(self) -> str:
        return "<Secret>"


def find_secret(secret: str | None = None, secret_file: PathLike | None = None) -> Secret | None:
    """Return the secret given, or that of a file, or of the environment; None if there is none.

    In the environment, `CALLBOARD_SECRET_FILE` names a file, and `CALLBOARD_SECRET` is the secret
    itself. Raises SecurityError, also for a file that others may read.
    """
    if secret is not None and secret_file is not None:
        raise SecurityError("a secret is given, or a file that has it, but not both")
    if secret is not None:
        if not isinstance(secret, str):
            raise SecurityError(f"a secret is a text, not a {type(secret).__name__}")
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
                raise SecurityError(
                    f"{path} has the mode {stat.S_IMODE(mode):04o}: a secret's file is for its "
                    "owner, and at most to be read by its group (chmod 600)"
                )
            return file.read(LONGEST_SECRET + 2).strip()
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        raise SecurityError(f"the secret's file cannot be read: {error}") from None


def _path(what: str, path: PathLike) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise SecurityError(f"{what} is a path, not {safe_repr(path)}") from None


def server_context(
    address: Address, certificate: PathLike | None, key: PathLike | None
) -> ssl.SSLContext | None:
    """Return what a server's TLS needs; None for none. Raises SecurityError.

    `certificate` and `key` are files in PEM format. Off loopback TCP wants both.
    """
    if (certificate is None) != (key is None):
        raise SecurityError("TLS needs a certificate and its key, and one of them is missing")
    if isinstance(address, UnixAddress):
        if certificate is not None:
            raise SecurityError(f"{address} takes no TLS: nobody can listen on the way")
        return None
    if certificate is None or key is None:
        if not address.is_loopback:
            raise SecurityError(
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
        raise SecurityError(
            f"the certificate {safe_repr(str(certificate))} with the key {safe_repr(str(key))} "
            f"cannot be used: {error}"
        ) from None
    return context


def _warn_of_readers(key: Path) -> None:
    """Log that others may read a key: no error, as secrets of containers are often mounted so."""
    try:
        found = key.stat()
    except (OSError, ValueError):
        return  # who loads it says so
    if stat.S_ISREG(found.st_mode) and found.st_mode & (stat.S_IRWXO | stat.S_IWGRP):
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        log.warning("others may read or write the key of TLS", path=str(key), mode=mode)


def client_context(address: Address, authority: PathLike | None) -> ssl.SSLContext | None:
    """Return what a client's TLS needs; None for none. Raises SecurityError.

    `authority` is a file with the certificate to trust, in PEM format: that of the server, or of
    who signed it. Without one, TCP off loopback trusts what the machine trusts, and loopback goes
    without TLS.
    """
    if isinstance(address, UnixAddress):
        if authority is not None:
            raise SecurityError(f"{address} takes no TLS: nobody can listen on the way")
        return None
    if authority is None and address.is_loopback:
        return None
    file = None if authority is None else _path("ca_file", authority)
    try:
        context = ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        raise SecurityError(
            f"the certificate {safe_repr(str(authority))} cannot be used: {error}"
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def user_id(user: int | str | None) -> int:
    """Return the number of a user, who may be named; without one, that of this process.

    Raises SecurityError.
    """
    if user is None:
        return os.geteuid()
    if isinstance(user, str) and not user.isdecimal():
        try:
            return pwd.getpwnam(user).pw_uid
        except (KeyError, ValueError):
            raise SecurityError(f"there is no user {safe_repr(user)}") from None
    number = int(user) if isinstance(user, str) else user
    return checks.whole("a user", number, 0, 2**32 - 2, error=SecurityError)


def stranger(peer: socket.socket, user: int | None = None) -> str | None:
    """Describe the other end of a Unix socket, unless it is a user, or root.

    Without a user it is that of this process.
    """
    expected = os.geteuid() if user is None else user
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, found, _ = _CREDENTIALS.unpack(raw)
    return None if found in (expected, 0) else f"user {found}, process {process}"
