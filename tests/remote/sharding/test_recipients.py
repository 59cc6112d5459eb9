"""Any recipient works where a ref does: as a sink, an entry point, a timer's target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from callboard import Actor, ActorSystem, Future, Recipient
from callboard.core.errors import ConfigError
from callboard.recipient import is_recipient
from callboard.remote import (
    Server,
    ServerLimits,
    ShardedConnection,
    connect,
    serve_entries,
    shard_of,
    with_keys,
)
from callboard.remote.errors import CodecError, RemoteCallError, UploadRefused
from callboard.streams import StreamError, entry
from tests.remote.conftest import eventually

DEADLINE = 60.0
ROWS = [{"k": f"key {number % 7}", "n": number} for number in range(2000)]


class Basket:
    """A user's own recipient: keeps what it is told, and answers with the message."""

    name = "basket"

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, message: Any) -> None:
        self.told.append(message)

    def tell_many(self, messages: Iterable[Any]) -> None:
        self.told += messages

    def ask(self, message: Any, timeout: float | None = None) -> Future[Any]:
        answer: Future[Any] = Future()
        answer.set_result(message)
        return answer


class Case(NamedTuple):
    recipient: Any
    told: Callable[[], list[Any]]
    """What it was told and has handled, in the order of its shards."""
    parts: Callable[[list[Any]], list[Any]]
    """Rows in that order."""


@pytest.fixture(params=["remote", "sharded", "own"])
def case(request: pytest.FixtureRequest, connection: ShardedConnection) -> Case:
    if request.param == "own":
        basket = Basket()
        return Case(basket, lambda: basket.told, list)
    if request.param == "remote":
        shard = connection.shards[0]
        ref = shard.ref("notes")

        def told() -> list[Any]:
            shard.flush(DEADLINE)
            notes: list[Any] = ref.ask("all").result(DEADLINE)
            return notes

        return Case(ref, told, list)
    sharded = connection.ref("notes", by="k")

    def told_of_all() -> list[Any]:
        connection.flush(DEADLINE)
        return [row for each in sharded.ask_all("all") for row in each.result(DEADLINE)]

    def parts(rows: list[Any]) -> list[Any]:
        count = len(sharded.refs)
        return [row for at in range(count) for row in rows if shard_of(row["k"], count) == at]

    return Case(sharded, told_of_all, parts)


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem(workers=1) as system:
        yield system


def test_it_is_a_recipient(case: Case) -> None:
    assert is_recipient(case.recipient)
    assert not is_recipient(type(case.recipient))


def test_a_ref_is_a_recipient_and_needs_every_method(system: ActorSystem) -> None:
    class Idle(Actor[Any]):
        def receive(self, message: Any) -> None: ...

    assert isinstance(system.spawn(Idle), Recipient)
    assert not is_recipient(print)
    assert not is_recipient([])


# --- sinks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["dynamic", "manual", "dedicated", "assigned"])
def test_a_stream_ends_in_it(case: Case, system: ActorSystem, model: str) -> None:
    run = system.run(entry("x").to(case.recipient), threading=model)
    run.send("x", ROWS)
    run.finish(DEADLINE)
    assert case.told() == case.parts(ROWS)


@pytest.mark.parametrize("model", ["dynamic", "manual", "dedicated", "assigned"])
def test_a_stream_asks_it(case: Case, system: ActorSystem, model: str) -> None:
    def beside(row: Any, answer: Any) -> Any:
        return row, answer

    asked = entry("x").ask(case.recipient, in_flight=3, timeout=DEADLINE, combine=beside).collect()
    run = system.run(asked, threading=model, batch_size=2)
    run.send("x", ROWS)
    found = run.finish(DEADLINE)
    assert [row for row, _ in found] == ROWS
    if case.told():
        assert case.told() == case.parts(ROWS)
    assert asked.run_sequentially({"x": ROWS}) == found
    assert "dedicated" in asked.describe()


def test_a_sink_that_may_wait_for_another_process_shares_no_worker(case: Case) -> None:
    assert "dedicated" in entry("x").to(case.recipient).describe()
    assert "dedicated" not in entry("x").run_on("dynamic").to(case.recipient).describe()


def test_an_unsent_row_fails_the_run(connection: ShardedConnection, system: ActorSystem) -> None:
    run = system.run(entry("x").to(connection.shards[0].ref("notes")))
    with pytest.raises(StreamError, match=r"operator 'tell' failed$") as raised:
        send_and_finish(run, [object()])
    assert isinstance(raised.value.__cause__, CodecError)


def test_unsent_rows_are_skipped_singly(connection: ShardedConnection, system: ActorSystem) -> None:
    shard = connection.shards[0]
    run = system.run(entry("x").to(shard.ref("notes"), errors="skip"))
    run.send("x", [1, object(), 2, object(), 3])
    run.finish(DEADLINE)
    assert run.statistics().skipped == 2
    shard.flush(DEADLINE)
    assert shard.ref("notes").ask("all").result(DEADLINE) == [1, 2, 3]


def test_a_recipient_whose_tell_many_is_a_coroutine_is_refused(system: ActorSystem) -> None:
    class Later(Basket):
        async def tell_many(self, messages: Iterable[Any]) -> None:  # type: ignore[override]
            raise AssertionError

    run = system.run(entry("x").to(Later()))  # type: ignore[arg-type]
    with pytest.raises(StreamError):
        send_and_finish(run, [1])


def send_and_finish(run: Any, rows: list[Any]) -> None:
    run.send("x", rows)
    run.finish(DEADLINE)


def test_a_sink_waits_for_a_servers_credit(tmp_path: Path, system: ActorSystem) -> None:
    class Notes(Actor[Any]):
        def receive(self, message: Any) -> None:
            seen.append(message)

    seen: list[Any] = []
    limits = ServerLimits(messages=16)
    with ActorSystem(workers=1) as serving:
        entries = serve_entries({"notes": serving.spawn(Notes)})
        server = Server(serving, entries, f"unix:{tmp_path}/few", limits=limits)
        with connect(str(server.address), timeout=DEADLINE) as few:
            run = system.run(entry("x").to(few.ref("notes")))
            send_and_finish(run, list(range(1000)))
        server.stop()
    assert seen == list(range(1000))


# --- timers ---------------------------------------------------------------------------------------


class Alarm(Actor[Any]):
    """Has its message sent to a recipient when it is told one."""

    def __init__(self, to: Any) -> None:
        self.to = to

    def receive(self, message: Any) -> None:
        self.after(0.0, message, to=self.to)


def test_a_timer_sends_to_it(case: Case, system: ActorSystem) -> None:
    system.spawn(Alarm, case.recipient).tell(ROWS[0])
    eventually(lambda: case.told() == ROWS[:1], "told by the timer")


def test_a_timers_message_that_cannot_be_sent_is_logged(
    connection: ShardedConnection, system: ActorSystem, caplog: pytest.LogCaptureFixture
) -> None:
    shard = connection.shards[0]
    shard.close()
    system.spawn(Alarm, shard.ref("notes")).tell(1)
    eventually(lambda: "a timer failed" in caplog.text, "logged")


def test_a_timers_target_is_a_recipient(system: ActorSystem) -> None:
    failed = system.spawn(Alarm, print).ask(1)
    with pytest.raises(TypeError, match="a timer's message expected a ref or another recipient"):
        failed.result(DEADLINE)


# --- what is local only ---------------------------------------------------------------------------


def test_other_recipients_are_not_watched_or_keyed(case: Case, system: ActorSystem) -> None:
    class Watcher(Actor[Any]):
        def receive(self, message: Any) -> None:
            self.watch(message)

    with pytest.raises(TypeError, match="the ref of an actor in this process"):
        system.spawn(Watcher).ask(case.recipient).result(DEADLINE)
    with pytest.raises(ConfigError, match="the ref of an actor in this process"):
        with_keys(case.recipient)


# --- entry points ---------------------------------------------------------------------------------


@pytest.fixture
def proxy(case: Case, system: ActorSystem, tmp_path: Path) -> Iterator[str]:
    """The address of a server that serves the recipient."""
    entries = serve_entries({"proxy": case.recipient})
    server = Server(system, entries, f"unix:{tmp_path}/proxy", state=tmp_path / "of the proxy")
    yield str(server.address)
    server.stop()


def test_a_server_serves_it(case: Case, proxy: str) -> None:
    with connect(proxy, timeout=DEADLINE) as client:
        ref = client.ref("proxy")
        ref.tell_many(ROWS[:-1])
        ref.tell(ROWS[-1])
        client.flush(DEADLINE)
        assert case.told() == case.parts(ROWS)
        answer = ref.ask(ROWS[0]).result(DEADLINE)
        assert answer == (ROWS[0] if isinstance(case.recipient, Basket) else None)


def test_it_takes_no_staged_rows(proxy: str) -> None:
    with (
        connect(proxy, timeout=DEADLINE) as client,
        pytest.raises(UploadRefused, match="the recipient 'proxy' takes no staged rows"),
        client.upload("proxy", job="job"),
    ):
        pass


def test_it_is_served_by_its_name(case: Case) -> None:
    (name,) = serve_entries(case.recipient)
    assert name == case.recipient.name


def test_a_client_hears_of_what_could_not_be_told(
    connection: ShardedConnection, system: ActorSystem, tmp_path: Path
) -> None:
    shard = connection.shards[0]
    shard.close()
    server = Server(system, serve_entries({"it": shard.ref("notes")}), f"unix:{tmp_path}/p")
    client = connect(str(server.address), timeout=DEADLINE)
    client.ref("it").tell(1)
    with pytest.raises(RemoteCallError, match="ConnectionLost"):
        client.flush(DEADLINE)
    client.close()
    server.stop()


# --- a sharded ref asks ---------------------------------------------------------------------------


def test_without_a_key_the_messages_own_chooses_the_shard(connection: ShardedConnection) -> None:
    sharded = connection.ref("notes", by="k")
    for row in ROWS[:20]:
        sharded.ask(row).result(DEADLINE)
    for at, each in enumerate(sharded.ask_all("all")):
        of_shard = [row for row in ROWS[:20] if shard_of(row["k"], len(sharded.refs)) == at]
        assert each.result(DEADLINE) == of_shard


def test_atell_goes_to_the_shards_of_the_keys(connection: ShardedConnection) -> None:
    sharded = connection.ref("notes", by="k")
    sharded.atell_many(ROWS[:99]).result(DEADLINE)
    sharded.atell(ROWS[99]).result(DEADLINE)
    connection.flush(DEADLINE)
    for at, each in enumerate(sharded.ask_all("all")):
        of_shard = [row for row in ROWS[:100] if shard_of(row["k"], len(sharded.refs)) == at]
        assert each.result(DEADLINE) == of_shard
