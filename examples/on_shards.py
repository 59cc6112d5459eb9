"""The demo on several servers: Spark's executors deliver a stream of changes to shards.

Each author's sessions, and each file's count, are the state of one of the servers, which count
every row once. The stream comes in batches, as from a streaming query. At the end the answers are
compared with those of the plain program, and the rate is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from answers import Answers
from callboard.remote import ShardedConnection, connect_sharded
from callboard.spark import deliver, session
from changes import read_changes
from demo import SAMPLE
from on_spark import SCHEMA
from sessions import FileCount, Sessions
from shard_state import TYPES

DEADLINE = 120.0  # seconds
KEYS: dict[str, str | list[str]] = {"authors": "author", "files": ["repo", "path"]}
"""The entry points, and whose state a row belongs to."""
TIME = ("ts", "commit")


@contextmanager
def serving(count: int) -> Generator[list[str]]:
    """Serve `shard_state` as so many shards, and give their addresses."""
    with ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="callboard-shards-"))
        urls = [f"unix:{folder}/{index}" for index in range(count)]
        servers: list[subprocess.Popen[bytes]] = []
        for index, url in enumerate(urls):
            command = [sys.executable, "-m", "callboard", "serve", "shard_state:build"]
            command += ["--types", "shard_state:TYPES", "--bind", url, "--log-level", "WARNING"]
            command += ["--shard", f"{index}/{count}", "--state", f"{folder}/state-{index}"]
            here = Path(__file__).parent
            server = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE)
            ends.callback(server.communicate)
            ends.callback(server.terminate)
            servers.append(server)
        for server in servers:
            assert server.stdout is not None
            server.stdout.readline()  # it says that it serves
        yield urls


def in_batches(spark: SparkSession, path: Path, batches: int, folder: str) -> list[DataFrame]:
    """Return the changes of a file as batches, one after the other in time.

    They lie in a folder as Parquet, so a batch that is delivered again has the same rows. Their
    partitions are ordered by time, and in themselves: servers apply them in their order.
    """
    changes = spark.read.csv(
        str(path), SCHEMA, header=True, enforceSchema=False, mode="FAILFAST", escape='"'
    )
    tenths = [number / batches for number in range(1, batches)]
    bounds = changes.approxQuantile("ts", tenths, 0.001)
    cores = spark.sparkContext.defaultParallelism
    found: list[DataFrame] = []
    for number, (first, last) in enumerate(zip([None, *bounds], [*bounds, None], strict=True)):
        some = changes
        if first is not None:
            some = some.where(some.ts >= int(first))
        if last is not None:
            some = some.where(some.ts < int(last))
        some.write.parquet(f"{folder}/{number}")
        # Spark reads files in an order of its own: the rows are sorted after that.
        kept = spark.read.parquet(f"{folder}/{number}").repartitionByRange(cores, *TIME)
        found.append(kept.sortWithinPartitions(*TIME))
    return found


def send(batches: list[DataFrame], urls: list[str]) -> None:
    """Deliver the batches in their order, and wait until the actors have all of them."""
    for number, batch in enumerate(batches):
        for entry, by in KEYS.items():
            deliver(batch, urls, entry, by=by, job=entry, batch=number)
    with connect_sharded(urls) as connection:
        for shard in connection.shards:
            while (health := shard.health().result(DEADLINE))["unapplied"]:
                if health["trouble"]:
                    raise RuntimeError(health["trouble"])
                time.sleep(0.005)


def answers_of(connection: ShardedConnection) -> Answers:
    """Ask all shards for what they have."""
    answers = Answers()
    for sessions in connection.ref("authors", by="author").ask_all("all"):
        answers.add(sessions.result(DEADLINE))
    for counts in connection.ref("files", by=KEYS["files"]).ask_all("all"):
        answers.add(FileCount(*count) for count in counts.result(DEADLINE))
    return answers


def plainly(path: Path) -> Answers:
    """Return what the plain program finds in a file."""
    answers, sessions = Answers(), Sessions()
    with path.open("rb") as file:
        for change in read_changes(file):
            answers.add(sessions.add([change]))
            answers.files[change.repo, change.path] += 1
    answers.add(sessions.end_all())
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", maxsplit=1)[0])
    parser.add_argument("file", nargs="?", type=Path, default=SAMPLE, help="(the sample)")
    parser.add_argument("--executors", type=int, default=2, help="of one core each (2)")
    parser.add_argument("--servers", type=int, default=2, help="shards (2)")
    parser.add_argument("--batches", type=int, default=4, help="to cut the stream into (4)")
    options = parser.parse_args()
    with ExitStack() as ends:
        spark = session(f"local-cluster[{options.executors},1,1024]", "shards")
        ends.callback(spark.stop)
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="callboard-changes-"))
        batches = in_batches(spark, options.file, options.batches, folder)
        urls = ends.enter_context(serving(options.servers))
        begin = time.perf_counter()
        send(batches, urls)
        seconds = time.perf_counter() - begin
        with connect_sharded(urls, types=TYPES) as connection:
            found = answers_of(connection)
    print(found.render())
    expected = plainly(options.file)
    is_same = found.files == expected.files and sorted(map(repr, found.sessions)) == sorted(
        map(repr, expected.sessions)
    )
    print(f"\nthe plain program finds {'the same' if is_same else 'something else'}")
    print(
        f"{options.executors} executors, {options.servers} servers: {found.changes:,} changes, "
        f"each twice, in {seconds:.1f} s: {2 * found.changes / seconds:,.0f} rows/s"
    )
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
