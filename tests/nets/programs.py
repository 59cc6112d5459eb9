"""Whole programs as terms and as texts, with the results of plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from callboard.nets.terms.network import Net, RecordFilter
from tests.nets.making import box, cell, choosing, feedback, filtering, only, serial, split, star

Records = list[dict[str, Any]]


@dataclass(frozen=True)
class Program:
    """A net, written twice, and a run of it. Outputs are in order if the net is ordered."""

    name: str
    net: Net
    text: str
    records: Records
    outputs: Records
    leftovers: Records = field(default_factory=list)
    boxes: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.name


# Fibonacci: each call for a number becomes two, which share its weight. An accumulator, which cells
# pass from one replica to the next, adds the leaves up; it is done when it has all the weight.

WHOLE = 2**40


def fibonacci(numbers: list[int]) -> Program:
    down = choosing(
        "<n> <w>",
        ("n < 2", ["<v=n>", "<w>"]),
        (None, ["<n=n - 1>", "<w=w // 2>"], ["<n=n - 2>", "<w=w // 2>"]),
    )
    added = filtering("<sum> <have> <v> <w>", ["<sum=sum + v>", "<have=have + w>"])
    adding = serial(cell("<sum> <have>", "<v> <w>"), added | RecordFilter())
    body = serial(
        filtering("<n>", ["<n>", f"<w={WHOLE}>"], ["<sum>", "<have>"]),
        star(down, "<v>", "<sum>"),
        star(adding, only("<sum> <have>", f"have == {WHOLE}")),
        filtering("<sum> <have>", ["<result=sum>"]),
    )
    text = f"""
    net fibonacci
    {{
      net down connect [{{<n>, <w>}} -> if <n < 2> then {{<v=n>, <w>}}
                                        else {{<n=n-1>, <w=w/2>}} ; {{<n=n-2>, <w=w/2>}}];
      net added connect [{{<sum>, <have>, <v>, <w>}} -> {{<sum=sum+v>, <have=have+w>}}];
      net adding connect [| {{<sum>, <have>}}, {{<v>, <w>}} |] .. (added | []);
      net one connect [{{<n>}} -> {{<n>, <w={WHOLE}>}} ; {{<sum>, <have>}}]
                      .. down * {{<v>}}, {{<sum>}}
                      .. adding * {{<sum>, <have>}} if <have == {WHOLE}>
                      .. [{{<sum>, <have>}} -> {{<result=sum>}}];
    }}
    connect one ! <id>;
    """

    def number(n: int) -> int:
        return n if n < 2 else number(n - 1) + number(n - 2)

    return Program(
        "fibonacci",
        split(body, "<id>"),
        text,
        [{"<n>": n, "<id>": at} for at, n in enumerate(numbers)],
        [{"<result>": number(n), "<id>": at} for at, n in enumerate(numbers)],
    )


def powers_of_two(exponents: list[int]) -> Program:
    twice = choosing("<n>", ("n > 0", ["<n=n - 1>"], ["<n=n - 1>"]), (None, ["<leaf>"]))
    return Program(
        "powers of two",
        star(twice, "<leaf>"),
        """
        net powers connect
          [{<n>} -> if <n > 0> then {<n=n-1>} ; {<n=n-1>} else {<leaf>}] * {<leaf>};
        """,
        [{"<n>": n, "<of>": n} for n in exponents],
        [{"<leaf>": 0, "<of>": n} for n in exponents for _ in range(2**n)],
    )


# The sieve: the first number that reaches a stage is its prime. It waits there in a chain of cells
# for the further numbers, and lets those through that it does not divide.


def seed() -> int:
    return 1


def primes(limit: int) -> list[int]:
    return [n for n in range(2, limit + 1) if all(n % d for d in range(2, n))]


def sieve_of_cells(limit: int) -> Program:
    first = filtering("<n> <seed>", ["<prime=n>"], ["<found=n>"])
    tested = choosing(
        "<prime> <n>", ("n % prime != 0", ["<prime>"], ["<n>", "<pass>"]), (None, ["<prime>"])
    )
    stage = serial(
        box(None, "<seed>", seed) | RecordFilter(),
        cell("<n>", "<seed>"),
        first | RecordFilter(),
        star(
            serial(cell("<prime>", "<n>"), tested | RecordFilter()),
            "<pass>",
            "<found>",
            "<seed>",
            ordered=True,
        ),
        filtering("<n> <pass>", ["<n>"]) | RecordFilter(),
    )
    return Program(
        "sieve of cells",
        star(stage, "<found>", ordered=True),
        """
        net sieve
        {
          box seed (-> (<seed>));
          net first connect [{<n>, <seed>} -> {<prime=n>} ; {<found=n>}];
          net tested connect [{<prime>, <n>} -> if <n % prime != 0> then {<prime>} ; {<n>, <pass>}
                                                else {<prime>}];
          net chain connect ([| {<prime>}, {<n>} |] .. (tested | []))
                            ** {<pass>}, {<found>}, {<seed>};
          net stage connect (seed | []) .. [| {<n>}, {<seed>} |] .. (first | []) .. chain
                            .. ([{<n>, <pass>} -> {<n>}] | []);
        }
        connect stage ** {<found>};
        """,
        [{"<n>": n} for n in range(2, limit + 1)],
        [{"<found>": n} for n in primes(limit)],
        [{"<prime>": n} for n in primes(limit)],
        {"seed": seed},
    )


def sifts(numbers: list[int]) -> Iterator[dict[str, Any]]:
    first, *others = numbers
    yield {"prime": first}
    if rest := [n for n in others if n % first]:
        yield {"numbers": rest}


def sieve_with_feedback(limit: int) -> Program:
    return Program(
        "sieve with feedback",
        feedback(box("numbers", "<prime> | numbers", sifts), "numbers"),
        r"""
        net sieve { box sifts ((numbers) -> (<prime>) | (numbers)); } connect sifts \ {numbers};
        """,
        [{"numbers": list(range(2, limit + 1)), "s": "surplus"}],
        [{"<prime>": n, "s": "surplus"} for n in primes(limit)],
        boxes={"sifts": sifts},
    )


def falls(a: int) -> dict[str, int]:
    return {"A": a - 1} if a else {"B": a}


def deep_replication(depths: list[int]) -> Program:
    """Prokesch 2011, 6.1.1."""
    return Program(
        "deep replication",
        star(box("A", "A | B", falls), "B", ordered=True),
        "net deep { box falls ((A) -> (A) | (B)); } connect falls ** {B};",
        [{"A": depth, "<id>": at} for at, depth in enumerate(depths)],
        [{"B": 0, "<id>": at} for at in range(len(depths))],
        boxes={"falls": falls},
    )


def synchronisation_pipeline(times: int, distance: int = 5) -> Program:
    """Prokesch 2011, 6.1.2."""
    rounds = [range(at * distance, (at + 1) * distance) for at in range(times)]
    return Program(
        "synchronisation pipeline",
        star(cell("A", "B"), "A B", ordered=True),
        "net synchro connect [| {A}, {B} |] ** {A, B};",
        [{label: n} for numbers in rounds for label in "AB" for n in numbers],
        [{"A": n, "B": n} for numbers in rounds for n in numbers],
    )


def adds(state: int, x: int) -> Iterator[dict[str, int]]:
    yield {"state": state + x}
    yield {"total": state + x}


def running_total(numbers: list[int]) -> Program:
    """A state that cells carry from one input to the next."""
    adding = serial(cell("state", "x"), box("state x", "state | total", adds) | RecordFilter())
    return Program(
        "running total",
        star(adding, "total", ordered=True),
        """
        net totals
        {
          box adds ((state, x) -> (state) | (total));
        }
        connect ([| {state}, {x} |] .. (adds | [])) ** {total};
        """,
        [{"state": 0}, *({"x": n} for n in numbers)],
        [{"total": total} for total in accumulate(numbers)],
        [{"state": sum(numbers)}],
        {"adds": adds},
    )


def join_by_id(ids: int) -> Program:
    """Pages come in order and prices in the other; each has a surplus label."""
    pages = [{"page": f"page {at}", "<id>": at, "from": "pages"} for at in range(ids)]
    prices = [{"price": at * 10, "<id>": at, "from": "prices"} for at in reversed(range(ids))]
    return Program(
        "join by id",
        split(star(cell("page", "price"), "page price"), "<id>", ordered=True),
        "net joined connect ([| {page}, {price} |] * {page, price}) !! <id>;",
        [*pages, {"page": "unpaired", "<id>": ids}, *prices],
        [page | {"price": at * 10} for at, page in reversed(list(enumerate(pages)))],
        [{"page": "unpaired", "<id>": ids}],
    )


PROGRAMS = [
    fibonacci([7, 0, 1, 10]),
    powers_of_two([0, 3, 5]),
    sieve_of_cells(30),
    sieve_with_feedback(40),
    deep_replication([30, 0, 100]),
    synchronisation_pipeline(3),
    running_total([3, -1, 4, 1, 5]),
    join_by_id(4),
]
ORDERED = {
    "sieve of cells",
    "deep replication",
    "synchronisation pipeline",
    "running total",
    "join by id",
}
"""The programs whose combinators are all deterministic."""
