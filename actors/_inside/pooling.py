"""The part of systems that starts worker processes. The stub has the types of routers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVarTuple, Unpack

from callboard._inside.arguments import ActorOptions
from callboard.actor import Actor

Ts = TypeVarTuple("Ts")


class Pooling:
    """The part of ActorSystem that makes pools of processes."""

    def pool(
        self,
        cls: Callable[[*Ts], Actor[Any, Any]],
        /,
        *args: *Ts,
        processes: int | None = None,
        elastic: Any = None,
        router: Any = None,
        by: Any = None,
        pickle: bool = False,
        types: Any = (),
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> Any:
        """Start worker processes with one actor of `cls` in each, and return a router over them.

        `processes` is their number: without it, one for each usable core. With `elastic`, an
        AutoScale of `callboard.routers` or a pair of bounds, it follows the queues. Arguments and
        options of `spawn` go to each actor; `name` is that of the actor that keeps the processes.
        The router is a RoundRobinRouter, or one of the class `router`, or a KeyRouter with `by`.

        Messages, answers and arguments are values that `callboard.remote` can send, with
        dataclasses and enumerations that are named in `types`. With `pickle` all others are
        pickled. The processes import `cls` by its name. See `docs/pools.md`.

        Raises SpawnError, CodecError, ConfigError, TypeError, ValueError, and OSError.
        """
        pools = importlib.import_module("callboard.pools.pool")
        return pools.spawn_pool(
            self,
            cls,
            args,
            {**options},
            processes=processes,
            elastic=elastic,
            router=router,
            by=by,
            pickle=pickle,
            types=types,
            name=name,
        )
