"""A client's requests about staged and published rows, on their way through a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callboard import Future
from callboard.remote.errors import ConnectionLost, RemoteError
from callboard.remote.protocol.client_side import BEFORE_DATA, ClientSide
from callboard.remote.protocol.conversation import Parcel
from callboard.remote.protocol.kinds import ANSWERED, PUBLISHING, MessageKind
from callboard.remote.wire.frames import Buffer

_FOR_AN_ENTRY = PUBLISHING | {MessageKind.BEGIN}


class StagePlace:
    """The connection that a stage was begun on: no other knows of it."""

    def __init__(self) -> None:
        self.side: ClientSide | None = None


class StagingParcel(Parcel):
    """A request. One of an open stage goes over the stage's own connection, or fails."""

    __slots__ = ("stage",)

    hears_of_trouble = False  # it is another's

    def __init__(
        self,
        kind: MessageKind,
        *parts: Buffer,
        stage: StagePlace | None = None,
        entry: str = "",
    ) -> None:
        """`entry` is that of a BEGIN, or of a request about published rows."""
        answer: Future[Any] | None = Future() if kind in ANSWERED else None
        super().__init__(kind, entry, parts, int(kind in ANSWERED), answer)
        self.stage = stage

    def fits(self, side: ClientSide, places: Mapping[str, int]) -> bool:
        """Tell whether it may be sent now."""
        if self.kind in _FOR_AN_ENTRY:
            return super().fits(side, places)
        return side.has_room(self.messages, self.size)

    def loss(self, side: ClientSide | None) -> ConnectionLost | None:
        """Return why no connection will ever take it, from `side` on, or None."""
        if self.kind is MessageKind.BEGIN or self.stage is None or self.stage.side is side:
            return None
        return ConnectionLost("the connection was lost in the middle of a stage")

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
            assert self.stage is not None
            self.stage.side = side
        return side.request(self.kind, entry, self.parts, self.size)
