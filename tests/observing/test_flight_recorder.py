"""Flight recorders: the latest trace is written when something goes wrong."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem, CallboardError, ConfigError, DrainTimeout
from callboard.observing import FlightRecorder, dump_trace, record_trace
from tests.observing.actors import Box, Holder, Passage
from tests.observing.reading import read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "last.perfetto-trace"


def test_a_failure_has_the_latest_trace_written_once(path: Path) -> None:
    with ActorSystem(workers=1, trace=FlightRecorder(seconds=600, path=path)) as system:
        box = system.spawn(Box, name="box")
        box.tell_many(range(100))
        system.drain(60)
        assert not path.exists()
        box.tell("fail")
        system.drain(60)
        found = read(path)
        system.spawn(Box, name="other").tell("fail")
        system.drain(60)
    assert read(path).texts() == found.texts()  # the second one came too soon
    assert "failure of /box: ValueError" in found.texts()
    assert sum(one.amount for one in found.of("/box")) >= 100
    assert list(path.parent.iterdir()) == [path]


def test_a_drain_that_times_out_says_where_the_trace_is(path: Path) -> None:
    passage = Passage()
    with ActorSystem(workers=1, trace=FlightRecorder(path=path)) as system:
        system.spawn(Box, name="box").ask(0).result(30)
        system.spawn(Holder, name="holder").tell(passage)
        assert passage.entered.wait(30)
        with pytest.raises(DrainTimeout, match=f"what came before is in {path}"):
            system.drain(0.0)
        assert read(path).of("/box")
        passage.leave.set()


def test_a_trace_is_written_at_any_time(tmp_path: Path) -> None:
    path, other = tmp_path / "now.perfetto-trace", tmp_path / "now.txt"
    with ActorSystem(workers=1, trace=FlightRecorder(seconds=600)) as system:
        box = system.spawn(Box, name="box")
        for count in (1, 2):
            box.ask(0).result(30)
            system.drain(60)
            dump_trace(system, path)
            assert sum(one.amount for one in read(path).of("/box")) == count
        dump_trace(system, other)
        assert other.read_text().count(" /box disp ") == box.statistics().dispatches
        with pytest.raises(FileNotFoundError):
            dump_trace(system, tmp_path / "nowhere" / "now.txt")
        box.tell("fail")  # there is no path to write to
    assert sorted(tmp_path.iterdir()) == [path, other]


@pytest.mark.parametrize("limit", [1, 200_000])
def test_memory_is_bounded_and_the_latest_is_kept(path: Path, limit: int) -> None:
    recorder = FlightRecorder(seconds=600, limit=limit)
    with ActorSystem(workers=1, quantum=1, trace=recorder) as system:
        box = system.spawn(Box, name="box")
        box.tell_many(range(50_000))
        system.drain(60)
        flight = system._observer.traces._latest
        assert flight is not None
        assert flight._size <= limit
        dump_trace(system, path)
        assert flight._size <= limit
    assert len(read(path).of("/box")) <= limit // 80


def test_older_records_are_forgotten(path: Path) -> None:
    with ActorSystem(workers=1, quantum=1, trace=FlightRecorder(seconds=1e-9)) as system:
        box = system.spawn(Box, name="box", supervision="resume")
        box.tell("fail")
        box.tell_many(range(50_000))
        system.drain(60)
        dump_trace(system, path)
    found = read(path)
    assert len(found.of("/box")) < 20_000
    assert found.texts() == []


class Heard(logging.Handler):
    """Knows when something was logged."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.event = text, threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if self.text in record.getMessage():
            self.event.set()


@pytest.fixture
def written() -> Iterator[Heard]:
    heard = Heard("the latest trace was written")
    logging.getLogger("callboard").addHandler(heard)
    yield heard
    logging.getLogger("callboard").removeHandler(heard)


def test_a_signal_has_the_trace_written(path: Path, written: Heard) -> None:
    before = signal.getsignal(signal.SIGUSR2)
    recorder = FlightRecorder(path=path, signal=signal.SIGUSR2)
    with ActorSystem(workers=1, trace=recorder) as system:
        system.spawn(Box, name="box").ask(0).result(30)
        system.drain(60)
        for _ in range(2):
            written.event.clear()
            os.kill(os.getpid(), signal.SIGUSR2)
            assert written.event.wait(30)
            assert read(path).of("/box")
    assert signal.getsignal(signal.SIGUSR2) is before


def test_a_recorder_with_a_signal_is_for_the_main_thread(path: Path) -> None:
    errors: list[Any] = []

    def make() -> None:
        try:
            ActorSystem(workers=1, trace=FlightRecorder(path=path, signal=signal.SIGUSR2))
        except CallboardError as error:
            errors.append(str(error))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join(30)
    assert "needs a system made in the main thread" in errors[0]
    with pytest.raises(ConfigError, match=f"the signal {int(signal.SIGKILL)} cannot be handled"):
        ActorSystem(workers=1, trace=FlightRecorder(path=path, signal=signal.SIGKILL))


def test_an_unwritable_path_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = FlightRecorder(path=tmp_path / "nowhere" / "last.txt")
    with ActorSystem(workers=1, trace=recorder) as system:
        box = system.spawn(Box, supervision="resume")
        box.tell("fail")
        assert box.ask(0).result(30) is None
    assert caplog.text.count("a trace could not be written") == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seconds": 0}, "`seconds` of a FlightRecorder must be a number of seconds above 0"),
        ({"limit": 0}, "`limit` of a FlightRecorder must be a whole number of at least 1, got 0"),
        ({"path": 3}, "expected the path of a file as `path` of a FlightRecorder, got 3"),
        (
            {"signal": "x", "path": "x"},
            "`signal` of a FlightRecorder must be a whole number from 1",
        ),
        ({"signal": 10}, "writes the trace, and needs a `path`"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        FlightRecorder(**options)


def test_traces_are_for_their_user_and_follow_no_link(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        with ActorSystem(workers=1, trace=FlightRecorder()) as system:
            dump_trace(system, tmp_path / "latest")
            with record_trace(system, tmp_path / "all"):
                pass
    finally:
        os.umask(mask)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with (
        ActorSystem(workers=1, monitoring="times") as system,
        pytest.raises(OSError, match="symbolic links"),
        record_trace(system, tmp_path / "link"),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()
