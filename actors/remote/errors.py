"""Errors of clients and servers."""

from __future__ import annotations

from callboard.core.errors import CallboardError, ConfigError

__all__ = [
    "BatchCommitted",
    "CodecError",
    "CommitConflict",
    "ConnectionLost",
    "ConnectionRejected",
    "NotPublished",
    "NotUploaded",
    "RemoteCallError",
    "RemoteError",
    "StateError",
    "UploadRefused",
]


class RemoteError(CallboardError):
    """The base of the errors between a client and a server."""


class CodecError(RemoteError, ValueError):
    """A value cannot be encoded, or bytes cannot be decoded."""


class ConnectionRejected(RemoteError):
    """The server refused the connection, or cannot be trusted. A retry would not help."""


class ConnectionLost(RemoteError):
    """The connection broke, was closed, or could not be made in time.

    An unanswered ask fails with this error: it may have been handled. `unacknowledged` counts the
    messages told on the connection that the server has not confirmed. Each was handled once or
    never.
    """

    def __init__(self, text: str, unacknowledged: int = 0) -> None:
        super().__init__(text)
        self.unacknowledged = unacknowledged


class RemoteCallError(RemoteError):
    """A message raised an exception of type `kind`, with this `text`, on the server."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


class UploadRefused(RemoteError):
    """Rows cannot be staged: a limit, a wrong count or checksum, or no state directory."""


class NotUploaded(RemoteError):
    """A commit names a winner that is not staged, or is staged with another number of rows."""


class BatchCommitted(RemoteError):
    """A batch is already committed: its rows can be neither added nor dropped."""


class CommitConflict(RemoteError):
    """A batch is already committed, with other winners."""


class NotPublished(RemoteError):
    """The rows are not published yet, or already released, or the entry publishes none."""


class StateError(ConfigError):
    """A server's state directory cannot be used."""
