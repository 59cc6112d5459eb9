"""Actors whose state survives the server, and batches that are applied at its next start."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest

from callboard import (
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    ConfigError,
    DrainTimeout,
    Supervision,
)
from callboard.remote import (
    PersistentActor,
    RowKey,
    Server,
    StagedAttempt,
    serve_entries,
    with_keys,
)
from callboard.remote.errors import RemoteCallError, StateError, UploadRefused
from tests.remote.conftest import DEADLINE, Gate, Notes, eventually, logged
from tests.remote.staging.served import Served, applied, asked, commit, health


class Totals(PersistentActor):
    """Adds up; `log` has what any instance did, which no restart takes back."""

    faulty: ClassVar[set[Any]] = set()
    log: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        self.total = 0
        self.rows = 0

    def apply(self, row: Any) -> None:
        if row in self.faulty:
            raise ValueError(f"no {row}")
        self.log.append((self.key, row))
        self.total += row
        self.rows += 1

    def answer(self, query: Any) -> Any:
        if query == "key":
            return self.key
        if query == "boom":
            raise ValueError("no booms")
        return (self.total, self.rows)

    def snapshot(self) -> Any:
        self.log.append("snapshot")
        return {"total": self.total, "rows": self.rows}

    def restore(self, state: Any) -> None:
        self.log.append("restore")
        self.total, self.rows = state["total"], state["rows"]


class Seldom(Totals):
    snapshot_every = 3


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    Totals.faulty, Totals.log = set(), []
    served = Served(tmp_path, Totals)
    yield served
    served.end()


def test_its_state_is_there_at_the_next_start(served: Served) -> None:
    connection = served.start()
    for batch in range(5):
        commit(connection, batch, [batch] * 2_000)
    applied(connection)
    assert asked(connection) == (20_000, 10_000)
    assert served.rows_left() == []
    Totals.log.clear()
    connection = served.start()
    assert asked(connection) == (20_000, 10_000)
    assert Totals.log == ["restore"]
    connection.commit("job", 4, [StagedAttempt(0, 0, 2_000)])
    commit(connection, 5, [1])
    applied(connection)
    assert asked(connection) == (20_001, 10_001)


def test_batches_since_the_last_snapshot_are_applied_again(served: Served) -> None:
    connection = served.start(Seldom)
    for batch in range(5):
        commit(connection, batch, [10**batch])
    applied(connection)
    assert asked(connection) == (11_111, 5)
    assert Totals.log.count("snapshot") == 1
    assert served.rows_left() == [4, 5]
    Totals.log.clear()
    connection = served.start(Seldom)
    assert asked(connection) == (11_111, 5)
    assert Totals.log == [
        "restore",
        (RowKey("job", 3, 0, 0), 1_000),
        (RowKey("job", 4, 0, 0), 10_000),
    ]
    commit(connection, 5, [10**5])
    applied(connection)
    assert served.rows_left() == []


def test_a_failed_batch_waits_for_start(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    connection = served.start(supervision=Supervision("resume"))
    commit(connection, 1, [1, 2])
    applied(connection)
    Totals.faulty = {5}
    commit(connection, 2, [*range(3, 3_000)])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    commit(connection, 3, [7], entry="notes")
    found = health(connection)
    assert (found["committed"], found["unapplied"]) == (3, 2)
    assert "batch 2 of the job 'job' cannot be applied: no 5" in found["trouble"]
    eventually(logged(caplog, "batch failed"), "it is in the log")
    with pytest.raises(RemoteCallError, match="Totals has no state: a batch failed"):
        asked(connection)
    assert asked(connection, "all", "notes") == []

    connection = served.start()  # nothing has changed
    assert health(connection)["state"] == "failing"
    Totals.faulty = set()
    connection = served.start()
    assert health(connection)["state"] == "serving"
    assert asked(connection) == (sum(range(3_000)), 2_999)
    assert asked(connection, "all", "notes") == [7]


EXITS = [SystemExit("gone"), asyncio.CancelledError("gone"), KeyboardInterrupt("gone")]


@pytest.mark.parametrize("error", EXITS)
def test_a_batch_at_which_an_actor_exits_fails(error: BaseException, served: Served) -> None:
    class Leaving(Totals):
        def apply(self, row: Any) -> None:
            if row in self.faulty:
                raise error
            super().apply(row)

    said = f"batch 2 of the job 'job' cannot be applied: {type(error).__name__}: gone"
    connection = served.start(Leaving)
    commit(connection, 1, [1])
    applied(connection)
    Totals.faulty = {5}
    commit(connection, 2, [4, 5])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    assert health(connection)["trouble"] == said
    assert health(connection)["unapplied"] == 1

    connection = served.start(Leaving)
    assert (health(connection)["state"], health(connection)["trouble"]) == ("failing", said)
    Totals.faulty = set()
    assert asked(served.start(Leaving)) == (10, 3)


@pytest.mark.parametrize("error", EXITS)
def test_a_snapshot_or_restore_that_exits_is_an_error(error: BaseException, served: Served) -> None:
    def leave(*_: Any) -> None:
        raise error

    connection = served.start()
    commit(connection, 1, [1])
    applied(connection)
    with pytest.raises(StateError, match=rf"restore its state: .*{type(error).__name__}: gone"):
        served.start(type("Unrestored", (Totals,), {"restore": leave}))
    connection = served.start(type("Unsaved", (Totals,), {"snapshot": leave}))
    commit(connection, 2, [2])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    assert f"{type(error).__name__}: gone" in health(connection)["trouble"]


class Awaiting(Totals):
    async def answer(self, query: Any) -> Any:
        await self.sleep(0)
        if isinstance(query, str):
            raise EXCEPTIONS[query]
        return super().answer(query)


class Answering(Totals):
    def answer(self, query: Any) -> Any:
        if isinstance(query, str):
            raise EXCEPTIONS[query]
        return super().answer(query)


EXCEPTIONS = {type(error).__name__: error for error in [*EXITS, ValueError("gone")]}


@pytest.mark.parametrize("cls", [Answering, Awaiting])
@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_an_answer_that_raises_fails_its_ask(kind: str, cls: type[Totals], served: Served) -> None:
    connection = served.start(cls)
    with pytest.raises(RemoteCallError, match=f"{kind}: gone"):
        asked(connection, kind)
    commit(connection, 1, [1])
    applied(connection)
    assert asked(connection, 0) == (1, 1)
    assert health(connection)["state"] == "serving"


@pytest.mark.parametrize("name", ["apply", "snapshot", "restore"])
def test_a_class_without_a_hook_that_it_needs_is_refused(name: str) -> None:
    hooks = {hook: getattr(Totals, hook) for hook in ("apply", "snapshot", "restore")}
    del hooks[name]
    with ActorSystem() as system:
        ref = system.spawn(type("Partial", (PersistentActor,), hooks))
        with pytest.raises(ConfigError, match=rf"Partial has no {name}\(\), which"):
            serve_entries({"it": ref})


@pytest.mark.parametrize("directive", ["stop", "restart"])
def test_no_supervision_loses_the_count(served: Served, directive: Any) -> None:
    connection = served.start(supervision=Supervision(directive))
    commit(connection, 1, [1])
    applied(connection)
    Totals.faulty = {3}
    commit(connection, 2, [2, 3, 4])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    with pytest.raises(CallboardError, match=r"has no state|was stopped|failed"):
        asked(connection)
    Totals.faulty = set()
    assert asked(served.start()) == (10, 4)


def test_an_ordinary_stopped_actor_leaves_its_batch_journaled(served: Served) -> None:
    connection = served.start(Notes)  # its supervision stops it
    commit(connection, 1, ["a", "boom", "b"])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    assert served.rows_left() == [1]


def test_a_row_that_fails_an_ordinary_actor_is_supervised(served: Served) -> None:
    connection = served.start(Notes, supervision=Supervision("resume"))
    commit(connection, 1, ["a", "boom", "b"])
    commit(connection, 2, ["c", "boom"])
    applied(connection)
    assert asked(connection, "all") == ["a", "b", "c"]
    assert health(connection)["state"] == "serving"
    assert served.rows_left() == []


def test_an_ordinary_actor_gets_the_batch_in_work_again(served: Served) -> None:
    connection = served.start(Gate, dedicated=True)
    Gate.opened, Gate.seen = Event(), []
    commit(connection, 1, ["a", "b"])
    commit(connection, 2, ["c"])
    eventually(lambda: Gate.seen == ["a"], "the batch is in work")
    Gate.opened.set()
    applied(connection)
    assert Gate.seen == ["a", "b", "c"]
    assert served.rows_left() == []


def test_clients_cannot_tell_it_anything(served: Served) -> None:
    connection = served.start()
    ref = connection.ref("it")
    for told in (partial(ref.tell, 1), partial(ref.tell_many, [1, 2])):
        told()
        with pytest.raises(
            RemoteCallError, match="Totals is a PersistentActor: only committed rows"
        ):
            connection.flush()
    assert asked(connection) == (0, 0)


def test_a_question_that_fails_harms_nobody(served: Served) -> None:
    connection = served.start()
    for query, said in (("boom", "no booms"), ("key", "Totals has no key outside of apply")):
        with pytest.raises(RemoteCallError, match=said):
            asked(connection, query)
    commit(connection, 1, [1])
    applied(connection)
    assert asked(connection) == (1, 1)


def test_a_state_that_cannot_be_written_stops_the_applying(served: Served) -> None:
    class Unwritable(Totals):
        def snapshot(self) -> Any:
            return object()

    connection = served.start(Unwritable)
    commit(connection, 1, [1])
    eventually(lambda: health(connection)["state"] == "failing", "it fails")
    assert "object cannot be encoded" in health(connection)["trouble"]
    assert asked(served.start()) == (1, 1)


def test_a_state_that_is_not_taken_back_is_said_at_the_start(served: Served) -> None:
    connection = served.start()
    commit(connection, 1, [1])
    applied(connection)

    class Forgetful(Totals):
        def restore(self, state: Any) -> None:
            raise KeyError("sum")

    with pytest.raises(StateError, match=r"'it' cannot restore its state: KeyError\('sum'\)"):
        served.start(Forgetful)
    with pytest.raises(StateError, match="a state of 'it', which is not a PersistentActor"):
        served.start(Notes)


def test_rows_for_an_entry_that_is_not_served_are_named(served: Served, tmp_path: Path) -> None:
    connection = served.start()
    commit(connection, 1, [1])
    applied(connection)
    served.end()
    with ActorSystem(workers=1) as system:
        built = serve_entries({"notes": system.spawn(Notes)})
        with pytest.raises(
            StateError, match=r"a state for \['it'\], but the served entries are \['notes'\]"
        ):
            Server(system, built, f"unix:{tmp_path}/x", state=tmp_path / "state")


def test_committed_rows_are_applied_before_the_server_has_drained(served: Served) -> None:
    connection = served.start()
    for batch in range(20):
        commit(connection, batch, [1] * 500)
    assert served.running is not None
    served.running[1].drain(DEADLINE)
    assert served.rows_left() == []


def test_a_drain_says_what_was_not_applied(served: Served) -> None:
    connection = served.start(Gate, dedicated=True)
    Gate.opened, Gate.seen = Event(), []
    commit(connection, 1, ["a"])
    assert served.running is not None
    applier = served.running[1]._staging._applier  # type: ignore[union-attr]
    with pytest.raises(DrainTimeout, match="1 committed batches were not applied in 0 s"):
        applier.finish(0.0)
    Gate.opened.set()


def test_a_small_mailbox_holds_up_a_large_batch(served: Served) -> None:
    connection = served.start(mailbox=BoundedMailbox(2, timeout=1e-9))
    commit(connection, 1, [1] * 10_000)
    applied(connection)
    assert asked(connection) == (10_000, 10_000)


@pytest.mark.parametrize("overflow", ["fail", "drop_newest", "drop_oldest"])
def test_a_mailbox_that_would_lose_commands_takes_no_rows(served: Served, overflow: Any) -> None:
    connection = served.start(mailbox=BoundedMailbox(1_000, overflow))
    with pytest.raises(UploadRefused, match="drops or refuses messages"):
        commit(connection, 1, [1])


def test_a_class_that_cannot_be_right_is_refused() -> None:
    class OwnReceive(Totals):
        def receive(self, message: Any) -> Any:
            return message

    class Never(Totals):
        snapshot_every = 0

    class Async(Totals):
        async def apply(self, row: Any) -> None:  # type: ignore[override]
            await self.ref.ask(row)

    class Generator(Totals):
        def snapshot(self) -> Any:
            yield self.total

    with ActorSystem(workers=1) as system:
        for cls, said in [
            (Async, r"Async.apply\(\) must not be async"),
            (Generator, r"Generator.snapshot\(\) must not be a generator"),
            (OwnReceive, "OwnReceive overrides receive"),
            (Never, "Never.snapshot_every must be a whole number"),
        ]:
            with pytest.raises(ConfigError, match=said):
                serve_entries({"it": system.spawn(cls)})
        with pytest.raises(ConfigError, match="Totals is a PersistentActor: it has its key"):
            with_keys(system.spawn(Totals))


def test_it_wants_a_state_directory(tmp_path: Path) -> None:
    with (
        ActorSystem(workers=1) as system,
        pytest.raises(
            StateError, match="the entry 'it' is a PersistentActor: give a state directory"
        ),
    ):
        Server(system, serve_entries({"it": system.spawn(Totals)}), f"unix:{tmp_path}/s")
