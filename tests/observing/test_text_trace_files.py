"""Traces as text: nothing is missing when the system has stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem, ConfigError
from callboard.channels import Receiver, Sender, Task, channel
from callboard.observing import FlightRecorder
from callboard.scheduling.tracing.formats import RECORD, TextFormat
from tests.observing.text_traces import Dispatch, dispatches, read, recorded
from tests.tokenless import tokenless


class Stage(Task):
    def __init__(self, source: Receiver[int], sink: Sender[int]) -> None:
        self.source, self.sink = source, sink

    async def run(self) -> None:
        async for number in self.source:
            await self.sink.send(number)


def run_stages(system: ActorSystem, values: int, stages: int, **options: Any) -> list[int]:
    """Send numbers through tasks and let these end. Return the channels' numbers."""
    sender, receiver = channel(1)
    numbers = [sender._number]
    for index in range(stages):
        following, last = channel(1)
        system.spawn(Stage, receiver, following, name=f"stage{index}", **options)
        receiver = last
        numbers.append(following._number)
    for number in range(values):
        sender.put(number)
        assert receiver.get(30.0) == number
    sender.close()
    assert list(receiver) == []
    assert system.join(30.0)
    system.drain(30.0)  # the record of the last dispatch is written, too
    return numbers


def check_whole(log: list[Dispatch], values: int, numbers: list[int]) -> None:
    """Check that no dispatch is missing, and that all values went through all channels."""
    by_path: dict[str, list[Dispatch]] = {}
    for line in sorted(log, key=lambda line: (line.path, line.dispatch)):
        by_path.setdefault(line.path, []).append(line)
    assert len(by_path) == len(numbers) - 1
    for index in range(len(numbers) - 1):
        lines = by_path[f"/stage{index}"]
        assert [line.dispatch for line in lines] == list(range(1, len(lines) + 1))
        assert [line.state for line in lines].index("Z") == len(lines) - 1
        assert [line.time for line in lines] == sorted(line.time for line in lines)
        moved: dict[tuple[int, str], list[int]] = {}
        for line in lines:
            for use in line.uses:
                moved.setdefault((use.channel, use.mode), []).append(use.moved)
        for end in ((numbers[index], "r"), (numbers[index + 1], "w")):
            assert moved[end] == sorted(moved[end])
            assert moved[end][-1] == values
        # A task that never has to wait lives in one dispatch, which shows the state at its end.
        assert len(lines) == 1 or all(use.state == "O" for use in lines[0].uses)
        assert all(use.state == "C" for use in lines[-1].uses)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.txt"


def test_a_trace_that_is_longer_than_a_workers_memory_is_whole(file: Path) -> None:
    with ActorSystem("long", workers=1, monitoring="workers", trace=file) as system:
        numbers = run_stages(system, 2_000, 3)
    assert "overwrote" not in file.read_text()
    log = read(file)
    assert len(log) + sum(len(line.uses) for line in log) > 8_192
    assert {line.worker for line in log} == {"long-0"}
    check_whole(log, 2_000, numbers)


def test_each_line_names_its_worker(file: Path) -> None:
    options: dict[str, Any] = {"monitoring": "channels", "threading": "assigned", "trace": file}
    with tokenless("net", workers=2, **options) as system:
        numbers = run_stages(system, 500, 4)
    log = read(file)
    assert {line.worker for line in log} == {"net-0", "net-1"}
    check_whole(log, 500, numbers)


def test_a_task_that_moves_between_workers_is_whole(file: Path) -> None:
    with ActorSystem("net", workers=2, monitoring="channels", trace=file) as system:
        numbers = run_stages(system, 500, 4)
    check_whole(read(file), 500, numbers)


def test_a_dedicated_task_has_the_line_of_its_worker(file: Path) -> None:
    class Blocks(Task):
        def __init__(self, source: Receiver[int]) -> None:
            self.source = source

        async def run(self) -> None:
            assert list(self.source) == [1, 2, 3]

    sender, receiver = channel(1)
    with ActorSystem("net", workers=1, monitoring="channels", trace=file) as system:
        system.spawn(Blocks, receiver, name="blocks", dedicated=True)
        for number in (1, 2, 3):
            sender.put(number, 30.0)
        sender.close()
        assert system.join(30.0)
        system.drain(30.0)  # the record of the last dispatch is written, too
    (line,) = read(file)
    assert (line.worker, line.path, line.dispatch, line.state) == ("net-blocks", "/blocks", 1, "Z")
    ((channel_number, mode, state, moved, flags),) = line.uses
    assert (channel_number, mode, state, moved) == (receiver._number, "r", "C", 3)
    assert flags[2] == "*"


def test_an_actor_that_has_ended_long_ago_keeps_its_name() -> None:
    class Brief(Task):
        async def run(self) -> None:
            pass

    with ActorSystem("net", workers=1, trace=FlightRecorder(seconds=3600)) as system:
        for index in range(300):
            system.spawn(Brief, name=f"brief {index}\n")
        assert system.join(30.0)
        system.drain(30.0)  # the record of the last dispatch is written, too
        log = dispatches(recorded(system))
    assert {line.path for line in log} == {f"/brief_{index}_" for index in range(300)}


def test_files_are_for_their_user_and_follow_no_link(file: Path) -> None:
    mask = os.umask(0)
    try:
        with ActorSystem(workers=1, trace=file):
            assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(mask)
    file.unlink()
    file.symlink_to(file.with_name("elsewhere"))
    with pytest.raises(OSError, match="symbolic links"):
        ActorSystem(workers=1, trace=file)
    assert not file.with_name("elsewhere").exists()


class Worker:
    def __init__(self, name: str) -> None:
        self.name = name


def test_a_line_has_the_fields_of_the_thesis() -> None:
    worker: Any = Worker("my net-0")
    used = [
        RECORD.pack(246, 2, ord("w"), ord("C"), 6, -1, 0, 0, b"u", 0),
        RECORD.pack(245, 2, ord("r"), ord("C"), 4, -1, 0, 0, b"u", 0),
    ]
    ended = RECORD.pack(248954687985216, 7473, 191, 3, 0, -1, 248954684456346, 2, b"Z", 0)
    text = TextFormat("net")
    assert text.records(worker, used[0], {}) == b""  # its dispatch is not over yet
    assert text.records(worker, used[1] + ended, {191: b"/net/merge"}).decode() == (
        "248954687985216 my_net-0 tid 191 /net/merge disp 3 st Z et 7473 creat 248954684456346"
        " [246,w,C,2,-!*;245,r,C,2,--*;]\n"
    )


def test_a_blocked_actors_line_has_its_channels_and_its_messages() -> None:
    worker: Any = Worker("net-0")
    use = RECORD.pack(9, 0, ord("r"), ord("O"), 1, -1, 0, 0, b"u", 0)
    waits = RECORD.pack(5, 0, 1, 2, 3, 4, 0, 2, b"a", 0)
    text = TextFormat("net")
    assert text.records(worker, use + waits, {1: b"/a"}).decode() == (
        "5 net-0 tid 1 /a disp 2 st Ba et 0 msgs 3 queue 4 [9,r,O,0,?--;...]\n"
    )


def test_lines_of_a_worker_and_of_a_failure_have_a_mark() -> None:
    worker: Any = Worker("net-0")
    text = TextFormat("net")
    own = [RECORD.pack(5, 1000056292, 0, 2, 0, -1, 0, 0, kind, 0) for kind in (b"w", b"s", b"x")]
    assert text.records(worker, b"".join(own), {}).decode().splitlines() == [
        "5 *** net-0 waited (2) for 1.000056292",
        "5 *** net-0 was suspended (2) for 1.000056292",
        "5 *** net-0 exited wait_cnt 2 wait_time 1.000056292",
    ]
    assert text.instant(6, "failure of /a\n: é").decode() == "6 *** failure of /a\\n: é\n"


@pytest.mark.parametrize("wrong", [(), 5, "Stage", [3], [None]])
def test_a_value_without_names_of_classes_is_an_error(wrong: Any) -> None:
    with pytest.raises(
        ConfigError, match="monitored must be a list of classes or of their names, got"
    ):
        ActorSystem(monitoring="times", config={"monitored": wrong})


def test_a_configuration_file_says_which_classes_are_monitored(file: Path) -> None:
    config = file.with_name("tuning.toml")
    config.write_text('monitoring = "channels"\nmonitored = ["Stage"]\n')
    with ActorSystem(workers=1, config=config, trace=file) as system:
        numbers = run_stages(system, 5, 1)
    check_whole(read(file), 5, numbers)
