"""A server: clients of other processes tell and ask the actors of a system."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from callboard import ActorRef, ActorSystem, Future
from callboard import __version__ as version
from callboard.core.errors import DrainTimeout
from callboard.core.handles import public_names
from callboard.core.log import log
from callboard.core.text import sendable
from callboard.core.threads.blocking import refuse_to_block
from callboard.core.threads.wait_queue import WaitQueue
from callboard.in_thread import InThread
from callboard.remote.errors import SecurityError, StateError, UploadRefused
from callboard.remote.protocol.kinds import ANSWERED, Farewell, farewell
from callboard.remote.protocol.server_side import ServerLimits, StagingRequest
from callboard.remote.protocol.shard import Shard
from callboard.remote.server.client_actor import ClientActor
from callboard.remote.server.peer import Peer
from callboard.remote.sockets.address import UnixAddress, parse_address
from callboard.remote.sockets.dialing import shake_hands
from callboard.remote.sockets.forked import let_go_in_children
from callboard.remote.sockets.io_thread import IOThread
from callboard.remote.sockets.listening import Listener, prepare
from callboard.remote.sockets.security import PathLike, Secret, server_context, stranger
from callboard.remote.staging.entries import Entry, GraphEntry, PersistentEntry, failures_of
from callboard.remote.staging.service import StagingService
from callboard.remote.storage.store import StagingLimits
from callboard.remote.wire.codec import Codec, Types

_PATIENCE = 0.05  # seconds that a client has to say who it is, where others want its place
_END = 5.0  # seconds that the thread has to end
_TROUBLE = 1_000  # bytes of what is wrong, which go into each PONG


class Server:
    """Serves entry points on an address, from the moment it is made until `drain()` or `stop()`.

    `adrain()` and `astop()` are the same for coroutines. One thread of its own reads and
    writes; each client is an actor of the system.
    """

    __dir__ = public_names

    def __init__(
        self,
        system: ActorSystem,
        entries: Mapping[str, Entry],
        bind: str,
        *,
        secret: Secret | None = None,
        certificate: PathLike | None = None,
        key: PathLike | None = None,
        types: Types = (),
        codec: Codec | None = None,
        limits: ServerLimits | None = None,
        state: PathLike | None = None,
        staging: StagingLimits | None = None,
        shard: Shard | None = None,
    ) -> None:
        """Listen. TCP needs a secret, and off loopback a certificate and its key.

        Messages are encoded by a `codec`; without it, by one that knows the `types`.

        With a directory for its `state`, rows can be staged, within the limits of `staging`. Rows
        that were committed there and not applied are applied before a client is let in. With a
        `shard` it is that one of several servers, and refuses the state of another.

        Raises AddressError, SecurityError, StateError, ConfigError.
        """
        address = parse_address(bind)
        self._context = server_context(address, certificate, key)
        if secret is None and not isinstance(address, UnixAddress):
            raise SecurityError(
                f"{address} is open to all users of this machine at least, and so needs a secret: "
                "give the path of a file that has one, or set CALLBOARD_SECRET_FILE"
            )
        self._system = system
        self._secret = secret
        self.entries = dict(entries)
        self.limits = limits or ServerLimits()
        self.codec = Codec(types, self.limits.values) if codec is None else codec
        self._begun = time.monotonic()
        self._lock = threading.Lock()  # of the counts
        self._handled = 0
        self._accepted = 0
        self._refused = 0
        self._is_draining = False
        self._is_stopped = False
        self._peers: dict[Peer, None] = {}  # the oldest first
        self._shaking: dict[asyncio.Task[None], float] = {}  # in TLS's handshake, since when
        self._is_empty = False  # of clients, after the drain has begun
        self._emptied = WaitQueue()
        self._shard = shard
        self._staging = self._open_state(state, staging)
        try:
            self._listener = Listener(address)
            self.address = self._listener.address
            try:
                self._io = IOThread(f"{system.name}-serve")
            except BaseException:
                self._listener.close()
                raise
        except BaseException:
            if self._staging is not None:
                self._staging.stop()
            raise
        self.loop = self._io.loop
        let_go_in_children(self)
        self._io.call(self._listen)
        system._observer.add_server(self)
        log.info("server started", address=str(self.address), entries=", ".join(self.entries))

    def _open_state(
        self, state: PathLike | None, limits: StagingLimits | None
    ) -> StagingService | None:
        if state is not None:
            return StagingService(
                self._system,
                self.entries,
                self.codec,
                state,
                limits,
                frame=self.limits.frame,
                shard=self._shard,
            )
        for name, entry in self.entries.items():
            if isinstance(entry, PersistentEntry):
                raise StateError(f"the entry {name!r} is PersistentActor: give a state directory")
        return None

    # --- what peers want --------------------------------------------------------------------------

    def _is_secret(self, secret: bytes) -> bool:
        """Tell whether a client's secret is the server's."""
        return self._secret is None or self._secret.fits(secret)

    def _spawn_client(self, peer: Peer) -> ActorRef[Any]:
        """Make the actor of a client."""
        return self._system.spawn(ClientActor, peer, list(self.entries.values()), self.codec)

    def _take_request(self, peer: Peer, request: StagingRequest) -> None:
        """Do a client's request about staged or published rows."""
        if self._staging is not None:
            self._staging.take_request(peer, request)
        elif request.kind in ANSWERED:
            why = (
                "the server has no state directory, so it takes no uploads and publishes no rows: "
                "start it with --state DIR"
            )
            peer.fail(request, UploadRefused(why))
        else:
            peer.note_handled(request)

    def _about(self) -> dict[str, Any]:
        """Return the server's description, for a client that is welcome."""
        return {"server": f"callboard {version}", **self._which()}

    def _which(self) -> dict[str, str]:
        return {} if self._shard is None else {"shard": str(self._shard)}

    def _note_handled(self, messages: int) -> None:
        """Count messages that were handled. In any thread."""
        with self._lock:
            self._handled += messages

    def _note_refusal(self) -> None:
        """Count a client that was refused."""
        with self._lock:
            self._refused += 1

    def _forget(self, peer: Peer) -> None:
        """Take note that a connection is gone."""
        self._peers.pop(peer, None)
        if self._staging is not None:
            self._staging.forget(peer)
        if self._is_draining and not self._peers:
            self._note_empty()

    def health(self) -> dict[str, Any]:
        """Return the answer to a ping: the server's health, in numbers."""
        letters = self._system.dead_letters
        staging = {} if self._staging is None else self._staging.health()
        failed = failures_of(self.entries)
        trouble = sendable(
            "; ".join(filter(None, [staging.get("trouble"), *failed.values()])), _TROUBLE
        )
        state = "draining" if self._is_draining else "serving"
        with self._lock:
            return {
                "state": "failing" if trouble else state,
                "uptime": time.monotonic() - self._begun,
                "connections": len(self._peers),
                "accepted": self._accepted,
                "refused": self._refused,
                "handled": self._handled,
                "dead_letters": letters.count,
                "failures": letters.failure_count + len(failed),
                **self._which(),
                **staging,
                "trouble": trouble,
            }

    # --- accepting, on the loop's thread ----------------------------------------------------------

    def _listen(self) -> None:
        self.loop.add_reader(self._listener.socket.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            connected, place = self._listener.socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:  # no more descriptors: let those be served that are there
            log.error("no client can be accepted", error=error)
            self._unlisten()
            self.loop.call_later(0.1, self._listen_again)
            return
        with self._lock:
            self._accepted += 1
            name = f"{place[0]}:{place[1]}" if place else f"unix-{self._accepted}"
        try:
            prepare(connected)
            obstacle = self._obstacle(connected)
        except OSError as error:
            connected.close()
            log.warning("client refused", client=name, error=error)
            return
        if obstacle is not None:
            self._turn_away(connected, name, obstacle)
        elif self._context is None:
            self._peers[Peer(self, connected, name)] = None
        else:
            task = self.loop.create_task(self._shake_hands(self._context, connected, name))
            self._shaking[task] = self.loop.time()
            task.add_done_callback(lambda task: self._shaking.pop(task, None))

    def _obstacle(self, connected: socket.socket) -> str | None:
        """Say why a client is not taken, or return None."""
        if isinstance(self.address, UnixAddress) and (who := stranger(connected)) is not None:
            return f"{who} is not the user of this server"
        peers = [peer for peer in self._peers if not peer.is_greeted]
        refused = next((peer for peer in peers if peer.is_refused), None)
        if self._is_full and refused is not None:
            refused.abort("it was refused, and its place is wanted")
        if self._is_full:
            return f"{self.limits.connections} clients are connected, which is the limit"
        unknown = [peer for peer in peers if not peer.is_refused]
        count = len(unknown) + len(self._shaking)
        if count >= self.limits.handshakes and not self._displace(unknown):
            return f"{count} clients have not said who they are, which is the limit"
        return None

    @property
    def _is_full(self) -> bool:
        return len(self._peers) + len(self._shaking) >= self.limits.connections

    def _displace(self, unknown: Sequence[Peer]) -> bool:
        """Hang up on the one that has been silent for longest, if that is long; False if not.

        Otherwise silent clients that connect again and again would keep others out.
        """
        never = self.loop.time()
        peer = unknown[0].begun if unknown else never
        task, begun = next(iter(self._shaking.items()), (None, never))
        if min(peer, begun) > never - _PATIENCE:
            return False
        self._note_refusal()
        if task is not None and begun <= peer:
            del self._shaking[task]
            task.cancel()
        else:
            unknown[0].abort("it did not say who it is, and its place is wanted")
        return True

    def _turn_away(self, connected: socket.socket, name: str, why: str) -> None:
        log.warning("client refused", client=name, error=why)
        self._note_refusal()
        try:
            if self._context is None:
                connected.send(farewell(Farewell.BUSY, why))
        except OSError:
            pass  # it is gone already
        finally:
            connected.close()

    async def _shake_hands(
        self, context: ssl.SSLContext, connected: socket.socket, name: str
    ) -> None:
        try:
            async with asyncio.timeout(self.limits.handshake_time):
                secured = await shake_hands(context, connected, server_side=True)
        except (OSError, TimeoutError) as error:
            log.warning("client refused", client=name, error=f"no TLS: {error!r}")
            self._note_refusal()
        else:
            if self._is_draining:
                secured.close()
            else:
                self._peers[Peer(self, secured, name)] = None

    def _listen_again(self) -> None:
        if not self._is_draining:
            self._listen()

    def _unlisten(self) -> None:
        self.loop.remove_reader(self._listener.socket.fileno())

    # --- the end ----------------------------------------------------------------------------------

    def drain(self, timeout: float) -> None:
        """Take no more messages, let those that were taken be handled and answered, and stop.

        Clients are told. Messages that the server has not read are not taken, and the clients know
        it. Raises DrainTimeout after `timeout` seconds, which says what is stuck; the server has
        stopped all the same. In a coroutine use `adrain()`: this raises WouldBlock.
        """
        refuse_to_block("drain()", "await adrain()")
        self._drain(timeout)

    def adrain(self, timeout: float) -> Future[None]:
        """Like drain(), but return a future at once, to be awaited in an event loop."""
        return InThread(f"{self._system.name}-serve-drain", lambda _: self._drain(timeout))

    def _drain(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        try:
            self._io.call(self._part)
            self._system.drain(timeout)
            if self._staging is not None:
                self._staging.finish(max(0.0, deadline - time.monotonic()))
            for run in {
                entry.run for entry in self.entries.values() if isinstance(entry, GraphEntry)
            }:
                run.finish(max(0.0, deadline - time.monotonic()))
            self._system.drain(max(0.0, deadline - time.monotonic()))
            left = max(0.0, deadline - time.monotonic())
            if not self._emptied.wait_for(lambda: self._is_empty, left):
                names = self._io.call(lambda: ", ".join(sorted(peer.name for peer in self._peers)))
                raise DrainTimeout(f"these clients did not read their answers in time: {names}")
        finally:
            self._stop()

    def _part(self) -> None:
        self._is_draining = True
        self._unlisten()
        self._listener.close()
        if not self._peers:
            self._note_empty()
        for peer in list(self._peers):
            peer.part(Farewell.DRAINING, "the server is shutting down")

    def _note_empty(self) -> None:
        self._is_empty = True
        self._emptied.notify_all()

    def stop(self) -> None:
        """Close all connections at once, and stop listening. A second call does nothing.

        It waits for the end of the server's thread. In a coroutine use `astop()`: this raises
        WouldBlock.
        """
        if not self._is_stopped:
            refuse_to_block("stop()", "await astop()")
        self._stop()

    def astop(self) -> Future[None]:
        """Like stop(), but return a future at once, to be awaited in an event loop."""
        return InThread(f"{self._system.name}-serve-stop", lambda _: self._stop())

    def _stop(self) -> None:
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = True
        self._io.call(self._abort)
        self._io.stop(_END)
        if self._staging is not None:
            self._staging.stop()
        log.info("server stopped", address=str(self.address))

    def forsake(self) -> None:
        """In a forked child: let go of the copies of connections."""
        for peer in self._peers:
            peer.forsake()

    def _abort(self) -> None:
        if not self._is_draining:
            self._is_draining = True
            self._unlisten()
            self._listener.close()
        for peer in list(self._peers):
            peer.abort("the server stops")
