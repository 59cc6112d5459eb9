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
    """Actors of a system, one for each stream, that count keys in one `summary`.

    They are native: the system's workers count the keys at once, without the interpreter's lock.
    `summary` may be asked at any moment.
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
        """Spawn `streams` actors, `name-0` and so on, with these options of `spawn`.

        A message other than keys becomes a dead letter, and the actor goes on, unless another
        `supervision` is given. `epsilon` and `design` are those of `SpaceSaving`. Raises
        ValueError.
        """
        options.setdefault("supervision", Supervision("resume"))
        count = checks.whole("streams", streams, 1, MOST_ACTORS)
        # So many can be at work at a time.
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
        """Have keys counted in a stream: the arguments and errors are those of
        `SpaceSaving.update`.

        Arrays are not copied: do not write to them until they are counted. Lists and iterators are
        read here. Keys that need Python objects are counted here, too.
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
        """Wait until all keys that were told before are counted.

        `timeout` is in seconds. Raises TimeoutError, and an actor's failure.
        """
        limit = checks.timeout("the timeout of flush()", timeout)
        end = None if limit is None else monotonic() + limit
        answers = [ref.ask(packed([], None)) for ref in self.refs]
        for answer in answers:
            answer.result(None if end is None else max(0.0, end - monotonic()))

    def stop(self) -> None:
        """Stop the actors at once: messages that `settle` did not wait for become dead letters."""
        for ref in self.refs:
            ref.stop()

    def __repr__(self) -> str:
        return f"<FrequencyActors of {len(self.refs)} streams: {self.summary!r}>"
