"""Walks of all actors: the first by load, rate or queue since the last walk."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, CallboardError
from callboard.observing.scan import ActorScan
from tests.observing.actors import Box, Holder, Passage
from tests.waiting import until


class Parent(Actor[Any]):
    def receive(self, message: str) -> ActorRef[Any]:
        return self.spawn(Box, name=message)


def counts(scan: ActorScan, by: str = "rate", most: int = 100, part: str = "") -> dict[str, int]:
    """Return the new messages of the first actors, by their paths."""
    return {ref.path: messages for _, _, ref, messages, _ in scan.look(by, most, {}, part)[2]}


def test_messages_count_since_the_last_walk_however_actors_come_and_go() -> None:
    with ActorSystem(workers=1) as system:
        parents = [system.spawn(Parent, name=f"p{i}") for i in range(5)]
        children = [parent.ask(f"c{i}").result(30) for parent in parents for i in range(3)]
        scan = ActorScan(system._runtime)
        assert counts(scan)["/p0"] == 3
        for ref in children:
            ref.tell(1)
        for gone in (children[0], children[4], parents[3]):
            gone.stop()
        late = parents[0].ask("late").result(30)
        late.tell_many([1, 2])
        system.drain(60)
        found = counts(scan)
        assert found["/p0/late"] == 2
        assert {found[f"/p{i}/c{j}"] for i in (0, 1, 2, 4) for j in (1, 2) if (i, j) != (1, 1)} == {
            1
        }
        assert found["/p0"] == 1
        assert "/p0/c0" not in found
        assert "/p3" not in found
        assert set(counts(scan).values()) == {0}


def test_only_the_first_are_returned_the_largest_before_others() -> None:
    with ActorSystem(workers=1) as system:
        refs = [system.spawn(Box, name=f"box{i}") for i in range(50)]
        scan = ActorScan(system._runtime)
        for i, ref in enumerate(refs):
            ref.tell_many([0] * (i * 7 % 50))
        system.drain(60)
        found = counts(scan, most=3)
        assert list(found.items()) == [("/box7", 49), ("/box14", 48), ("/box21", 47)]
        assert counts(scan, "total", 1) == {"/box7": 0}
        assert list(counts(scan, part="box4")) == ["/box4", *(f"/box4{i}" for i in range(10))]
        assert counts(scan, most=0) == {}


def test_an_actor_in_a_long_message_is_loaded_before_the_message_ends() -> None:
    passage = Passage()
    with ActorSystem(workers=1, monitoring="times") as system:
        holder = system.spawn(Holder, name="holder")
        system.spawn(Box, name="box")
        system.drain(60)
        scan = ActorScan(system._runtime)
        scan.look("load", 1, {})
        holder.tell(passage)
        assert passage.entered.wait(30)
        seconds, (live, idle, _), first, others = scan.look("load", 1, {holder._number: 1000.0})
        assert (live, idle, others) == (2, 1, [holder])
        assert first[0][2] is holder
        assert first[0][4] == pytest.approx(1e9 * seconds)  # a share of a worker is one at most
        passage.leave.set()


def test_the_longest_mailbox_is_the_first_by_queue() -> None:
    passage = Passage()
    with ActorSystem(workers=1) as system:
        holder: ActorRef[Any] = system.spawn(Holder, name="holder", mailbox=BoundedMailbox(10))
        other = system.spawn(Box, name="other", mailbox=BoundedMailbox(10))
        holder.tell(passage)
        assert passage.entered.wait(30)
        other.tell_many([1, 2, 3])
        scan = ActorScan(system._runtime)
        assert [(ref, key) for key, _, ref, _, _ in scan.look("queue", 1, {})[2]] == [(other, 3)]
        passage.leave.set()
        until(lambda: other.statistics().queue == 0)


def test_an_order_that_there_is_not_is_refused() -> None:
    with ActorSystem(workers=1) as system:
        scan = ActorScan(system._runtime)
        with pytest.raises(
            CallboardError, match="load, rate, queue or total as the order of actors, got 'age'"
        ):
            scan.look("age", 1, {})
    with pytest.raises(CallboardError, match="has no system"):
        ActorScan.__new__(ActorScan).look("load", 1, {})
