"""Count words with one actor a partition, and add up what the partitions found.

Run it with `python examples/spark_rows.py`: the actors are defined in the script itself, and Spark
carries them to its worker processes.
"""

from __future__ import annotations

from collections import Counter
from operator import add
from typing import Any

from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import PartitionContext, PartitionEnd, map_partitions, session

LINES = ["the play is the thing", "all the world is a stage", "the rest is silence"] * 1000


class WordCount(Actor[Any]):
    """Counts the words of a partition's lines, and answers its end with the counts."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def receive(self, message: Any) -> Any:
        if isinstance(message, PartitionEnd):
            return self.counts.items()
        for line in message:
            self.counts.update(line.split())
        return None


def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(WordCount, name="words")


def main() -> None:
    spark = session("local[2]")
    lines = spark.sparkContext.parallelize(LINES, 4)
    counts = lines.mapPartitions(map_partitions(build, flush=True)).reduceByKey(add)
    for word, count in sorted(counts.collect(), key=lambda pair: (-pair[1], pair[0]))[:3]:
        print(f"{word:8}{count:6}")
    spark.stop()


if __name__ == "__main__":
    main()
