"""Arrows of traces: from the dispatch that sent a message to the one that took it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, ConfigError, PriorityMailbox
from callboard.observing import FlightRecorder, dump_trace, message_graph, record_trace
from tests.observing import text_traces
from tests.observing.actors import Box, Holder, Passage
from tests.observing.reading import Message, ReadTrace, read
from tests.tokenless import tokenless


class Sender(Actor[Any]):
    """Sends a box so many messages, in one way or another."""

    def __init__(self, box: ActorRef[Any]) -> None:
        self.box = box

    def receive(self, message: tuple[str, int]) -> None:
        how, count = message
        if how == "tell":
            for number in range(count):
                self.box.tell(number)
        elif how == "tell_many":
            self.box.tell_many(range(count))
        elif how == "atell":
            for number in range(count):
                self.box.atell(number)
        else:
            for number in range(count):
                self.box.ask(number)


def begins_of(found: ReadTrace) -> dict[int, Message]:
    """Return where each arrow begins, which is once."""
    all_begins = [(arrow, one) for one in found.messages for arrow in one.begins]
    begins = dict(all_begins)
    assert len(begins) == len(all_begins)
    return begins


def ends_of(found: ReadTrace) -> dict[int, Message]:
    """Return where each arrow ends, which is once."""
    all_ends = [(arrow, one) for one in found.messages for arrow in one.ends]
    ends = dict(all_ends)
    assert len(ends) == len(all_ends)
    return ends


def lies_in_dispatch(moment: Message, found: ReadTrace, name: str) -> bool:
    return any(
        one.track == moment.track and one.begin <= moment.time <= one.end for one in found.of(name)
    )


@pytest.mark.parametrize("how", ["tell", "tell_many", "atell", "ask"])
@pytest.mark.parametrize("mailbox", [None, PriorityMailbox(int), BoundedMailbox(5000)])
def test_each_arrow_begins_once_and_ends_once(how: str, mailbox: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with tokenless("net", workers=2, monitoring="times") as system:
        box = system.spawn(Box, name="box", mailbox=mailbox)
        sender = system.spawn(Sender, box, name="sender")
        with record_trace(system, path, arrows=1) as trace:
            for _ in range(5):
                sender.tell((how, 200))
            system.drain(60)
        assert trace.lost == 0
    found = read(path)
    begins, ends = begins_of(found), ends_of(found)
    assert len(begins) == 1000
    assert begins.keys() == ends.keys()
    for arrow, begin in begins.items():
        end = ends[arrow]
        assert (begin.text, end.text) == ("to /box", "from /sender")
        assert begin.time <= end.time
        assert lies_in_dispatch(begin, found, "/sender")
        assert lies_in_dispatch(end, found, "/box")


def test_one_message_in_n_has_an_arrow(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times") as system:
        box = system.spawn(Box, name="box")
        sender = system.spawn(Sender, box, name="sender")
        with record_trace(system, path, arrows=100):
            for how in ["tell", "tell_many", "atell", "ask"] * 5:
                sender.tell((how, 1000))
            system.drain(60)
    arrows = begins_of(read(path))
    assert 120 < len(arrows) < 280  # 200, by random distances of 1 to 199


def test_two_receivers_by_turns_have_about_as_many_arrows_each(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"

    class Turns(Actor[int]):
        def receive(self, count: int) -> None:
            for _ in range(count):
                for box in boxes:
                    box.tell(0)

    with ActorSystem(workers=1, monitoring="times") as system:
        boxes = [system.spawn(Box, name=f"box-{i}") for i in range(2)]
        with record_trace(system, path, arrows=10):
            system.spawn(Turns).tell(5000)
            system.drain(60)
    texts = [one.text for one in begins_of(read(path)).values()]
    assert min(texts.count("to /box-0"), texts.count("to /box-1")) > 300  # of about 500


def test_a_message_that_becomes_a_dead_letter_ends_nowhere_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"

    class Stopper(Actor[Passage]):
        def receive(self, passage: Passage) -> None:
            passage.pass_through()
            self.stop()

    with tokenless(workers=2, monitoring="times") as system:
        stopper = system.spawn(Stopper, name="stopper")
        sender = system.spawn(Sender, stopper, name="sender")
        passage = Passage()
        stopper.tell(passage)
        assert passage.entered.wait(30)
        with record_trace(system, path, arrows=1):
            sender.ask(("tell", 7)).result(30)
            passage.leave.set()
            system.drain(60)
    found = read(path)
    assert len(begins_of(found)) == 7
    assert ends_of(found) == {}
    texts = [one.text for one in found.messages if not one.begins]
    assert texts == ["dead letter from /sender"] * 7
    assert found.texts() == ["dead letter to /stopper: stopped"] * 7


def test_a_message_that_a_full_mailbox_drops_ends_nowhere_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times") as system:
        box = system.spawn(Box, name="box", mailbox=BoundedMailbox(3, "drop_oldest"))
        sender = system.spawn(Sender, box, name="sender")
        with record_trace(system, path, arrows=1):
            sender.tell(("tell", 10))
            system.drain(60)
    found = read(path)
    assert len(begins_of(found)) == 10
    assert len(ends_of(found)) == 3
    assert [one.text for one in found.messages].count("dead letter from /sender") == 7


def test_messages_from_outside_have_no_arrow(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times") as system:
        box = system.spawn(Box, name="box")
        with record_trace(system, path, arrows=1):
            box.tell_many(range(100))
            box.ask(0).result(30)
    assert read(path).messages == []


def test_a_sender_that_is_not_monitored_has_no_arrow(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times", config={"monitored": [Box]}) as system:
        box, other = system.spawn(Box, name="box"), system.spawn(Holder)
        with record_trace(system, path, arrows=1):
            system.spawn(Sender, box).tell(("tell", 10))
            system.spawn(Sender, other).tell(("tell", 0))
            system.drain(60)
    assert read(path).messages == []


def test_actors_that_are_spawned_while_a_trace_is_recorded_have_arrows(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times") as system:
        with record_trace(system, path, arrows=1):
            box = system.spawn(Box, name="box")
            system.spawn(Sender, box, name="sender").tell(("tell", 3))
            system.drain(60)
        system.find("/sender").tell(("tell", 3))
        system.drain(60)
        assert message_graph(system).samples == 4  # and the first one, from outside
    assert len(ends_of(read(path))) == 3


def test_the_flight_recorder_has_arrows(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, trace=FlightRecorder(arrows=1)) as system:
        box = system.spawn(Box, name="box")
        system.spawn(Sender, box, name="sender").tell(("tell", 20))
        system.drain(60)
        dump_trace(system, path)
    found = read(path)
    assert len(begins_of(found)) == len(ends_of(found)) == 20


def test_a_trace_as_text_has_no_lines_of_sampled_messages(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    with ActorSystem(workers=1, time_slice=3600, monitoring="times") as system:
        box = system.spawn(Box, name="box")
        sender = system.spawn(Sender, box, name="sender")
        system.drain(60)
        with record_trace(system, path, arrows=1):
            sender.tell(("tell", 10))
            system.drain(60)
    assert [line.path for line in text_traces.read(path)] == ["/sender", "/box"]


def test_a_wrong_number_of_arrows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.perfetto-trace"
    with ActorSystem(workers=1, monitoring="times") as system:
        with pytest.raises(ConfigError, match="`arrows` of a trace must be a whole number"):
            record_trace(system, path, arrows=0)
        assert not path.exists()
    with pytest.raises(ConfigError, match="`arrows` of a FlightRecorder must be a whole number"):
        FlightRecorder(arrows=True)
