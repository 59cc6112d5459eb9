"""An actor framework for stream processing on multicores."""

from callboard._inside.answers.combined import first, gather
from callboard._inside.answers.foreign import as_concurrent
from callboard._inside.answers.future import Future
from callboard._inside.arguments import ActorOptions, SpawnOptions
from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.core.errors import (
    ActorStopped,
    AskCancelled,
    AskDeadlock,
    AskTimeout,
    CallboardError,
    ConfigError,
    DrainTimeout,
    ForkedSystem,
    MailboxFull,
    SpawnError,
    SystemClosed,
    WouldBlock,
)
from callboard.core.threads.blocking import blocking
from callboard.failures import ActorEnd
from callboard.include import get_include
from callboard.mailboxes import BoundedMailbox, PriorityMailbox
from callboard.messages import DeadLetter, PipeFailed, Terminated
from callboard.recipient import Recipient
from callboard.supervision import Supervision
from callboard.system import ActorSystem
from callboard.version import version as __version__

__all__ = [
    "Actor",
    "ActorEnd",
    "ActorOptions",
    "ActorRef",
    "ActorStopped",
    "ActorSystem",
    "AskCancelled",
    "AskDeadlock",
    "AskTimeout",
    "BoundedMailbox",
    "CallboardError",
    "ConfigError",
    "DeadLetter",
    "DrainTimeout",
    "ForkedSystem",
    "Future",
    "MailboxFull",
    "PipeFailed",
    "PriorityMailbox",
    "Recipient",
    "SpawnError",
    "SpawnOptions",
    "Supervision",
    "SystemClosed",
    "Terminated",
    "WouldBlock",
    "__version__",
    "as_concurrent",
    "blocking",
    "first",
    "gather",
    "get_include",
]
