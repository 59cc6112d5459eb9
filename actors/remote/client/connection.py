"""The connection of a program to a server."""

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
from callboard.remote.protocol.conversation import Submission
from callboard.remote.protocol.requests import StagedAttempt, checked_name
from callboard.remote.protocol.shard import Shard
from callboard.remote.sockets.address import parse_address
from callboard.remote.sockets.security import PathLike, client_context, find_secret, user_id
from callboard.remote.wire.codec import Codec, Types
from callboard.scheduling.worker import shares_worker_here


class Connection(CopiedAsItself):
    """A client's connection to a server. It reconnects with back-off if it is lost.

    Thread-safe, and usable with asyncio. Leaving its `with` block waits until all told messages are
    handled. A forked child or an unpickled copy opens a new connection.
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
            raise ConfigError(f"`traces` expects a function, got {safe_repr(traces)}")
        self._traces = traces
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
        self._codec = Codec(types)
        self._session: RemoteSession | None = None

    # --- refs and waiting -------------------------------------------------------------------------

    def ref(self, name: str) -> RemoteRef:
        """Return a ref to the entry point of this name, which is looked up at its first use."""
        return RemoteRef(self, name)

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the server's entry points; empty while there is no connection."""
        server = self._own_session.server
        return () if server is None else tuple(server.entries)

    @property
    def unacknowledged(self) -> int:
        """The number of told messages that the server has not confirmed as handled."""
        return self._own_session.unacknowledged

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all messages are handled, except asks that timed out or were cancelled.

        `timeout` defaults to the connection's. Raises ConnectionLost if the outcome of some
        messages is unknown, RemoteCallError if some were refused, and AskTimeout.
        """
        self._refuse_to_block("flush()", "await aflush()")
        seconds = self._seconds(timeout)
        try:
            self._own_session.flush().result(seconds)
        except AskTimeout:
            raise self._not_flushed(seconds) from None

    def _not_flushed(self, seconds: float) -> AskTimeout:
        return AskTimeout(
            f"flush(): not all messages to {self.address} were handled in {seconds:g} s; "
            f"{self._own_session.outstanding} messages, asks included, are not known to be"
        )

    def aflush(self) -> Future[None]:
        """Return a future that is done when all messages are handled, or fails."""
        return self._own_session.flush()

    # --- rows that count once ---------------------------------------------------------------------

    def upload(
        self, entry: str, *, job: str, batch: int = 0, partition: int = 0, attempt: int = 0
    ) -> UploadWriter:
        """Return a context manager that uploads rows. They reach the actor after the commit.

        Args:
            entry: The name of the entry point.
            job: A unique name of the job.
            batch: The number of the batch in the job, a 64-bit integer.
            partition: The number of the partition in the batch.
            attempt: A number that is different for each attempt at a partition, such as Spark's
                task attempt id.
        """
        name = checked_name(job, batch)
        return UploadWriter(self, entry, name, partition, attempt)

    def commit(
        self, job: str, batch: int, winners: Iterable[StagedAttempt], timeout: float | None = None
    ) -> None:
        """Commit the staged rows of the winning attempts, and discard all others of the batch.

        When it returns, the rows are on the server's disk. The commit is retried over new
        connections until `timeout`. It may be called again after that: a batch is committed only
        once.

        Args:
            job: The name of the job.
            batch: The number of the batch.
            winners: The `staged` values of the uploads, at most one for each partition.
            timeout: In seconds; by default the connection's.

        Raises:
            NotUploaded: A winner is not staged.
            CommitConflict: The batch was committed with other winners.
            UploadRefused: The disk is full.
            ConnectionLost: The outcome is unknown.
        """
        name = checked_name(job, batch)
        self._refuse_to_block("commit()", "await acommit()")
        commit(self, name, winners, self._seconds(timeout))

    def acommit(
        self, job: str, batch: int, winners: Iterable[StagedAttempt], timeout: float | None = None
    ) -> Future[None]:
        """Like commit(), but return a future to await in an event loop."""
        return InThread("callboard-commit", lambda _: self.commit(job, batch, winners, timeout))

    def abort(self, job: str, batch: int, timeout: float | None = None) -> None:
        """Drop the staged rows of a batch, which may be staged again. Retried like `commit()`.

        Raises BatchCommitted if it is already committed, and ConnectionLost.
        """
        name = checked_name(job, batch)
        self._refuse_to_block("abort()", "await aabort()")
        abort(self, name, self._seconds(timeout))

    def aabort(self, job: str, batch: int, timeout: float | None = None) -> Future[None]:
        """Like abort(), but return a future to await in an event loop."""
        return InThread("callboard-abort", lambda _: self.abort(job, batch, timeout))

    def published(self, entry: str) -> PublishedRows:
        """Return the rows published by the PersistentActor behind an entry point.

        The server is contacted at the first use.
        """
        return PublishedRows(self, entry)

    # --- how it is --------------------------------------------------------------------------------

    def health(self) -> Future[dict[str, Any]]:
        """Ask the server for its health. The server's I/O thread answers, without an actor."""
        return self._own_session.ping()

    def close(self) -> None:
        """Close the connection. Unanswered asks fail with ConnectionLost: call `flush()` first.

        Waits for the end of the connection's thread, except in a callback of an answer. Raises
        WouldBlock in a coroutine: use `aclose()`.
        """
        self._close()

    def _close(self, why: str = "") -> None:
        """Close it. `why` is the text of the errors of waiting messages and open asks."""
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
        """Like close(), but return a future to await in an event loop."""
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
    def _own_session(self) -> RemoteSession:
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
                session._close_in_child()
            self._session = session = RemoteSession(
                self.address,
                self._context,
                self._secret,
                self._codec,
                self._shard,
                self._server_user,
            )
            weakref.finalize(self, session.close).atexit = False
            return session

    def _open(self) -> Self:
        """Wait until the server has said welcome, or raise ConnectionLost."""
        session = self._own_session
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
        self._own_session.submit(submission, self.timeout if may_block() else None)
        try:
            if not sent.done():
                self._refuse_to_block(f"{what}()", f"there is no credit; await a{what}()")
                sent.result(self.timeout)
        except BaseException as error:
            is_withdrawn = self._own_session.withdraw(submission)
            if is_withdrawn and isinstance(error, AskTimeout):
                raise ConnectionLost(
                    f"{what}() found no connection or no credit on {self.address} in "
                    f"{self.timeout:g} s"
                ) from None
            if is_withdrawn or not isinstance(error, CallboardError):
                raise
        sent.result(self.timeout)  # not withdrawn: its sender or a refusal completes it soon

    def _seconds(self, timeout: float | None) -> float:
        """Return the timeout of a call, or the connection's for None. Raises ValueError."""
        return self.timeout if timeout is None else checks.seconds("timeout", timeout)

    def _refuse_to_block(
        self, what: str, instead: str = "call it in a thread, by asyncio.to_thread()"
    ) -> None:
        """Raise CallboardError on an event loop's thread, with what to do `instead`."""
        refuse_to_block(what, instead)
        if shares_worker_here():
            raise CallboardError(f"{what} would block a worker: spawn with dedicated=True")
        if self._own_session.is_read_here:
            raise CallboardError(f"{what} in a callback of an answer {WAITS_FOR_ITSELF}")

    def __enter__(self) -> Self:
        try:
            refuse_to_block("the end of `with`", "use `async with`")
        except CallboardError:
            self._own_session.close()
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
                f"{self!r} has its secret from secret=, which is never pickled: give secret_file=, "
                "or set the environment variable, on both sides"
            )
        return _reconnect, (str(self.address), self._options)


def connect(url: str, **options: Any) -> Connection:
    """Connect to a server at `unix:PATH` or `tcp:HOST:PORT`, and wait until it accepts.

    Retries for `timeout` seconds.

    Args:
        url: The server's address.
        **options: Those below, by keyword.

    Options:

    - `timeout` (30): the longest wait in seconds, also of a `tell` that waits for credit.
    - `secret`, `secret_file`: the server's secret, or a file with it. By default, the environment's
      `CALLBOARD_SECRET_FILE` names the file, or `CALLBOARD_SECRET` is the secret.
    - `ca_file`: the certificate to trust with TLS, in PEM format: the server's own, or its
      signer's. Without one, loopback uses no TLS.
    - `types`: the dataclasses and enumerations in messages, as a list, or as a dict by name.
    - `server_user`: the user, by name or number, whose server at a Unix socket is trusted, in
      addition to root; by default this process's own. The secret is sent to no other server.
    - `shard`: which of several servers this must be, such as "0/4".
    - `traces`: a function that returns a W3C `traceparent` or None, which is sent with each
      message, such as `callboard.observing.opentelemetry.traceparent`.

    Raises:
        ConnectionLost: There was no connection in time.
        ConnectionRejected: The server refused the connection, or is another shard.
        ConfigError: An option is invalid.
        WouldBlock: The call is in a coroutine: await `aconnect()`.
    """
    refuse_to_block("connect()", "await aconnect()")
    return Connection(url, **options)._open()


def aconnect(url: str, **options: Any) -> Future[Connection]:
    """Like connect(), but return a future of the connection."""
    connection = Connection(url, **options)
    opened: Future[Connection] = Future()

    def tell(first: Future[None]) -> None:
        error = first.exception()
        if error is None:
            opened.set_result(connection)
        else:
            opened.set_exception(error)

    connection._own_session.end_unless_opened(connection.timeout)
    connection._own_session.opened.add_done_callback(tell)
    return opened


_known: weakref.WeakValueDictionary[Any, Connection] = weakref.WeakValueDictionary()
_known_lock = Lock()
_beginning = Lock()  # held while a session is made


def _renew_locks() -> None:
    """In a forked child: a thread of the parent may have held them."""
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
