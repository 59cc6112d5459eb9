"""Running a test with many seeds."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any

from callboard.core import checks

# The environment variable that reruns one seed.
VARIABLE = "CALLBOARD_SEED"


def replay(seeds: int | Iterable[int] = 20) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Run the decorated test once for each seed, passed as its parameter `seed`.

    `seeds` are the seeds, or how many to use from 0 on. A failure has a note with the command that
    reruns only the failed seed:

        CALLBOARD_SEED=17 pytest 'tests/test_shop.py::test_a_cart_is_sold_once'

    With pytest, fixtures and parameters of the test work as usual, but all seeds share their
    values. Raises TypeError without the parentheses, if the test has no parameter `seed`, or if
    calling it would run nothing because it is `async def` or a generator.
    """
    if callable(seeds) and not isinstance(seeds, Iterable):
        name = getattr(seeds, "__qualname__", type(seeds).__qualname__)
        raise TypeError(f"replay() expected seeds, got the test {name}: write @replay()")
    if not isinstance(seeds, Iterable):
        seeds = range(checks.whole("seeds", seeds, 0))
    chosen = tuple(checks.whole("a seed", seed, -(2**63), 2**64 - 1) for seed in seeds)
    if not chosen:
        raise ValueError("replay() expects at least one seed")

    def decorate(test: Callable[..., Any]) -> Callable[..., None]:
        signature = inspect.signature(test)
        if "seed" not in signature.parameters:
            raise TypeError(f"{test.__qualname__} has no parameter `seed`, which replay() gives it")
        for is_not_run in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
        ):
            if is_not_run(test):
                raise TypeError(
                    f"replay() expected a plain function, got {test.__qualname__}, of which a call "
                    "runs nothing: call asyncio.run() in a plain test"
                )

        @functools.wraps(test)
        def run_each(*args: Any, **kwargs: Any) -> None:
            for seed in _only() or chosen:
                try:
                    test(*args, seed=seed, **kwargs)
                except BaseException as error:  # pytest.fail() raises no Exception
                    error.add_note(f"Failed with seed {seed}. To rerun it alone:")
                    error.add_note(_command(test, seed))
                    raise

        others = [p for name, p in signature.parameters.items() if name != "seed"]
        # The signature in which pytest looks for fixtures, without the seed, which is not one.
        run_each.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run_each

    return decorate


def _only() -> tuple[int, ...]:
    """Return the seed that the environment asks for, if it does."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return ()
    try:
        return (int(text, 0),)
    except ValueError:
        raise ValueError(f"{VARIABLE} must be a whole number, got {text!r}") from None


def _command(test: Callable[..., Any], seed: int) -> str:
    node = os.environ.get("PYTEST_CURRENT_TEST", "").rsplit(" (", 1)[0]
    node = node or f"{inspect.getsourcefile(test)}::{test.__qualname__.replace('.', '::')}"
    return f"{VARIABLE}={seed} pytest '{node}'"
