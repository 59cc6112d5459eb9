"""Answer one of the queries, print the first rows of the answer, and say how fast it was.

The rows are about a made-up shop, or, with --changes, file changes that were read from a file. They
are all there before the clock starts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from callboard import ActorSystem
from tpcxbb import changes, queries, questions, sequential
from tpcxbb.generator import Shop
from tpcxbb.questions import QUERIES, Question

SAMPLE = Path(__file__).parents[1] / "data" / "changes-sample.csv.gz"
POLICIES = ("queue_size_throttling", "last_in_pipeline", "estimated_time", "current_throughput")

Answer = list[tuple[Any, ...]]


@dataclass
class Task:
    """A question and the rows of its stream; a shop if it is about one."""

    question: Question
    rows: list[Any]
    shop: Shop | None = None


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        task = changes_task(options) if options.changes else shop_task(options)
        answer, seconds = ANSWERS[options.program](task, options)
    except ImportError as error:
        return fail(f"{error}; pip install 'callboard[spark]', or leave out --program")
    except (OSError, ValueError) as error:
        return fail(error)
    print(task.question.title)
    show(sequential.COLUMNS[options.query], answer[: options.top])
    if len(answer) > options.top:
        print(f"  and {len(answer) - options.top:,} more")
    print(f"\n{len(task.rows):,} rows in {seconds:.2f} s, {len(task.rows) / seconds:,.0f} rows/s")
    return 0


def fail(reason: object) -> int:
    print(f"run: {reason}", file=sys.stderr)
    return 2


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run.py", description=str(__doc__).split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--query", type=int, choices=QUERIES, default=4, help="default: 4")
    parser.add_argument(
        "--program", choices=ANSWERS, default="graph", help="who answers it (default: graph)"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        help="workers of the actor system, or Spark's cores (default: this machine's cores)",
    )
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default="current_throughput",
        help="how the graph's workers choose an operator (default: current_throughput)",
    )
    parser.add_argument(
        "--scale", type=float, default=0.01, help="the benchmark's scale factor (default: 0.01)"
    )
    parser.add_argument("--days", type=int, default=28, help="days of the shop (default: 28)")
    parser.add_argument("--seed", type=int, default=1, help="which shop to make up (default: 1)")
    parser.add_argument(
        "--changes",
        nargs="?",
        type=Path,
        const=SAMPLE,
        help="ask about file changes, those of a .csv or .csv.gz or of the sample",
    )
    parser.add_argument("--top", type=int, default=10, help="rows to print (default: 10)")
    options = parser.parse_args(arguments)
    if options.changes and options.program == "spark":
        parser.error("the SQL is about the shop, not about file changes")
    return options


def shop_task(options: argparse.Namespace) -> Task:
    shop = Shop(options.scale, options.seed, options.days)
    question = questions.about(shop)[options.query]
    print("making rows", file=sys.stderr)
    rows = shop.clicks() if question.stream == "web_clickstreams" else shop.sales()
    return Task(question, list(rows), shop)


def changes_task(options: argparse.Namespace) -> Task:
    with options.changes.open("rb") as file:
        rows = list(changes.read_changes(file))
    return Task(changes.about(rows)[options.query], rows)


def ask_graph(task: Task, options: argparse.Namespace) -> tuple[Answer, float]:
    """Run the query's graph in an actor system; its start and stop do not count."""
    graph = queries.graph(options.query, task.question)
    with ActorSystem("tpcxbb", workers=options.workers) as system:
        start = time.perf_counter()
        run = system.run(graph, policy=options.policy)
        run.send(task.question.stream, task.rows)
        return run.finish(), time.perf_counter() - start


def ask_sequential(task: Task, options: argparse.Namespace) -> tuple[Answer, float]:
    start = time.perf_counter()
    answer = sequential.answer(options.query, task.question, task.rows)
    return answer, time.perf_counter() - start


def ask_spark(task: Task, options: argparse.Namespace) -> tuple[Answer, float]:
    """Ask Spark SQL; the tables are loaded before the clock starts."""
    from on_spark import running_spark
    from tpcxbb import spark_sql

    assert task.shop is not None
    with running_spark(cores=options.workers) as spark:
        spark_sql.load(spark, task.question.stream, task.rows)
        spark_sql.load(spark, "item", task.shop.items)
        spark_sql.load(spark, "web_page", task.shop.pages)
        start = time.perf_counter()
        return spark_sql.answer(spark, options.query), time.perf_counter() - start


ANSWERS = {"graph": ask_graph, "sequential": ask_sequential, "spark": ask_spark}


def show(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Print a table: numbers set right, all else left."""
    cells = [[text_of(cell) for cell in row] for row in rows]
    numbers = (
        [isinstance(cell, int | float) for cell in rows[0]] if rows else [False] * len(columns)
    )
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in [columns, *cells]:
        fitted = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numbers, strict=True)
        )
        print(f"  {'  '.join(fitted)}".rstrip())


def text_of(cell: object) -> str:
    if isinstance(cell, tuple):  # a file: repository and path
        return "/".join(cast("tuple[str, ...]", cell))
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
