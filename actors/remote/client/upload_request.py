"""A client's requests about staged and published rows, on their way through a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callboard import Future
from callboard.remote.errors import ConnectionLost, RemoteError
from callboard.remote.protocol.client_side import BEFORE_DATA, ClientSide
from callboard.remote.protocol.conversation import Submission
from callboard.remote.protocol.kinds import ANSWERED, PUBLISHING, MessageKind
from callboard.remote.wire.frames import Buffer

_FOR_AN_ENTRY = PUBLISHING | {MessageKind.BEGIN}


class UploadConnection:
    """The connection that an upload was begun on: no other knows of it."""

    def __init__(self) -> None:
        self.side: ClientSide | None = None


class UploadRequest(Submission):
    """A request. One of an open upload goes over the upload's own connection, or fails."""

    __slots__ = ("upload",)

    hears_of_trouble = False  # it is another's

    def __init__(
        self,
        kind: MessageKind,
        *parts: Buffer,
        upload: UploadConnection | None = None,
        entry: str = "",
    ) -> None:
        """`entry` is that of a BEGIN, or of a request about published rows."""
        answer: Future[Any] | None = Future() if kind in ANSWERED else None
        super().__init__(kind, entry, parts, int(kind in ANSWERED), answer)
        self.upload = upload

    def fits(self, side: ClientSide, places: Mapping[str, int]) -> bool:
        """Tell whether it may be sent now."""
        if self.kind in _FOR_AN_ENTRY:
            return super().fits(side, places)
        return side.has_room(self.messages, self.size)

    def loss(self, side: ClientSide | None) -> ConnectionLost | None:
        """Return why no connection will ever take it, from `side` on, or None."""
        if self.kind is MessageKind.BEGIN or self.upload is None or self.upload.side is side:
            return None
        return ConnectionLost("the connection was lost in the middle of an upload")

    def obstacle(self, side: ClientSide, places: Mapping[str, int]) -> RemoteError | None:
        """Return why the server will never take it, or None."""
        if self.kind in _FOR_AN_ENTRY:
            return super().obstacle(side, places)
        server = side.server
        assert server is not None
        size, most = self.size + BEFORE_DATA, server.longest
        if size > most:
            return RemoteError(f"a {self.kind.name} of {size} bytes; the server takes {most}")
        return None

    def dispatch(
        self, side: ClientSide, places: Mapping[str, int]
    ) -> tuple[int, tuple[Buffer, ...]]:
        """Return its sequence number, and the data to send."""
        entry = None
        if self.kind in _FOR_AN_ENTRY:
            entry = places[self.entry]
        if self.kind is MessageKind.BEGIN:
            assert self.upload is not None
            self.upload.side = side
        return side.request(self.kind, entry, self.parts, self.size)
