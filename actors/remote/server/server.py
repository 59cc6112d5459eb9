"""A server, whose clients tell and ask the actors of a system from other processes."""

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
from callboard.core.errors import ConfigError, DrainTimeout
from callboard.core.handles import public_names
from callboard.core.log import log
from callboard.core.text import sendable
from callboard.core.threads.blocking import refuse_to_block
from callboard.core.threads.wait_queue import WaitQueue
from callboard.in_thread import InThread
from callboard.remote.errors import StateError, UploadRefused
from callboard.remote.protocol.kinds import GoodbyeReason, goodbye_frame
from callboard.remote.protocol.server_side import ClientRequest, ServerLimits
from callboard.remote.protocol.shard import Shard
from callboard.remote.server.client_actor import ClientActor
from callboard.remote.server.peer import Peer
from callboard.remote.sockets.address import UnixAddress, parse_address
from callboard.remote.sockets.dialing import shake_hands
from callboard.remote.sockets.forked import close_in_children
from callboard.remote.sockets.io_thread import IOThread
from callboard.remote.sockets.listening import Listener, prepare
from callboard.remote.sockets.security import PathLike, Secret, server_context, untrusted_peer
from callboard.remote.staging.entries import Entry, GraphEntry, PersistentEntry, failures_of
from callboard.remote.staging.service import StagingService
from callboard.remote.storage.store import StagingLimits
from callboard.remote.wire.codec import Codec, Types

_HANDSHAKE_GRACE = 0.05  # seconds that a client has for its handshake when places are scarce
_END = 5.0  # seconds that the thread has to end
_TROUBLE = 1_000  # bytes of what is wrong, which go into each PONG


class Server:
    """Serves entry points at an address, from its construction until `drain()` or `stop()`.

    In coroutines use `adrain()` and `astop()`. One I/O thread reads and writes; each client is an
    actor of the system.
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
        shard: str | None = None,
    ) -> None:
        """Start to listen.

        Args:
            system: The system whose actors are served.
            entries: The entry points by name, as `serve_entries()` returns them.
            bind: The address, `unix:PATH` or `tcp:HOST:PORT`.
            secret: The secret that clients must know. Required for TCP.
            certificate: The file of a certificate. Required, with its key, for TCP beyond loopback.
            key: The file of the certificate's key.
            types: The dataclasses and enumerations of messages.
            codec: The codec of messages; by default one for the `types`.
            limits: The limits of each client, and of all together.
            state: The directory for staged rows, used by one server at a time. Rows that were
                committed but not applied are applied before any client is served.
            staging: The limits of staged and published rows.
            shard: Which of several servers this is, such as "0/4". The state of another is refused.

        Raises:
            ConfigError: An argument is invalid, or the address cannot be used.
            StateError: The state directory cannot be used.
        """
        address = parse_address(bind)
        self._context = server_context(address, certificate, key)
        if secret is None and not isinstance(address, UnixAddress):
            raise ConfigError(
                f"{address} is open at least to all users of this machine, and so needs a secret: "
                "give the path of a file with one, or set CALLBOARD_SECRET_FILE"
            )
        self._system = system
        self._secret = secret
        self._entries = dict(entries)
        self._limits = limits or ServerLimits()
        self._codec = Codec(types, self._limits.values) if codec is None else codec
        self._begun = time.monotonic()
        self._lock = threading.Lock()  # of the counts
        self._handled = 0
        self._accepted = 0
        self._refused = 0
        self._is_draining = False
        self._is_stopped = False
        self._peers: dict[Peer, None] = {}  # oldest first
        self._shaking: dict[asyncio.Task[None], float] = {}  # TLS handshakes, and their beginning
        self._is_empty = False  # without clients, after the drain has begun
        self._emptied = WaitQueue()
        self._shard = None if shard is None else Shard.parse(shard)
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
        self._loop = self._io.loop
        close_in_children(self)
        self._io.call(self._listen)
        system._observer.add_server(self)
        log.info("server started", address=str(self.address), entries=", ".join(self._entries))

    def _open_state(
        self, state: PathLike | None, limits: StagingLimits | None
    ) -> StagingService | None:
        if state is not None:
            return StagingService(
                self._system,
                self._entries,
                self._codec,
                state,
                limits,
                frame=self._limits.frame,
                shard=self._shard,
            )
        for name, entry in self._entries.items():
            if isinstance(entry, PersistentEntry):
                raise StateError(f"the entry {name!r} is a PersistentActor: give a state directory")
        return None

    # --- called by peers --------------------------------------------------------------------------

    def _is_secret(self, secret: bytes) -> bool:
        """Tell whether a client's secret is the server's."""
        return self._secret is None or self._secret.fits(secret)

    def _spawn_client(self, peer: Peer) -> ActorRef[Any]:
        """Spawn the actor of a client."""
        return self._system.spawn(ClientActor, peer, list(self._entries.values()), self._codec)

    def _take_request(self, peer: Peer, request: ClientRequest) -> None:
        """Handle a client's request about staged or published rows."""
        if self._staging is not None:
            self._staging.take_request(peer, request)
        elif request.kind.is_answered:
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
        """Note that a connection is gone."""
        self._peers.pop(peer, None)
        if self._staging is not None:
            self._staging.forget(peer)
        if self._is_draining and not self._peers:
            self._note_empty()

    def health(self) -> dict[str, Any]:
        """Return the server's health, as in the answer to a ping."""
        letters = self._system.dead_letters
        staging = {} if self._staging is None else self._staging.health()
        failed = failures_of(self._entries)
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
        self._loop.add_reader(self._listener.socket.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            connected, place = self._listener.socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:  # no more descriptors: serve the clients that are connected
            log.error("no client can be accepted", error=error)
            self._unlisten()
            self._loop.call_later(0.1, self._listen_again)
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
            task = self._loop.create_task(self._shake_hands(self._context, connected, name))
            self._shaking[task] = self._loop.time()
            task.add_done_callback(lambda task: self._shaking.pop(task, None))

    def _obstacle(self, connected: socket.socket) -> str | None:
        """Return why a client is not taken, or None."""
        if isinstance(self.address, UnixAddress) and (who := untrusted_peer(connected)) is not None:
            return f"{who} is not the user of this server"
        peers = [peer for peer in self._peers if not peer.is_greeted]
        refused = next((peer for peer in peers if peer.is_refused), None)
        if self._is_full and refused is not None:
            refused.abort("it was refused, and its place is needed")
        if self._is_full:
            return f"{self._limits.connections} clients are connected, which is the limit"
        unknown = [peer for peer in peers if not peer.is_refused]
        count = len(unknown) + len(self._shaking)
        if count >= self._limits.handshakes and not self._displace(unknown):
            return f"{count} clients are in their handshake, which is the limit"
        return None

    @property
    def _is_full(self) -> bool:
        return len(self._peers) + len(self._shaking) >= self._limits.connections

    def _displace(self, unknown: Sequence[Peer]) -> bool:
        """Hang up on the client that has been silent longest, if that is long enough; else False.

        Otherwise silent clients that reconnect again and again would keep others out.
        """
        never = self._loop.time()
        peer = unknown[0].begun if unknown else never
        task, begun = next(iter(self._shaking.items()), (None, never))
        if min(peer, begun) > never - _HANDSHAKE_GRACE:
            return False
        self._note_refusal()
        if task is not None and begun <= peer:
            del self._shaking[task]
            task.cancel()
        else:
            unknown[0].abort("it did not complete its handshake, and its place is needed")
        return True

    def _turn_away(self, connected: socket.socket, name: str, why: str) -> None:
        log.warning("client refused", client=name, error=why)
        self._note_refusal()
        try:
            if self._context is None:
                connected.send(goodbye_frame(GoodbyeReason.BUSY, why))
        except OSError:
            pass  # it is gone already
        finally:
            connected.close()

    async def _shake_hands(
        self, context: ssl.SSLContext, connected: socket.socket, name: str
    ) -> None:
        try:
            async with asyncio.timeout(self._limits.handshake_time):
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
        self._loop.remove_reader(self._listener.socket.fileno())

    # --- the end ----------------------------------------------------------------------------------

    def drain(self, timeout: float) -> None:
        """Accept no more messages, handle and answer those that were accepted, and stop.

        Clients are told which messages the server has not accepted. Raises DrainTimeout, which
        names what is stuck, after `timeout` seconds; the server has then stopped anyway. Raises
        WouldBlock in a coroutine: use `adrain()`.
        """
        refuse_to_block("drain()", "await adrain()")
        self._drain(timeout)

    def adrain(self, timeout: float) -> Future[None]:
        """Like drain(), but return a future to await in an event loop."""
        return InThread(f"{self._system.name}-serve-drain", lambda _: self._drain(timeout))

    def _drain(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        try:
            self._io.call(self._say_goodbyes)
            self._system.drain(timeout)
            if self._staging is not None:
                self._staging.finish(max(0.0, deadline - time.monotonic()))
            for run in {
                entry.run for entry in self._entries.values() if isinstance(entry, GraphEntry)
            }:
                run.finish(max(0.0, deadline - time.monotonic()))
            self._system.drain(max(0.0, deadline - time.monotonic()))
            left = max(0.0, deadline - time.monotonic())
            if not self._emptied.wait_for(lambda: self._is_empty, left):
                names = self._io.call(lambda: ", ".join(sorted(peer.name for peer in self._peers)))
                raise DrainTimeout(f"these clients did not read their answers in time: {names}")
        finally:
            self._stop()

    def _say_goodbyes(self) -> None:
        self._is_draining = True
        self._unlisten()
        self._listener.close()
        if not self._peers:
            self._note_empty()
        for peer in list(self._peers):
            peer.say_goodbye(GoodbyeReason.DRAINING, "the server is shutting down")

    def _note_empty(self) -> None:
        self._is_empty = True
        self._emptied.notify_all()

    def stop(self) -> None:
        """Close all connections immediately, and stop listening. A second call does nothing.

        Waits for the end of the server's thread. Raises WouldBlock in a coroutine: use `astop()`.
        """
        if not self._is_stopped:
            refuse_to_block("stop()", "await astop()")
        self._stop()

    def astop(self) -> Future[None]:
        """Like stop(), but return a future to await in an event loop."""
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

    def _close_in_child(self) -> None:
        """In a forked child: close the copies of connections."""
        for peer in self._peers:
            peer._close_in_child()

    def _abort(self) -> None:
        if not self._is_draining:
            self._is_draining = True
            self._unlisten()
            self._listener.close()
        for peer in list(self._peers):
            peer.abort("the server stops")
