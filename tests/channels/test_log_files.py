"""The logs' files: one for each worker, complete when the system has stopped."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem, CallboardError, ConfigError
from callboard.channels import Receiver, Sender, Task, channel
from tests.channels.logs import Dispatch, dispatches, read
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
    numbers = [sender.number]
    for index in range(stages):
        following, last = channel(1)
        system.spawn(Stage, receiver, following, name=f"stage{index}", **options)
        receiver = last
        numbers.append(following.number)
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


def test_a_log_that_is_longer_than_a_workers_memory_is_whole(tmp_path: Path) -> None:
    with ActorSystem("long", workers=1, monitoring="workers") as system:
        assert [file.name for file in system.write_logs(tmp_path)] == ["long-0.log"]
        numbers = run_stages(system, 2_000, 3)
    (file,) = tmp_path.iterdir()
    lines = file.read_text().splitlines()
    assert not [line for line in lines if "overwrote" in line]
    log = dispatches(lines)
    assert len(log) + sum(len(line.uses) for line in log) > 8_192
    check_whole(log, 2_000, numbers)


def test_each_worker_writes_a_file(tmp_path: Path) -> None:
    with tokenless("net", workers=2, monitoring="channels", threading="assigned") as system:
        system.write_logs(tmp_path)
        numbers = run_stages(system, 500, 4)
    files = read(tmp_path)
    assert files.keys() == {"net-0.log", "net-1.log"}
    assert all(files.values())
    check_whole([line for log in files.values() for line in log], 500, numbers)


def test_tasks_that_move_between_workers_are_in_several_files(tmp_path: Path) -> None:
    with ActorSystem("net", workers=2, monitoring="channels") as system:
        system.write_logs(tmp_path)
        numbers = run_stages(system, 500, 4)
    files = read(tmp_path)
    assert files.keys() <= {"net-0.log", "net-1.log"}
    check_whole([line for log in files.values() for line in log], 500, numbers)


def test_a_dedicated_task_has_its_worker_s_file_which_is_written_when_it_ends(
    tmp_path: Path,
) -> None:
    class Blocks(Task):
        def __init__(self, source: Receiver[int]) -> None:
            self.source = source

        async def run(self) -> None:
            assert list(self.source) == [1, 2, 3]

    sender, receiver = channel(1)
    with ActorSystem("net", workers=1, monitoring="channels") as system:
        system.write_logs(tmp_path)
        system.spawn(Blocks, receiver, name="blocks", dedicated=True)
        for number in (1, 2, 3):
            sender.put(number, 30.0)
        sender.close()
        assert system.join(30.0)
        system.drain(30.0)  # the record of the last dispatch is written, too
    (line,) = read(tmp_path)["net-blocks.log"]
    assert (line.path, line.dispatch, line.state) == ("/blocks", 1, "Z")
    ((channel_number, mode, state, moved, flags),) = line.uses
    assert (channel_number, mode, state, moved) == (receiver.number, "r", "C", 3)
    assert flags[2] == "*"


def test_the_log_is_there_when_the_call_returns_and_goes_on(tmp_path: Path) -> None:
    class Box(Actor[int]):
        def receive(self, message: int) -> None:
            pass

    with ActorSystem("net", workers=1, monitoring="times") as system:
        box = system.spawn(Box, name="box")
        system.drain()  # its first dispatch has no message
        box.tell(1)
        system.drain()
        (file,) = system.write_logs(tmp_path / "new" / "folder")
        assert [line.dispatch for line in dispatches(file.read_text().splitlines())] == [1, 2]
        box.tell(2)
        system.drain()
        system.write_logs(tmp_path / "new" / "folder")
        assert [line.dispatch for line in dispatches(file.read_text().splitlines())] == [1, 2, 3]
        box.tell(3)
    assert [line.dispatch for line in dispatches(file.read_text().splitlines())] == [1, 2, 3, 4, 5]


def test_a_folder_that_cannot_be_is_an_error_at_the_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with ActorSystem(workers=1, monitoring="times") as system:
        with pytest.raises(OSError, match="file"):
            system.write_logs(tmp_path / "file")
        with pytest.raises(OSError, match="file"):
            system.write_logs(tmp_path / "file" / "below")
        (tmp_path / "callboard-0.log").mkdir()
        with pytest.raises(OSError, match=r"callboard-0\.log"):
            system.write_logs(tmp_path)
    with ActorSystem(workers=1) as system, pytest.raises(CallboardError, match="keeps no log"):
        system.write_logs(tmp_path)


def test_a_folder_that_is_gone_later_stops_the_log_and_not_the_system(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "logs"
    with ActorSystem("net", workers=1, monitoring="workers") as system:
        system.write_logs(folder)
        shutil.rmtree(folder)
        run_stages(system, 2_000, 3)
    messages = [
        record for record in caplog.records if "a log could not be written" in record.message
    ]
    assert len(messages) == 1
    assert "net-0.log" in messages[0].message
    assert not folder.exists()


def test_an_actor_that_has_ended_long_ago_keeps_its_name(tmp_path: Path) -> None:
    class Brief(Task):
        async def run(self) -> None:
            pass

    with ActorSystem("net", workers=1, monitoring="times") as system:
        for index in range(300):
            system.spawn(Brief, name=f"brief {index}\n")
        assert system.join(30.0)
        system.drain(30.0)  # the record of the last dispatch is written, too
        (file,) = system.write_logs(tmp_path)
        log = dispatches(file.read_text().splitlines())
    assert {line.path for line in log} == {f"/brief_{index}_" for index in range(300)}


@pytest.mark.parametrize("wrong", [(), 5, "Stage", [3], [None]])
def test_what_names_no_classes_is_an_error(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="monitored is a list of classes or of their names, not"):
        ActorSystem(monitoring="times", monitored=wrong)


def test_an_operators_file_says_which_classes_are_monitored(tmp_path: Path) -> None:
    file = tmp_path / "tuning.toml"
    file.write_text('monitoring = "channels"\nmonitored = ["Stage"]\n')
    with ActorSystem(workers=1, config=file) as system:
        numbers = run_stages(system, 5, 1)
        log = dispatches(system.log_lines(0))
    check_whole(log, 5, numbers)
