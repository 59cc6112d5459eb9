"""Counts words, as a service: words.service and Containerfile beside this file start it.

A client is `connect(address).ref("words")`. It tells words, and asks for the n most frequent.
"""

from __future__ import annotations

from collections import Counter

from callboard import Actor, ActorRef, ActorSystem


class Words(Actor[str | int, list[tuple[str, int]] | None]):
    def __init__(self) -> None:
        self.counts = Counter[str]()

    def receive(self, message: str | int) -> list[tuple[str, int]] | None:
        if isinstance(message, int):
            return self.counts.most_common(message)
        self.counts[message] += 1
        return None


def build(system: ActorSystem) -> dict[str, ActorRef[str | int]]:
    return {"words": system.spawn(Words)}
