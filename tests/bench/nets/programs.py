"""Nets of pure coordination: filters, cells and combinators alone, which compute with tags.

They are programs of the kind on which Front was measured (Gijsbers and Grelck 2014, "An Efficient
Scalable Runtime System for Macro Data Flow Processing Using S-Net").
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

# A call has the number of a node in a heap: the root is 1, those below a node are 2a and 2a + 1.
FIBONACCI = """
net fibonacci ({<n>} -> {<total>})
{
    net root connect [{<n>} -> {<n>, <at=1>}];
    net calls connect
        [{<n>, <at>} -> if <n <= 1> then {<value=n>, <at>}
                        else {<n=n-1>, <at=2*at>} ; {<n=n-2>, <at=2*at+1>}] * {<value>};
    net sums
    {
        net side connect
            [{<value>, <at>} -> if <at == 1> then {<total=value>}
                                else if <at % 2 == 0> then {<left=value>, <above=at/2>}
                                else {<right=value>, <above=at/2>}];
        net pair connect ([| {<left>}, {<right>} |] * {<left>, <right>}) ! <above>;
        net add connect [{<left>, <right>, <above>} -> {<value=left+right>, <at=above>}];
    }
    connect (side .. ([{<total>} -> {<total>}] | (pair .. add))) \\ {<value>, <at>};
}
connect root .. calls .. sums;
"""

# The sums of a level are a replica of their own.
POWER = """
net power ({<n>} -> {<value>})
{
    net root connect [{<n>} -> {<n>, <at=1>}];
    net twice connect
        [{<n>, <at>} -> if <n == 0> then {<value=1>, <at>}
                        else {<n=n-1>, <at=2*at>} ; {<n=n-1>, <at=2*at+1>}] * {<value>};
    net level
    {
        net side connect
            [{<value>, <at>} -> if <at % 2 == 0> then {<left=value>, <above=at/2>}
                                else {<right=value>, <above=at/2>}];
        net pair connect ([| {<left>}, {<right>} |] * {<left>, <right>}) ! <above>;
        net add connect [{<left>, <right>, <above>} -> {<value=left+right>, <at=above>}];
    }
    connect side .. pair .. add;
}
connect root .. twice .. (level * {<value>, <at>} if <at == 1>) .. [{<value>, <at>} -> {<value>}];
"""

# A stage for each prime. It keeps its prime in a chain of cells: each number that comes meets it
# there, and it goes back to the chain. The first number that it does not divide is the next prime.
SIEVE_CELLS = """
net sieve ({<first>} | {<k>, <top>} -> {<prime>})
{
    net count connect
        [{<k>, <top>} -> if <k < top> then {<n=k>} ; {<k=k+1>, <top>} else {<n=k>}] \\ {<k>};
    net stage
    {
        net begin connect [{<first>} -> {<prime=first>} ; {<p=first>, <fresh=1>}];
        net divide connect
            [{<p>, <fresh>, <n>} -> if <n % p == 0> then {<p>, <fresh>}
                                    else if <fresh == 1> then {<p>, <fresh=0>} ; {<first=n>}
                                    else {<p>, <fresh>} ; {<rest=n>}];
        net meet connect (([| {<p>}, {<n>} |] * {<p>, <n>}) .. divide) \\ {<p>}, {<n>};
        net end connect [{<rest>} -> {<n=rest>}];
    }
    connect (begin | []) .. ([{<prime>} -> {<prime>}] | meet) .. (end | []);
}
connect (count | [{<first>} -> {<first>}]) .. (stage * {<prime>});
"""

# One loop, and in it the cells of each prime by its number.
SIEVE_FEEDBACK = """
net sieve ({<first>} | {<k>, <top>} -> {<prime>})
{
    net count connect
        [{<k>, <top>} -> if <k < top> then {<n=k>, <i=0>} ; {<k=k+1>, <top>} else {<n=k>, <i=0>}]
        \\ {<k>};
    net begin connect [{<first>, <i>} -> {<prime=first>} ; {<p=first>, <fresh=1>, <i>}];
    net divide connect
        [{<p>, <fresh>, <n>, <i>} ->
            if <n % p == 0> then {<p>, <fresh>, <i>}
            else if <fresh == 1> then {<p>, <fresh=0>, <i>} ; {<first=n>, <i=i+1>}
            else {<p>, <fresh>, <i>} ; {<n>, <i=i+1>}];
    net cells connect ([| {<p>}, {<n>} |] * {<p>, <n>}) ! <i>;
}
connect (count | [{<first>} -> {<first>, <i=0>}])
     .. (((begin | []) .. ([{<prime>} -> {<prime>}] | (cells .. divide)))
         \\ {<p>, <i>}, {<n>, <i>}, {<first>, <i>});
"""

Row = dict[str, int]


@dataclass(frozen=True)
class Program:
    """A net's text, what goes in for a size, what comes out, and how many operations that is."""

    text: str
    rows: Callable[[int], list[Row]]
    answers: Callable[[int], list[int]]  # what comes out
    operations: Callable[[int], int]
    kept: Callable[[int], int] = lambda n: 0  # records that stay in cells: they are dead letters


def fibonacci(n: int) -> int:
    """Return a Fibonacci number."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def primes(top: int) -> list[int]:
    """Return the primes up to a number."""
    sieve = bytearray([0, 0]) + bytearray([1]) * (top - 1)
    for number in range(2, isqrt(top) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(sieve[number * number :: number]))
    return [number for number, is_prime in enumerate(sieve) if is_prime]


def divisions(top: int) -> int:
    """Return how often the sieve divides a number by a prime."""
    known = primes(top)
    number_of = {prime: number for number, prime in enumerate(known)}
    least = list(range(top + 1))  # the least factor of each number
    for prime in known[: len(primes(isqrt(top)))]:
        for multiple in range(prime * prime, top + 1, prime):
            if least[multiple] == multiple:
                least[multiple] = prime
    return sum(number_of[least[n]] + (least[n] != n) for n in range(2, top + 1))


def calls(n: int) -> int:
    """Return how often a Fibonacci function that knows no number is called."""
    return 2 * fibonacci(n + 1) - 1


def of_sieve(text: str) -> Program:
    def rows(top: int) -> list[Row]:
        return [{"first": 2}, {"k": 3, "top": top}]

    return Program(text, rows, primes, divisions, lambda top: len(primes(top)))


PROGRAMS = {
    "fibonacci": Program(FIBONACCI, lambda n: [{"n": n}], lambda n: [fibonacci(n)], calls),
    "power": Program(POWER, lambda n: [{"n": n}], lambda n: [2**n], lambda n: 2 ** (n + 1) - 1),
    "sieve_cells": of_sieve(SIEVE_CELLS),
    "sieve_feedback": of_sieve(SIEVE_FEEDBACK),
}


def summary(numbers: list[int]) -> list[int]:
    """Return how many there are, and their sum."""
    return [len(numbers), sum(numbers)]


def values(outputs: list[Any]) -> list[int]:
    """Return the only value of each output."""
    return [value for output in outputs for value in output.values()]
