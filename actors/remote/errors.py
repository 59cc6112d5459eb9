"""Errors that only systems in other processes have."""

from __future__ import annotations

from callboard.core.errors import CallboardError, ConfigError

__all__ = [
    "AddressError",
    "BatchCommitted",
    "CodecError",
    "CommitConflict",
    "ConnectionLost",
    "ConnectionRejected",
    "NotPublished",
    "NotUploaded",
    "ProtocolError",
    "RemoteCallError",
    "RemoteError",
    "SecurityError",
    "StateError",
    "UploadRefused",
]


class RemoteError(CallboardError):
    """The base of the errors between a client and a server."""


class AddressError(ConfigError):
    """An address is neither `unix:PATH` nor `tcp:HOST:PORT`."""


class SecurityError(ConfigError):
    """A secret, a certificate, or the lack of one, makes a connection unsafe."""


class CodecError(RemoteError, ValueError):
    """A value cannot be encoded, or bytes cannot be decoded."""


class ProtocolError(RemoteError):
    """The other side sent a frame that the protocol does not allow at this point."""


class ConnectionRejected(RemoteError):
    """A connection was refused for a reason that another attempt will not change.

    By the server; or by this side, as the server is not to be trusted.
    """


class ConnectionLost(RemoteError):
    """The connection broke, or was closed, or could not be made in time.

    An ask that was sent and not answered fails with this one: whether it was handled is not known.
    `unacknowledged` is the number of messages that were told on the connection and of which the
    server had not said that they were handled; each was handled once or never.
    """

    def __init__(self, text: str, unacknowledged: int = 0) -> None:
        super().__init__(text)
        self.unacknowledged = unacknowledged


class RemoteCallError(RemoteError):
    """A message raised an exception on the server: of type `kind`, with this `text`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


class UploadRefused(RemoteError):
    """Rows cannot be staged: a limit, a wrong count or checksum, no state directory."""


class NotUploaded(RemoteError):
    """A commit names a winner that is not staged, or not with that many rows."""


class BatchCommitted(RemoteError):
    """A batch is committed: nothing more can be staged for it, or dropped."""


class CommitConflict(RemoteError):
    """A batch is committed, and with other winners than a commit names now."""


class NotPublished(RemoteError):
    """Published rows are not there: not yet, or not any more, or the entry publishes none."""


class StateError(ConfigError):
    """A server's state directory cannot be used."""
