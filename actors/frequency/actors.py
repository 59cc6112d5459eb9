"""Actors that count the keys of many streams in one summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any, Unpack

from callboard._inside.arguments import ActorOptions
from callboard._inside.sending.native_ref import NativeRef
from callboard.core import checks
from callboard.frequency.arrays import ArrowKeys, batches
from callboard.frequency.space_saving import SpaceSaving
from callboard.frequency.stream_actor import StreamActor, packed
from callboard.supervision import Supervision
from callboard.system import ActorSystem

__all__ = ["FrequencyActors"]

MOST_ACTORS = 100_000


class FrequencyActors:
    """Native actors, one for each stream, that count keys in one shared `summary`.

    The system's workers count the keys in parallel, without the interpreter's lock. `summary` can
    be used at any time.
    """

    def __init__(
        self,
        system: ActorSystem,
        epsilon: float,
        *,
        streams: int,
        design: str = "auto",
        name: str = "frequency",
        **options: Unpack[ActorOptions],
    ) -> None:
        """Spawn the actors `name-0`, `name-1` and so on. Raises ValueError.

        Args:
            system: The system to spawn them in.
            epsilon: As for `SpaceSaving`.
            streams: The number of actors.
            design: As for `SpaceSaving`.
            name: The prefix of their names.
            **options: Options of `spawn`. By default, a message that is not keys becomes a dead
                letter, and the actor continues; another `supervision` changes this.
        """
        options.setdefault("supervision", Supervision("resume"))
        count = checks.whole("streams", streams, 1, MOST_ACTORS)
        # The number that can be at work at a time.
        self.summary = SpaceSaving(
            epsilon, streams=min(count, system.config.workers), design=design
        )
        spawn: Any = system.spawn  # which is declared for actors in Python
        self.refs: tuple[NativeRef, ...] = tuple(
            spawn(StreamActor, self.summary, name=f"{name}-{index}", **options)
            for index in range(count)
        )

    def tell(
        self,
        keys: Iterable[Any] | Mapping[Any, int] | Any,
        weights: Iterable[int] | int | None = None,
        *,
        stream: int = 0,
    ) -> None:
        """Count keys in a stream. Arguments and errors are those of `SpaceSaving.update`.

        Arrays are not copied: do not modify them until they are counted. Lists and iterators are
        read by the calling thread, which also counts keys that need Python objects.
        """
        ref = self.refs[checks.whole("a stream", stream, 0, len(self.refs) - 1)]
        for batch, their_weights in batches(keys, weights):
            if type(batch) is memoryview:
                ref.tell(batch)
            elif type(batch) is ArrowKeys:
                for array in batch:
                    ref.tell(array)
            elif (message := packed(batch, their_weights)) is not None:
                ref.tell(message)
            else:
                self.summary.update(batch, their_weights)

    def flush(self, timeout: float | None = None) -> None:
        """Wait, at most `timeout` seconds, until all keys told before are counted.

        Raises TimeoutError, and an actor's failure.
        """
        limit = checks.timeout("the timeout of flush()", timeout)
        end = None if limit is None else monotonic() + limit
        answers = [ref.ask(packed([], None)) for ref in self.refs]
        for answer in answers:
            answer.result(None if end is None else max(0.0, end - monotonic()))

    def stop(self) -> None:
        """Stop the actors now. Messages that `flush` did not wait for become dead letters."""
        for ref in self.refs:
            ref.stop()

    def __repr__(self) -> str:
        return f"<FrequencyActors of {len(self.refs)} streams: {self.summary!r}>"
