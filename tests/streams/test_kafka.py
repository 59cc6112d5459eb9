"""The source and the sinks of docs/howto/feed-kafka.md, on brokers in this process."""

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import entry
from callboard.streams.errors import RunError
from tests.test_snippets import blocks

DEADLINE = 60.0
kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def page(root: Path, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The module that the page shows."""
    text = (root / "docs/howto/feed-kafka.md").read_text()
    (shown,) = (each for each in blocks(text) if each.file_name)
    path = tmp_path_factory.mktemp("page") / shown.file_name
    path.write_text("\n".join(shown.lines))
    spec = importlib.util.spec_from_file_location("kafka_feed", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def producer() -> Any:
    """A producer that runs the brokers."""
    return kafka.Producer({"bootstrap.servers": "here", "test.mock.num.brokers": 1, "log_level": 3})


@pytest.fixture(scope="module")
def brokers(producer: Any) -> str:
    found = producer.list_topics(timeout=DEADLINE).brokers.values()
    return ",".join(f"{broker.host}:{broker.port}" for broker in found)


@pytest.fixture
def consumer(page: ModuleType, producer: Any, brokers: str, request: Any) -> Iterator[Any]:
    """A consumer of a topic of the test's own: the numbers from 0 to 9, in one partition."""
    topic = request.node.name
    for number in range(10):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(DEADLINE) == 0
    opened = kafka.Consumer(
        {"bootstrap.servers": brokers, "group.id": topic, "enable.auto.offset.store": False}
    )
    opened.assign([kafka.TopicPartition(topic, 0, 0)])
    yield opened
    opened.close()


def done(consumer: Any) -> int:
    """Return the offset up to which messages are stored as done, after a commit."""
    with suppress(kafka.KafkaException):  # nothing is stored
        consumer.commit(asynchronous=False)
    (place,) = consumer.committed(consumer.assignment(), DEADLINE)
    offset: int = place.offset
    return max(offset, 0)


def has_read(consumer: Any, count: int) -> Any:
    return lambda: consumer.position(consumer.assignment())[0].offset >= count


def number(message: Any) -> tuple[Any, int]:
    return message, int(message.value())


def test_all_that_a_sink_has_taken_is_stored_as_done(page: ModuleType, consumer: Any) -> None:
    taken: list[int] = []
    graph = entry("messages").map(number).to(page.Stored(taken.append, consumer))
    with ActorSystem() as system, system.run(graph) as run:
        page.feed(run, consumer, has_read(consumer, 10))
    assert taken == [*range(10)]
    assert done(consumer) == 10


def test_outputs_missing_from_a_failed_run_come_again(page: ModuleType, consumer: Any) -> None:
    taken: list[int] = []

    def take(row: int) -> None:
        if row == 6 and taken[-1] == 5:
            taken.append(-1)
            raise OSError("the disk is full")
        taken.append(row)

    graph = entry("messages").map(number).to(page.Stored(take, consumer))
    with ActorSystem() as system:
        with pytest.raises(RunError, match="failed at input 6"), system.run(graph) as run:
            page.feed(run, consumer, has_read(consumer, 10))
        stored = done(consumer)
        assert stored == 6
        consumer.seek(kafka.TopicPartition(consumer.assignment()[0].topic, 0, stored))
        with system.run(graph) as run:
            page.feed(run, consumer, has_read(consumer, 10))
    assert taken == [0, 1, 2, 3, 4, 5, -1, 6, 7, 8, 9]
    assert done(consumer) == 10


def test_a_topics_order(page: ModuleType, producer: Any, consumer: Any, brokers: str) -> None:
    # A partition of its own has one order.
    class Ordered:
        def produce(self, topic: str, output: bytes, on_delivery: Any) -> None:
            producer.produce(topic, output, partition=0, on_delivery=on_delivery)

        def flush(self) -> None:
            producer.flush()

    graph = (
        entry("messages")
        .map(lambda message: (message, b"<" + message.value() + b">"))
        .to(page.Topic(Ordered(), "outputs", consumer, at_once=4))
    )
    with ActorSystem() as system, system.run(graph) as run:
        page.feed(run, consumer, has_read(consumer, 10))
    assert done(consumer) == 10
    reader = kafka.Consumer({"bootstrap.servers": brokers, "group.id": "reader"})
    reader.assign([kafka.TopicPartition("outputs", 0, 0)])
    read: list[Any] = []
    while len(read) < 10:
        got = reader.consume(num_messages=10, timeout=DEADLINE)
        assert got, "an output is missing"
        read += got
    assert [message.value() for message in read] == [f"<{n}>".encode() for n in range(10)]
    reader.close()


def test_an_output_not_taken_by_brokers_fails_the_run(page: ModuleType, consumer: Any) -> None:
    class Refusing:
        """Has the methods of a producer whose brokers are away."""

        def __init__(self) -> None:
            self.callbacks: list[Any] = []

        def produce(self, topic: str, output: str, on_delivery: Any) -> None:
            self.callbacks.append(on_delivery)

        def flush(self) -> None:
            for callback in self.callbacks:
                callback(kafka.KafkaError(kafka.KafkaError._MSG_TIMED_OUT), None)

    graph = entry("messages").map(number).to(page.Topic(Refusing(), "nowhere", consumer))
    with ActorSystem() as system, pytest.raises(RunError) as raised, system.run(graph) as run:
        page.feed(run, consumer, has_read(consumer, 10))
    assert "_MSG_TIMED_OUT" in str(raised.value.__cause__)
    assert done(consumer) == 0


def test_an_offset_of_anothers_partition_is_left_alone(page: ModuleType, consumer: Any) -> None:
    messages = consumer.consume(num_messages=1, timeout=DEADLINE)
    sink = page.Stored(lambda row: None, consumer)
    consumer.unassign()
    with pytest.raises(kafka.KafkaException, match="_STATE"):
        consumer.store_offsets(messages[0])
    sink.put((messages[0], 0))


def test_offsets_are_stored_after_a_poll(page: ModuleType, producer: Any, consumer: Any) -> None:
    sink = page.Topic(producer, "few", consumer)
    put = threading.Semaphore(0)
    stored: list[int] = []

    def output(message: Any) -> tuple[Any, bytes]:
        return message, message.value()

    def note(row: Any) -> None:
        sink.put(row)
        put.release()

    def after_poll() -> None:
        if run.position["messages"] == 10 and not stored:
            for _ in range(10):
                assert put.acquire(timeout=DEADLINE)
        sink.flush()
        stored.append(done(consumer))

    with ActorSystem() as system:
        run = system.run(entry("messages").map(output).to(note))
        page.feed(run, consumer, lambda: 10 in stored, after_poll)
        run.cancel()


def test_a_failed_graph_ends_the_source_of_an_idle_topic(page: ModuleType, consumer: Any) -> None:
    failed = threading.Event()

    def fail(message: Any) -> None:
        failed.set()
        raise OSError("the disk is full")

    polls = iter(range(100))
    with ActorSystem() as system:
        run = system.run(entry("messages").to(fail))
        with pytest.raises(RunError, match="failed at input 0"):
            page.feed(run, consumer, lambda: failed.wait(0) and next(polls) == 99)
