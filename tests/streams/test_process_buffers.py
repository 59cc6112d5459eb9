"""Large values between a program and its worker processes: views of shared memory."""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.mailbox.shared.blocks import SharedBlock
from callboard.scheduling.config import LEAST_SHARED_MEMORY
from callboard.streams import Graph, StreamError, entry
from callboard.worker_processes.message_blocks import LARGE, MessageBlocks, make_blocks, open_blocks
from callboard.worker_processes.pickling import loads, parts_in_process, parts_of
from callboard.worker_processes.worker import ANSWER

pytestmark = pytest.mark.usefixtures("importable")

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Array = npt.NDArray[Any]
else:
    np = pytest.importorskip("numpy")
    pa = pytest.importorskip("pyarrow")

MEGABYTE = 1 << 20
PAGES = 1024


@pytest.fixture(scope="module")
def system(root: Path) -> Iterator[ActorSystem]:
    with pytest.MonkeyPatch.context() as patched, ActorSystem(processes=2) as made:
        patched.syspath_prepend(str(root))
        yield made


def run(system: ActorSystem, graph: Graph[Any], sent: Any, **options: Any) -> Any:
    made = system.run(graph, **options)
    made.send("rows", sent, timeout=60)
    return made.finish(timeout=60)


def arrays(count: int, size: int = MEGABYTE) -> list[Array]:
    return [np.full(size, at % 251, np.uint8) for at in range(count)]


def is_in_block(value: Any) -> bool:
    """Return whether the bytes of an array are those of a block."""
    while isinstance(value, np.ndarray):
        value = value.base
    return isinstance(value, SharedBlock) or (
        isinstance(value, memoryview) and isinstance(value.obj, SharedBlock)
    )


def itself(value: Any) -> Any:
    return value


def next_of(array: Array) -> Array:
    return array + 1


def with_its_place(array: Array) -> tuple[bool, int, Array]:
    return is_in_block(array), os.getpid(), next_of(array)


def sum_of(total: Array, array: Array) -> Array:
    return total + array


def filled(array: Array) -> Array:
    array[0] = 7
    return array


def calling_worker(name: str) -> Any:
    """Return an object of this process's main loop, in whose function this is called."""
    frame = sys._getframe()
    while name not in frame.f_locals or "message" not in frame.f_locals:
        assert frame.f_back is not None
        frame = frame.f_back
    return frame.f_locals[name]


def send_nonsense_once(row: tuple[int, str]) -> int:
    number, mark = row
    if number == 7 and not os.path.exists(mark):
        Path(mark).touch()
        table = struct.pack("<IQQ", 1, 1 << 40, 100)
        calling_worker("worker")._channel.send(ANSWER.pack(0) + table)
    return number


def fork_and_look(array: Array) -> int:
    child = os.fork()
    if child == 0:
        os._exit(int(array[-1]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_arrays_pass_both_ways_in_blocks(system: ActorSystem) -> None:
    sent = arrays(20)
    found = run(system, entry("rows").map(with_its_place).collect(), sent, batch_size=3)
    for (was_in_block, _, array), before in zip(found, sent, strict=True):
        assert was_in_block
        np.testing.assert_array_equal(array, before + 1)
    assert all(is_in_block(array) for _, _, array in found)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(100_000, dtype=np.float64).reshape(250, 400),
        np.asfortranarray(np.arange(100_000).reshape(250, 400)),
        np.arange(200_000)[::2],
        np.zeros(0),
        np.array([{"a": 1}] * 10),
        np.array([("x", 1)] * 20_000, dtype=[("name", "U4"), ("number", "i4")]),
        np.broadcast_to(np.arange(100), (1000, 100)),
    ],
)
def test_arrays_of_each_layout_are_equal_on_the_other_side(
    system: ActorSystem, array: Array
) -> None:
    (found,) = run(system, entry("rows").map(itself).collect(), [array])
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


def test_arrow_batches_and_tables_pass_both_ways(system: ActorSystem) -> None:
    batch = pa.record_batch({"number": np.arange(50_000), "text": ["abc"] * 50_000})
    table = pa.Table.from_batches([batch, batch])
    assert run(system, entry("rows").map(itself).collect(), [batch, table]) == [batch, table]


def test_large_bytes_and_texts_pass_both_ways(system: ActorSystem) -> None:
    sent = [b"a" * MEGABYTE, bytearray(b"b") * MEGABYTE, "c" * MEGABYTE, ["d" * 1000] * 500]
    assert run(system, entry("rows").map(itself).collect(), sent, batch_size=2) == sent


def test_a_large_array_cannot_be_changed_in_place(system: ActorSystem) -> None:
    for made in (system, ActorSystem(processes=1)):
        graph = entry("rows").map(filled, name="filled").collect()
        with pytest.raises(StreamError, match="'filled' failed") as caught:
            run(made, graph, arrays(1))
        assert "read-only" in str(caught.value.__cause__)
    made.stop()
    (small,) = run(system, graph, arrays(1, 10))
    assert small[0] == 7


def test_rows_may_be_read_only_on_the_other_side_alone(system: ActorSystem) -> None:
    sent = arrays(3)
    run(system, entry("rows").map(next_of).collect(), sent)
    sent[0][0] = 1
    assert sent[0].flags.writeable


def test_views_outlive_the_system() -> None:
    with ActorSystem(processes=1) as system:
        found = run(system, entry("rows").map(next_of).collect(), arrays(5), batch_size=1)
        (table,) = run(
            system, entry("rows").map(itself).collect(), [pa.table({"a": range(50_000)})]
        )
    assert all(is_in_block(array) for array in found)
    for at, array in enumerate(found):
        assert (array == at + 1).all()
    assert table["a"].to_pylist() == [*range(50_000)]


def test_blocks_are_free_again_when_their_views_are_gone() -> None:
    with ActorSystem(processes=1, shared_memory=MEGABYTE) as system:
        made = system.run(entry("rows").map(with_its_place).collect(), batch_size=1, window=1)
        results = made.results(limit=1)
        for at in range(300):
            made.send("rows", arrays(1, LARGE))
            was_in_block, _, array = next(results)
            assert was_in_block
            assert is_in_block(array)
            assert (array == 1).all(), at
            del array
        made.finish(timeout=60)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_values_without_room_in_the_region_pass_in_their_messages(batch_size: int) -> None:
    sizes = [40_000, 3_000_000, 400_000, 500_000, 33_000, 50] * 4
    sent = [np.full(size, at, np.uint8) for at, size in enumerate(sizes)]
    with ActorSystem(processes=2, shared_memory=MEGABYTE) as system:
        graph = entry("rows").map(next_of).collect()
        found = run(system, graph, sent, batch_size=batch_size)
    for array, before in zip(found, sent, strict=True):
        np.testing.assert_array_equal(array, before + 1)


def test_outputs_that_are_kept_leave_room_for_others() -> None:
    sent = arrays(100, 40_000)
    with ActorSystem(processes=1, shared_memory=MEGABYTE) as system:
        graph = entry("rows").map(next_of).collect()
        kept = run(system, graph, sent, batch_size=1)
        (later,) = run(system, graph, sent[:1])
    assert 0 < sum(map(is_in_block, kept)) < 10
    assert not is_in_block(later)
    assert [int(array[-1]) for array in kept] == [at + 1 for at in range(100)]


@pytest.mark.parametrize("processes", [1, 2])
def test_rows_larger_than_all_shared_memory_pass_both_ways(processes: int) -> None:
    sent = arrays(12, 10 * LEAST_SHARED_MEMORY)
    stateless = entry("rows").map(next_of).collect()
    by_key = entry("rows").key_by(lambda array: int(array[0]) % 2)
    keyed = by_key.scan(0, sum_of).collect()  # type: ignore[arg-type]
    with ActorSystem(processes=processes, shared_memory=LEAST_SHARED_MEMORY) as system:
        for array, before in zip(run(system, stateless, sent), sent, strict=True):
            np.testing.assert_array_equal(array, before + 1)
        sums = run(system, keyed, sent, batch_size=3)
    for at, (key, array) in enumerate(sums):
        assert key == at % 2
        np.testing.assert_array_equal(array, sum(sent[at % 2 : at + 1 : 2]))


def test_killed_processes_lose_and_double_no_large_rows() -> None:
    rows, every = 300, 50
    sent = [np.full(200_000, at, np.uint16) for at in range(rows)]
    with ActorSystem(processes=2) as system:
        graph = entry("rows").map(with_its_place).collect()
        made = system.run(graph, batch_size=2, window=4)
        results = made.results(limit=16)
        sending = threading.Thread(target=made.send, args=("rows", sent))
        sending.start()
        for at in range(rows):
            _, process, array = next(results)
            assert (array == at + 1).all()
            if (at + 1) % every == 0:
                os.kill(process, signal.SIGKILL)
        sending.join()
        made.finish(timeout=60)


def test_a_killed_process_loses_no_state_of_large_rows() -> None:
    def add(state: Any, row: Array) -> tuple[int, Array]:
        return os.getpid(), state[1] + row

    sent = arrays(30, 100_000)
    with ActorSystem(processes=1) as system:
        graph = entry("rows").scan((0, np.zeros(100_000, np.int64)), add).collect()
        made = system.run(graph, batch_size=2)
        results = made.results(limit=2)
        total = 0
        for at in range(0, 30, 2):
            two = [row.copy() for row in sent[at : at + 2]]
            made.send("rows", two)
            for row in sent[at : at + 2]:
                process, array = next(results)
                total += int(row[0])
                assert (array == total).all()
            for row in two:
                row[:] = 99  # after the answer a row may change: the state has copies
            if at % 8 == 0:
                os.kill(process, signal.SIGKILL)
        made.finish(timeout=60)


def test_nonsense_in_an_answer_ends_the_process_and_not_the_program(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sent = [(number, str(tmp_path / "sent")) for number in range(10)]
    with ActorSystem(processes=1) as system:
        graph = entry("rows").map(send_nonsense_once).collect()
        assert run(system, graph, sent, batch_size=3) == [*range(10)]
        assert "it wrote into shared memory what cannot be" in caplog.text
        (array,) = run(system, entry("rows").map(next_of).collect(), arrays(1))
        assert is_in_block(array)


def test_a_fork_of_the_program_keeps_what_it_sees() -> None:
    with ActorSystem(processes=1) as system:
        graph = entry("rows").map(next_of).collect()
        (array,) = run(system, graph, arrays(1))
        assert is_in_block(array)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            os._exit(0 if (array == 1).all() else 1)
        del array
        for _ in range(5):  # the fork's pages are not taken for others
            run(system, graph, arrays(4)[1:], batch_size=1)
        os.write(writing, b"g")
        assert os.waitpid(child, 0)[1] == 0
        os.close(reading)
        os.close(writing)


def test_a_function_may_fork_its_process(system: ActorSystem) -> None:
    graph = entry("rows").map(fork_and_look).collect()
    assert run(system, graph, arrays(10), batch_size=2) == [*range(10)]


# --- messages ------------------------------------------------------------------------------------


@pytest.fixture
def both() -> tuple[MessageBlocks, MessageBlocks]:
    made: list[int] = []
    first, spec = make_blocks(PAGES, made)
    return first, open_blocks(spec)


@pytest.mark.parametrize("size", [10, LARGE - 1, LARGE, LARGE + 1, 100_000])
@pytest.mark.parametrize("encode", [parts_of, parts_in_process])
def test_large_buffers_are_no_part_of_the_message(
    both: tuple[MessageBlocks, MessageBlocks], size: int, encode: Any
) -> None:
    first, second = both
    value = [np.full(size, 3, np.uint8), "text", np.full(size, 4, np.uint8)]
    message = first.message(b"head", encode(value))
    assert (len(message) < 1000 + 2 * size) if size < LARGE else len(message) < 1000
    one, text, two = loads(second.parts(message, 4))
    assert text == "text"
    np.testing.assert_array_equal(one, value[0])
    np.testing.assert_array_equal(two, value[2])


def test_a_large_pickle_has_a_block_too(both: tuple[MessageBlocks, MessageBlocks]) -> None:
    first, second = both
    message = first.message(b"head", parts_of("a" * MEGABYTE))
    assert len(message) < 100
    assert loads(second.parts(message, 4)) == "a" * MEGABYTE


def test_a_class_of_a_function_with_a_large_array_travels_back(
    both: tuple[MessageBlocks, MessageBlocks],
) -> None:
    class Local:
        def __init__(self) -> None:
            self.array = np.full(MEGABYTE, 5, np.uint8)

    first, second = both
    parts = parts_in_process([np.full(MEGABYTE, 4, np.uint8), Local()])
    assert len(parts) == 3
    array, local = loads(second.parts(first.message(b"", parts), 0))
    assert array[0] == 4
    assert local.array[0] == 5


@given(st.binary(max_size=100), st.integers(0, 40), st.integers(0, 5))
def test_a_message_of_nonsense_is_a_value_error(nonsense: bytes, at: int, count: int) -> None:
    made: list[int] = []
    _, spec = make_blocks(PAGES, made)
    second = open_blocks(spec)
    for message in (nonsense, bytes(at) + struct.pack("<I", count) + nonsense):
        try:
            parts = second.parts(message, at)
        except ValueError:
            continue
        for part in parts:
            bytes(part)  # what it says is there can be read


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"\0\0\0", "expected 4 bytes"),
        (struct.pack("<I", 2) + bytes(16), "expected 2 places"),
        (struct.pack("<IQQ", 1, 2**64 - 1, 11) + bytes(10), "expected 11 bytes of a part, got 10"),
        (struct.pack("<IQQ", 1, 1 << 40, 100), "block"),
    ],
)
def test_a_table_that_does_not_fit_its_message_is_a_value_error(message: bytes, said: str) -> None:
    _, spec = make_blocks(PAGES, [])
    second = open_blocks(spec)
    with pytest.raises(ValueError, match=said):
        second.parts(message, 0)
