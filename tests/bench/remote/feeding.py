"""Rows into another process: to a served actor, to a bare socket, to an HTTP server.

A row is an int, a text and a float. `per_core` measures rows for each second of processor time that
both processes took, in place of rows for a second.
"""

import http.client
import json
import time
from collections.abc import Callable
from typing import Any

from remote.processes import other_end, served
from savina.result import Quantity, Result

POST = 1_000  # rows of a request


def rows_of(count: int) -> list[tuple[int, str, float]]:
    return [(1, f"name {number}", number * 0.5) for number in range(count)]


def arrow(count: int, size: int, *, bare: bool) -> Result:
    """Send the same record batch of `size` rows again and again: to callboard, or a bare socket."""
    import pyarrow as pa

    from callboard.remote.protocol.kinds import MessageKind
    from callboard.remote.wire.arrow_ipc import write_batch
    from callboard.remote.wire.frames import frame

    batches = max(1, count // size)
    columns = map(list, zip(*rows_of(size), strict=True))
    batch = pa.RecordBatch.from_pydict(dict(zip("nts", columns, strict=True)))
    if bare:
        data = frame(MessageKind.BATCH, b"\0\0", *map(bytes, write_batch(batch)))
        with other_end("bare", "discard") as end:
            begin = time.perf_counter()
            for _ in range(batches):
                end.sendall(data)
            end.shutdown(1)
            got = int(end.recv(100))
            seconds = time.perf_counter() - begin
        return Result(batches * size, seconds, got, batches * len(data))
    with served() as connection:
        sink = connection.ref("sink")
        sink.send_batch(batch)  # what is imported, is imported
        connection.flush()
        begin = time.perf_counter()
        for _ in range(batches):
            sink.send_batch(batch)
        connection.flush()
        seconds = time.perf_counter() - begin
        got = sink.ask("report").result(10.0)[0]
    return Result(batches * size, seconds, got, (batches + 1) * size)


def msgpack(count: int) -> tuple[float, float, Any]:
    rows = rows_of(count)
    with served() as connection:
        sink = connection.ref("sink")
        spent = sink.ask("report").result(10.0)[2]
        begin, own = time.perf_counter(), time.process_time()
        sink.tell_many(rows)
        connection.flush()
        seconds, own = time.perf_counter() - begin, time.process_time() - own
        *got, all_spent = sink.ask("report").result(10.0)
    return seconds, own + all_spent - spent, got


def post(count: int) -> tuple[float, float, Any]:
    rows = rows_of(count)
    with other_end("http_rows", "-") as control:
        client = http.client.HTTPConnection("127.0.0.1", int(control.recv(5)))
        spent = ask(client, [])[2]
        begin, own = time.perf_counter(), time.process_time()
        for first in range(0, count, POST):
            report = ask(client, rows[first : first + POST])
        seconds, own = time.perf_counter() - begin, time.process_time() - own
        client.close()
    return seconds, own + report[2] - spent, report[:2]


def ask(client: http.client.HTTPConnection, rows: list[Any]) -> Any:
    client.request("POST", "/", json.dumps(rows), {"Content-Type": "application/json"})
    return json.loads(client.getresponse().read())


WAYS: dict[str, Callable[[int], tuple[float, float, Any]]] = {"msgpack": msgpack, "post": post}


def run(
    count: int, by: str = "msgpack", per_core: bool = False, batch: int = 10_000
) -> Result | Quantity:
    if by in ("arrow", "socket"):
        return arrow(count, batch, bare=by == "socket")
    seconds, spent, got = WAYS[by](count)
    if per_core:
        return Quantity(count / spent, got, [count, count])
    return Result(count, seconds, got, [count, count])
