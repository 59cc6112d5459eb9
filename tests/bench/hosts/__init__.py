"""How each library runs the same behaviours.

A behaviour is a plain class with `receive(self, message)`; it sends with `ref.tell(message)`, ends
itself with `self.stop()` and hands results to the main program with the `done` function that its
constructor was given. Each benchmark is written once in these words. Each module here makes them
real for one library, the way that library is meant to be used: callboard and Pykka derive a class
from the behaviour and their own actor, so that nothing stands between; a behaviour on asyncio or on
a thread is a loop over a queue, and its ref is that queue's `put`. Only xoscar, whose sends must be
awaited, and Thespian, whose sends are methods of the sender, need an adapter: less than 3% of what
their messages cost.
"""

import importlib
from typing import Any

from hosts.base import Host

NAMES = ("callboard", "native", "asyncio", "threads", "pykka", "thespian", "xoscar")


def open_host(name: str, **options: Any) -> Host:
    """Open the host `name`; raise ImportError when its library is not installed."""
    if name not in NAMES:
        raise ValueError(f"no host {name!r}; there are {', '.join(NAMES)}")
    host: Host = importlib.import_module(f"hosts.{name}").Host(**options)
    return host
