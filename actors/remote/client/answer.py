"""The answer of another process to an ask."""

from __future__ import annotations

import time
from typing import Any

from callboard import Future
from callboard.core.errors import AskTimeout, CallboardError
from callboard.remote.client.session import WAITS_FOR_ITSELF, SessionOwner


class RemoteAnswer(Future[Any]):
    """A future whose `result()` reads the connection itself, unless another thread does.

    Until it is done it keeps the connection, which else is closed when nobody has it any more.
    """

    __slots__ = ("_connection", "_session")

    def __init__(self, connection: SessionOwner) -> None:
        super().__init__()
        self._connection: SessionOwner | None = connection
        self._session = connection.session

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it is done. Raises AskTimeout after `timeout` seconds; CallboardError in a
        callback of an answer, on the thread that reads them.
        """
        if not self.done() and self._session.is_read_here:
            raise CallboardError(f"result() in a callback of an answer {WAITS_FOR_ITSELF}")
        if timeout is None:
            self._session.drive(self, None)
            super().wait()
            return
        deadline = time.monotonic() + timeout
        self._session.drive(self, deadline)
        try:
            super().wait(max(deadline - time.monotonic(), 0.0))
        except AskTimeout:
            raise AskTimeout(f"no answer after {timeout:g} s") from None

    def set_result(self, value: Any) -> bool:
        """Complete with an answer. False if it was complete already."""
        is_first = super().set_result(value)
        self._session.wake(self)
        self._connection = None
        return is_first

    def cancel(self) -> bool:
        """Want it no more: it is taken back if it has not left, else the server goes on.

        False if it was complete already.
        """
        is_first = super().cancel()
        if is_first:
            self._session.forget(self)
        self._session.wake(self)
        self._connection = None
        return is_first

    def set_exception(self, error: BaseException) -> bool:
        """Complete with an exception. False if it was complete already."""
        is_first = super().set_exception(error)
        self._session.wake(self)
        self._connection = None
        return is_first
