"""Programs of random messages of their own classes, to a pool whose processes fail and end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 60
PROGRAM = """
import enum, logging, os, random, sys
from collections import Counter
from dataclasses import dataclass
from callboard import Actor, ActorSystem

class Act(enum.Enum):
    ANSWER = 1
    RAISE = 2
    RETURN = 3
    END = 4

@dataclass
class Point:
    act: Act
    number: int

class Plain:
    def __init__(self, act, number):
        self.act, self.number = act, number

class TooFar(Exception):
    pass

def far(): ...

def parts(message):
    match message:
        case Point() | Plain():
            return message.act, message.number
        case TooFar():
            return message.args
        case [kind, act, number] if kind in (far, Plain, Act.ANSWER):
            return act, number

class Mirror(Actor):
    def __init__(self, file):
        self.file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def receive(self, message):
        act, number = parts(message)
        if act is Act.END:
            os._exit(3)
        if act is Act.RAISE:
            raise TooFar(message)
        os.write(self.file, b"%d\\n" % number)
        return type(message) if act is Act.RETURN else message

MAKERS = [Point, Plain, TooFar] + [lambda *a, k=k: [k, *a] for k in (far, Plain, Act.ANSWER)]

def main(file, seed):
    logging.getLogger("callboard").setLevel(logging.CRITICAL + 1)
    chance = random.Random(seed)
    acts = chance.choices([Act.ANSWER, Act.RAISE, Act.RETURN], [3, 2, 1], k=300)
    for number in chance.sample(range(300), 2):
        acts[number] = Act.END
    messages = [chance.choice(MAKERS)(act, number) for number, act in enumerate(acts)]
    letters, asked, cancelled = [], {}, set()
    with ActorSystem(workers=1) as system:
        system.dead_letters.subscribe(letters.append)
        pool = system.pool(Mirror, file, processes=2, pickle=True, supervision="resume")
        at = 0
        while at < len(messages):
            count = chance.choice([1, 1, 5, 30])
            some = messages[at : at + count]
            if count == 5:
                for number, message in enumerate(some, at):
                    asked[number] = pool.ask(message)
                    if chance.random() < 0.2:
                        asked[number].cancel()
                        cancelled.add(number)
            elif count == 1:
                pool.tell(some[0])
            else:
                pool.tell_many(some)
            at += count
        for number, answer in asked.items():
            error = answer.exception(60)
            if error is None:
                value = answer.result(0)
                if acts[number] is Act.RETURN:
                    assert value is type(messages[number]), value
                else:
                    assert type(value) is type(messages[number]), value
                    assert parts(value) == (acts[number], number), value
            else:
                name = type(error).__name__
                assert name in ("RemoteCallError", "ConnectionLost") or number in cancelled, error
        system.drain(60)
    with open(file) as lines:
        handled = Counter(map(int, lines))
    counts = Counter(parts(letter.message)[1] for letter in letters)
    assert max([*handled.values(), *counts.values()]) == 1, counts
    told = {*range(len(messages))} - {*asked}
    failed = {n for n in told if acts[n] in (Act.RAISE, Act.END)}
    assert failed <= {*counts}, failed - {*counts}
    assert told - failed <= {*handled} | {*counts}
    print("all", len(counts), len(handled))

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
"""


@pytest.mark.parametrize("seed", range(2))
def test_each_message_of_a_random_program_has_one_fate(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, str(file), str(tmp_path / "handled"), str(seed)],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ran.stdout.startswith("all "), ran.stderr[-2_000:]
