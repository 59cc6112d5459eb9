"""The errors of actors and their systems.

The errors of a feature are in its folder, and derive from CallboardError.
"""

from __future__ import annotations


class CallboardError(Exception):
    """The base of all callboard errors."""


class SpawnError(CallboardError):
    """An actor cannot be spawned: its class, its name or an option is invalid."""


class ArgumentsError(SpawnError, TypeError):
    """An actor cannot be spawned: its class does not take these arguments."""


class ConfigError(CallboardError, ValueError):
    """A setting of the system or its configuration is invalid."""


class PolicyError(CallboardError):
    """A placement or priority policy raised, or returned an invalid value."""


class MailboxFull(CallboardError):
    """A bounded mailbox is full, and its overflow policy does not wait, or the wait timed out."""


class WouldBlock(CallboardError):
    """A call would block an event loop. The text names the call to await instead."""


class SystemClosed(CallboardError):
    """The actor system was stopped."""


class ForkedSystem(CallboardError):
    """The actor system belongs to the parent process; its workers do not exist in this process."""


class ActorStopped(CallboardError):
    """An ask cannot be answered, because its target has stopped.

    The text says why. If the target failed, `__cause__` is an ActorFailed.
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
    """A future was cancelled, so the ask's answer is no longer needed."""


class AskDeadlock(CallboardError):
    """Actors ask each other in a circle, so each waits for another's answer."""


class DrainTimeout(CallboardError, TimeoutError):
    """A system did not become idle in time."""


class GraphError(CallboardError, ValueError):
    """A graph, or an operator's argument, is wrong. Raised where the graph is built."""
