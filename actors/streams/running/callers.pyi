from threading import Thread
from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard.scheduling.worker import WorkerThread

def caller_here() -> ActorRef[Any] | Thread: ...
def worker_here() -> WorkerThread | None: ...
