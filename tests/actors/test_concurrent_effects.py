"""With `concurrency`, the effects of a message are complete before the next message begins."""

from typing import Any

import pytest

from callboard import Actor, ActorSystem
from tests.actors.gates import gates, on_both_hosts, until

DEADLINE = 30.0


class Till(Actor[Any]):
    """Notes what begins, and does what a message says before its first `await`."""

    def __init__(self, notes: list[Any]) -> None:
        self.notes = notes
        self.is_open = False

    async def receive(self, message: Any) -> Any:
        self.notes.append(message)
        match message:
            case "stop":
                self.stop()
            case "fail":
                raise LookupError
            case "stop and fail":
                self.stop()
                raise LookupError
            case "become":
                self.become(self.became)
            case "open":
                self.is_open = True
                self.unstash_all()
            case ("wait", _) if not self.is_open:
                self.stash()
            case _:
                await self.sleep(0.0)
        return message

    async def became(self, message: Any) -> Any:
        self.notes.append(("became", message))
        if message == "back":
            self.unbecome()
        return message


@pytest.mark.parametrize("concurrency", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("messages", "supervision", "expected", "letters"),
    [
        (["stop", 1, 2], "stop", ["stop"], 2),
        ([0, "stop", 1, 2], "resume", [0, "stop"], None),
        (["fail", 1, 2], "stop", ["fail"], 3),
        (["stop and fail", 1, 2], "restart", ["stop and fail"], 3),
        (["fail", 1, "fail", 2], "restart", ["fail", 1, "fail", 2], None),
        (["fail", 1, "fail", 2], "resume", ["fail", 1, "fail", 2], 2),
        (
            ["become", 1, 2, "back", 3],
            "stop",
            ["become", ("became", 1), ("became", 2), ("became", "back"), 3],
            0,
        ),
        (
            [("wait", 1), ("wait", 2), "open", ("wait", 3), 4],
            "stop",
            [("wait", 1), ("wait", 2), "open", ("wait", 1), ("wait", 2), ("wait", 3), 4],
            0,
        ),
    ],
)
@on_both_hosts
def test_a_message_begins_after_the_effects_of_those_before(
    messages: list[Any],
    supervision: Any,
    expected: list[Any],
    letters: int | None,
    concurrency: int,
    event_loop: bool,
) -> None:
    notes: list[Any] = []
    with ActorSystem() as system:
        options: Any = {"concurrency": concurrency, "event_loop": event_loop}
        ref = system.spawn(Till, notes, supervision=supervision, **options)
        ref.ready.result(DEADLINE).tell_many(messages)
        system.drain(DEADLINE)
        assert notes == expected
        if letters is not None:
            assert system.dead_letters.count == letters


@on_both_hosts
def test_fences_pass_behind_messages_that_wait_again(event_loop: bool) -> None:
    notes: list[Any] = []
    with ActorSystem() as system:
        ref = system.spawn(Till, notes, event_loop=event_loop, concurrency=9)
        ref.tell_many(["become", 1])
        first = ref._fence()
        ref.tell("back")
        second = ref._fence()
        seen: list[int] = []
        first.add_done_callback(lambda _: seen.append(len(notes)))
        second.add_done_callback(lambda _: seen.append(len(notes)))
        ref.tell(2)
        ref.stop(after_queue=True)
        ref.ended.result(DEADLINE)
        assert notes == ["become", ("became", 1), ("became", "back"), 2]
        assert seen[0] >= 2
        assert seen[1] >= 3
        assert system.dead_letters.count == 0


@on_both_hosts
def test_asks_that_wait_again_are_answered_once_and_may_be_cancelled(event_loop: bool) -> None:
    notes: list[Any] = []
    with ActorSystem() as system:
        ref = system.spawn(Till, notes, event_loop=event_loop, concurrency=50)
        for _ in range(20):
            notes.clear()
            answers = [ref.ask(message) for message in ("become", 1, 2, 3, "back")]
            was_cancelled = answers[2].cancel()
            outcomes = [answer.exception(DEADLINE) for answer in answers]
            assert [error is None for error in outcomes] == [
                True,
                True,
                not was_cancelled,
                True,
                True,
            ]
            assert [note for note in notes if note not in (2, ("became", 2))] == [
                "become",
                ("became", 1),
                ("became", 3),
                ("became", "back"),
            ]


@on_both_hosts
def test_effects_after_an_await_come_before_messages_not_yet_begun(event_loop: bool) -> None:
    notes: list[Any] = []
    doors = gates(1)

    class Later(Till):
        async def receive(self, message: Any) -> Any:
            if message == "later":
                self.notes.append("later")
                await doors[0]
                self.become(self.became)
                return None
            return await super().receive(message)

    with ActorSystem() as system:
        ref = system.spawn(Later, notes, event_loop=event_loop, concurrency=100)
        ref.tell("later")
        until(notes, 1)
        doors[0].add_done_callback(lambda _: ref.tell_many(range(20)))
        doors[0].set_result(None)
        system.drain(DEADLINE)
        plain = [note for note in notes if isinstance(note, int)]
        became = [note[1] for note in notes if isinstance(note, tuple)]
        assert plain + became == list(range(20))
        assert notes[1:] == [*plain, *(("became", n) for n in became)]
