"""Run the benchmarks: every competitor in turn, round by round, each in a separate process.

    python tests/bench/run.py [--only NAME ...] [--rounds N] [--smoke] [--json F] [--picture F]
                              [--workers N ...] [--threading MODEL ...]

Prints a table for each benchmark, and at the end how each target was met. `--smoke` plays each once
at a tiny size, with few competitors: it shows that all of them work, and says nothing about speed.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import judging
import report
from calling_suite import CALLING
from channel_suite import CHANNELS
from competitor import Benchmark, Competitor, Score
from elastic_suite import ELASTIC
from frequency_suite import FREQUENCY
from join_suite import JOINS
from loading_suite import LOADING
from nets_suite import NETS
from nexmark_suite import NEXMARK
from processes_suite import PROCESSES
from remote_suite import REMOTE
from stream_suite import STREAMS, Plan
from suite import BENCHMARKS
from workers_suite import WORKERS

PLANNED = STREAMS | WORKERS | ELASTIC | LOADING  # those that know of numbers of workers
SINGLE = BENCHMARKS | CALLING | CHANNELS | FREQUENCY | JOINS | NETS | NEXMARK | PROCESSES | REMOTE
ALL = (*SINGLE, *PLANNED)
GROUPS = {
    "streams": (*STREAMS,),
    "workers": (*WORKERS, "idle"),
    "channels": (*CHANNELS,),
    "frequency": (*FREQUENCY,),
    "joins": (*JOINS,),
    "nets": (*NETS,),
    "nexmark": (*NEXMARK,),
    "compared": (*NEXMARK, *LOADING, *CALLING),
    "processes": (*PROCESSES, *CALLING),
    "remote": (*REMOTE,),
    "elastic": (*ELASTIC,),
}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=(*GROUPS, *ALL), metavar="NAME", default=[],
                        help=f"some of {', '.join(ALL)}; or all {', '.join(GROUPS)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=5, help="how often each competitor runs")
    parser.add_argument("--smoke", action="store_true", help="one round at a tiny size")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2],
                        help="how many workers the groups get")  # fmt: skip
    parser.add_argument("--threading", nargs="+", metavar="MODEL", default=[],
                        help="play `workers` under these models, beside the default")  # fmt: skip
    parser.add_argument("--json", type=Path, help="write all values to this file")
    parser.add_argument("--picture", type=Path, help="draw the medians to this .svg or .png file")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {options.rounds}")
    if min(options.workers) < 1:
        parser.error(f"--workers must be at least 1, not {min(options.workers)}")
    return options


def play(benchmark: Benchmark, rounds: int) -> report.Scores:
    """Run all competitors `rounds` times; whoever begins a round ends the next."""
    scores = {each.name: Score() for each in benchmark.competitors}
    players = list(benchmark.competitors)
    for number in range(rounds):
        for player in players[number % len(players) :] + players[: number % len(players)]:
            show(f"{benchmark.name}, round {number + 1} of {rounds}: {player.name}")
            scores[player.name].samples.append(player.run())
    show("")
    return scores


def chosen(names: Sequence[str]) -> list[str]:
    """Return the benchmarks that were asked for, each once."""
    return list(dict.fromkeys(each for name in names or ALL for each in GROUPS.get(name, (name,))))


def make(name: str, options: argparse.Namespace) -> Benchmark:
    if name in PLANNED:
        return PLANNED[name](Plan(options.smoke, options.workers, options.threading))
    return SINGLE[name](options.smoke)


def few(competitors: Sequence[Competitor], turn: int) -> list[Competitor]:
    """Return the first and the last of ours, a floor, and one of the peers, another each turn."""
    ours, peers, floors = (
        [each for each in competitors if each.role == role] for role in ("ours", "peer", "floor")
    )
    able = [each for each in peers if not each.absent]
    wanted = [*ours[:1], *ours[-1:], *able[turn % max(1, len(able)) :][:1], *floors[:1]]
    return [each for each in competitors if each in wanted]


def show(note: str) -> None:
    """Say on a terminal what goes on, in one line that the next one overwrites."""
    if sys.stderr.isatty():
        print(f"\r\033[K{note}", end="", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; return 1 if a competitor failed. A missed target is no failure."""
    options = parse(arguments)
    if options.picture:  # if matplotlib, of the extra `bench`, is missing, say so before the run
        from picture import draw
    rounds = 1 if options.smoke else options.rounds
    results: dict[str, report.Scores] = {}
    document = {"machine": report.machine(), "rounds": rounds, "smoke": options.smoke}
    sections = document["benchmarks"] = {}
    for turn, name in enumerate(chosen(options.only)):
        benchmark = make(name, options)
        if options.smoke:
            benchmark = replace(benchmark, competitors=few(benchmark.competitors, turn))
        results[name] = play(benchmark, rounds)
        sections[name] = report.as_json(benchmark, results[name])
        print(report.section(benchmark, results[name]), flush=True)
    if not options.smoke:
        verdicts = judging.judge(results)
        document["targets"] = [vars(verdict) for verdict in verdicts]
        print(judging.section(verdicts))
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.picture:
        draw(document, options.picture)
    failures = [
        f"{benchmark}: {name}: {score.error}"
        for benchmark, scores in results.items()
        for name, score in scores.items()
        if score.error
    ]
    for failure in failures:
        print("ERROR:", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
