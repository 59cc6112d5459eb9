"""The errors of actors and their systems.

The errors of a capability are in its folder, and derive from CallboardError.
"""

from __future__ import annotations


class CallboardError(Exception):
    """The base of callboard's errors."""


class SpawnError(CallboardError):
    """An actor cannot be spawned: its class, its name or an option is wrong."""


class ArgumentsError(SpawnError, TypeError):
    """An actor cannot be spawned: its class does not take these arguments."""


class ConfigError(CallboardError, ValueError):
    """A setting of the system or its configuration is wrong."""


class PolicyError(CallboardError):
    """A placement or priority policy raised, or gave an invalid answer."""


class MailboxFull(CallboardError):
    """A bounded mailbox is full, and its overflow policy does not wait, or its timeout is over."""


class WouldBlock(CallboardError):
    """A call would block an event loop. The text says what to await instead."""


class SystemClosed(CallboardError):
    """The actor system was stopped."""


class ForkedSystem(CallboardError):
    """The actor system belongs to the parent process; its workers do not exist in this one."""


class ActorStopped(CallboardError):
    """An ask can never be answered, because its target has stopped.

    The text says why. If a failure was the reason, `__cause__` is an ActorFailed.
    """


class ActorFailed(CallboardError):
    """An actor was ended by an exception. The text is that exception's traceback.

    The exception itself is not kept: it would keep the actor and its message alive. `type` is its
    class.
    """

    type: type[BaseException] | None = None


class AskTimeout(CallboardError, TimeoutError):
    """An ask was not answered in time."""


class AskCancelled(CallboardError):
    """A future was cancelled: nobody waits for the answer to this ask any more."""


class AskDeadlock(CallboardError):
    """Actors ask each other in a circle: each waits for another's answer."""


class DrainTimeout(CallboardError, TimeoutError):
    """A system did not become idle in time."""


class GraphError(CallboardError, ValueError):
    """A graph, or an operator's argument, is wrong. Raised where the graph is built."""
