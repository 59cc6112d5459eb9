"""The connection of a program to a server, as users see it."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable, Iterable
from threading import Lock
from types import TracebackType
from typing import Any, Self

from callboard import Future
from callboard.core import checks
from callboard.core.errors import AskTimeout, CallboardError, ConfigError
from callboard.core.handles import CopiedAsItself
from callboard.core.text import safe_repr
from callboard.core.threads.blocking import refuse_to_block
from callboard.in_thread import InThread
from callboard.recipient import TOLD
from callboard.remote.client.published import PublishedRows
from callboard.remote.client.remote_ref import RemoteRef
from callboard.remote.client.session import WAITS_FOR_ITSELF, RemoteSession, may_block
from callboard.remote.client.writer import UploadWriter, abort, commit
from callboard.remote.errors import ConnectionLost
from callboard.remote.protocol.conversation import OnLoss, Submission
from callboard.remote.protocol.shard import Shard
from callboard.remote.protocol.staged_rows import StagedAttempt, checked_name
from callboard.remote.sockets.address import parse_address
from callboard.remote.sockets.security import PathLike, client_context, find_secret, user_id
from callboard.remote.wire.codec import Codec, Types
from callboard.scheduling.worker import shares_worker_here


class Connection(CopiedAsItself):
    """A client's connection to a server, made again with back-off whenever it is lost.

    Safe in every thread, and for asyncio. Leaving it as a context manager waits until all messages
    that were told are handled. In a forked child, and where it is unpickled, it connects anew.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str | None = None,
        secret_file: PathLike | None = None,
        ca_file: PathLike | None = None,
        types: Types = (),
        timeout: float = 30.0,
        shard: str | None = None,
        server_user: int | str | None = None,
        traces: Callable[[], str | None] | None = None,
    ) -> None:
        if traces is not None and not callable(traces):
            raise ConfigError(f"`traces` is a function, not {safe_repr(traces)}")
        self.traces = traces
        self.address = parse_address(url).absolute()
        self._secret_given = secret is not None
        self.timeout = checks.seconds("timeout", timeout)
        self._options = {
            "secret_file": secret_file,
            "ca_file": ca_file,
            "types": types,
            "timeout": self.timeout,
            "shard": shard,
            "server_user": server_user,
            "traces": traces,
        }
        self._server_user = user_id(server_user)
        self._shard = None if shard is None else Shard.parse(shard)
        found = find_secret(secret, secret_file)
        self._secret = b"" if found is None else found.value
        self._context = client_context(self.address, ca_file)
        self.codec = Codec(types)
        self._session: RemoteSession | None = None
        self._on_loss: OnLoss | None = None

    # --- refs and waiting -------------------------------------------------------------------------

    def ref(self, name: str) -> RemoteRef:
        """Return a ref on the entry point of this name, which is looked for at its first use."""
        return RemoteRef(self, name)

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the server's entry points; none while there is no connection."""
        server = self.session.server
        return () if server is None else tuple(server.entries)

    @property
    def unacknowledged(self) -> int:
        """How many messages were told, and are not known to be handled."""
        return self.session.unacknowledged

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all messages are handled; without `timeout`, for the connection's. Asks that
        timed out or were cancelled are not waited for.

        Raises ConnectionLost if that is unknown for some of them, RemoteCallError if some were
        refused, and AskTimeout.
        """
        self._refuse_to_block("flush()", "await aflush()")
        seconds = self._seconds(timeout)
        try:
            self.session.flush().result(seconds)
        except AskTimeout:
            raise self._not_flushed(seconds) from None

    def _not_flushed(self, seconds: float) -> AskTimeout:
        return AskTimeout(
            f"flush(): not all that was sent to {self.address} was handled in {seconds:g} s; "
            f"{self.session.outstanding} messages, asks included, are not known to be"
        )

    def aflush(self) -> Future[None]:
        """Return a future that is done when all messages are handled, or fails."""
        return self.session.flush()

    # --- rows that count once ---------------------------------------------------------------------

    def upload(
        self, entry: str, *, job: str, batch: int = 0, partition: int = 0, attempt: int = 0
    ) -> UploadWriter:
        """Return an upload, a context manager: rows that reach the actor when they are committed.

        `job` is a unique name of the job, and `batch` a number of 64 bits. `attempt` differs
        between all attempts at a partition, such as Spark's task attempt id.
        """
        name = checked_name(job, batch)
        return UploadWriter(self, entry, name, partition, attempt)

    def commit(
        self, job: str, batch: int, winners: Iterable[StagedAttempt], timeout: float | None = None
    ) -> None:
        """Commit the staged rows of these winners, and for ever exclude all others of the batch.

        When it returns they are on the server's disk. The commit is repeated over new connections
        until `timeout`, or the connection's, and may be called again after that: a batch counts
        once. `winners` are the `staged` of the uploads, one at most for a partition.

        Raises NotUploaded, CommitConflict, UploadRefused if the disk is full, and ConnectionLost,
        after which the outcome is unknown.
        """
        name = checked_name(job, batch)
        self._refuse_to_block("commit()", "await acommit()")
        commit(self, name, winners, self._seconds(timeout))

    def acommit(
        self, job: str, batch: int, winners: Iterable[StagedAttempt], timeout: float | None = None
    ) -> Future[None]:
        """Like commit(), but return a future at once, to be awaited in an event loop."""
        return InThread("callboard-commit", lambda _: self.commit(job, batch, winners, timeout))

    def abort(self, job: str, batch: int, timeout: float | None = None) -> None:
        """Drop the staged rows of a batch, which may be staged anew. As often as `commit()`.

        Raises BatchCommitted if it is committed, and ConnectionLost.
        """
        name = checked_name(job, batch)
        self._refuse_to_block("abort()", "await aabort()")
        abort(self, name, self._seconds(timeout))

    def aabort(self, job: str, batch: int, timeout: float | None = None) -> Future[None]:
        """Like abort(), but return a future at once, to be awaited in an event loop."""
        return InThread("callboard-abort", lambda _: self.abort(job, batch, timeout))

    def published(self, entry: str) -> PublishedRows:
        """Return the rows that the PersistentActor behind an entry point publishes, to read them.

        They are asked for at the first use.
        """
        return PublishedRows(self, entry)

    # --- how it is --------------------------------------------------------------------------------

    def health(self) -> Future[dict[str, Any]]:
        """Ask the server for its health. The thread that reads answers, and not an actor."""
        return self.session.ping()

    def close(self) -> None:
        """Close the connection. Unanswered asks fail with ConnectionLost; call `flush()` first to
        wait for them. It waits for the end of the connection's thread, but not in a callback of an
        answer. In a coroutine use `aclose()`: this raises WouldBlock.
        """
        self._close()

    def _close(self, why: str = "") -> None:
        """Close it. `why` is what the errors of waiting messages and open asks say."""
        session = self._session_now()
        if session is None:
            return
        if session.is_read_here:
            session.close(why)
            return
        refuse_to_block("close()", "await aclose()")
        session.close(why)
        session.join()

    def aclose(self) -> Future[None]:
        """Like close(), but return a future at once, to be awaited in an event loop."""
        session = self._session_now()
        if session is None:
            return TOLD
        session.close()
        return InThread("callboard-close", lambda _: session.join())

    def _session_now(self) -> RemoteSession | None:
        """Return the session of this process, if there is one."""
        with _beginning:
            session = self._session
        return session if session is not None and session.pid == os.getpid() else None

    # --- the session ------------------------------------------------------------------------------

    @property
    def session(self) -> RemoteSession:
        """The session of this process, made when there is none."""
        session = self._session
        if session is not None and session.pid == os.getpid():
            return session
        return self._begin()

    @property
    def _is_over(self) -> bool:
        """Whether it was closed, or refused for good."""
        session = self._session
        return session is not None and session.pid == os.getpid() and session.is_over

    def _begin(self) -> RemoteSession:
        with _beginning:
            session = self._session
            if session is not None and session.pid == os.getpid():
                return session
            if session is not None:
                session.forsake()
            self._session = session = RemoteSession(
                self.address,
                self._context,
                self._secret,
                self.codec,
                self._shard,
                self._server_user,
                self._on_loss,
            )
            weakref.finalize(self, session.close).atexit = False
            return session

    def _open(self) -> Self:
        """Wait until the server has said welcome, or raise ConnectionLost."""
        session = self.session
        try:
            session.opened.result(self.timeout)
        except AskTimeout:
            session.close()
            raise ConnectionLost(
                f"no connection to {self.address} in {self.timeout:g} s: {session.trouble}"
            ) from None
        except BaseException:
            session.close()
            raise
        return self

    def _deliver(self, submission: Submission, what: str) -> None:
        """Send a submission, and wait for credit where there is none. Raises ConnectionLost."""
        sent = submission.sent
        assert sent is not None
        self.session.submit(submission, self.timeout if may_block() else None)
        try:
            if not sent.done():
                self._refuse_to_block(f"{what}()", f"there is no credit; await a{what}()")
                sent.result(self.timeout)
        except BaseException as error:
            is_withdrawn = self.session.withdraw(submission)
            if is_withdrawn and isinstance(error, AskTimeout):
                raise ConnectionLost(
                    f"{what}() found no connection or no credit on {self.address} for "
                    f"{self.timeout:g} s"
                ) from None
            if is_withdrawn or not isinstance(error, CallboardError):
                raise
        sent.result(self.timeout)  # where it was not withdrawn, who sent or refused it says so soon

    def _seconds(self, timeout: float | None) -> float:
        """Return the timeout of a call, or the connection's for None. Raises ValueError."""
        return self.timeout if timeout is None else checks.seconds("timeout", timeout)

    def _refuse_to_block(
        self, what: str, instead: str = "call it in a thread, by asyncio.to_thread()"
    ) -> None:
        """Raise CallboardError on an event loop's thread, which says what to do `instead`."""
        refuse_to_block(what, instead)
        if shares_worker_here():
            raise CallboardError(f"{what} would block a worker: spawn with dedicated=True")
        if self.session.is_read_here:
            raise CallboardError(f"{what} in a callback of an answer {WAITS_FOR_ITSELF}")

    def __enter__(self) -> Self:
        try:
            refuse_to_block("the end of `with`", "use `async with`")
        except CallboardError:
            self.session.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                await asyncio.wait_for(_waiting(self.aflush()), self.timeout)
        except TimeoutError:
            raise self._not_flushed(self.timeout) from None
        finally:
            await self.aclose()

    def __repr__(self) -> str:
        return f"<Connection to {self.address}>"

    def __reduce__(self) -> Any:
        if self._secret_given:
            raise TypeError(
                f"{self!r} has its secret from secret=, and is not pickled with it: give "
                "secret_file=, or have it read from the environment, at both places"
            )
        return _reconnect, (str(self.address), self._options)


def connect(url: str, **options: Any) -> Connection:
    """Connect to a server at `unix:PATH` or `tcp:HOST:PORT`, and wait until it says welcome.

    Tries again until then, for `timeout` seconds (30). A `tell` waits for credit as long. Options,
    by keyword:

    - `secret_file`: a file with the server's secret. The default is the environment's
      `CALLBOARD_SECRET_FILE`, or the secret in `CALLBOARD_SECRET`. `secret`: the secret itself.
    - `ca_file`: the certificate to trust over TLS, in PEM format: the server's own, or its
      signer's. Without one, loopback uses no TLS.
    - `types`: the dataclasses and enumerations that messages are made of; as a dict, by names.
    - `server_user`: the user, by name or number, whose server at a Unix socket is trusted, beside
      root; without it, this process's own. The secret goes to their servers only.
    - `shard`: which of several servers it must be, such as "0/4"; it is ConnectionRejected if it is
      not.
    - `traces`: a function that returns a W3C `traceparent` or None, which goes along with each
      message, such as `callboard.observing.opentelemetry.traceparent`.

    Raises ConnectionLost, ConnectionRejected, AddressError, SecurityError, and WouldBlock in a
    coroutine, where `aconnect()` is awaited.
    """
    refuse_to_block("connect()", "await aconnect()")
    return Connection(url, **options)._open()


def aconnect(url: str, **options: Any) -> Future[Connection]:
    """Connect as `connect()` does, and return a future of the connection at once."""
    connection = Connection(url, **options)
    opened: Future[Connection] = Future()

    def tell(first: Future[None]) -> None:
        error = first.exception()
        if error is None:
            opened.set_result(connection)
        else:
            opened.set_exception(error)

    connection.session.end_unless_opened(connection.timeout)
    connection.session.opened.add_done_callback(tell)
    return opened


_known: weakref.WeakValueDictionary[Any, Connection] = weakref.WeakValueDictionary()
_known_lock = Lock()
_beginning = Lock()  # of who makes a session


def _renew_locks() -> None:
    """In a forked child: a thread that it has not may have held them."""
    global _known_lock, _beginning
    _known_lock, _beginning = Lock(), Lock()


os.register_at_fork(after_in_child=_renew_locks)


def _reconnect(url: str, options: dict[str, Any]) -> Connection:
    """Return the connection that was pickled, one for all its copies in this process."""
    key = (os.getpid(), url, repr(sorted(options.items())))
    with _known_lock:
        connection = _known.get(key)
        if connection is None or connection._is_over:
            connection = _known[key] = Connection(url, **options)
    return connection


async def _waiting(future: Future[Any]) -> Any:
    return await future
