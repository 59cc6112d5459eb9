"""Running a test under many seeds."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from callboard import Actor, ActorRef
from callboard.testing import ManualSystem, replay


class Racer(Actor[str]):
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def receive(self, message: str) -> None:
        self.log.append(message)


def winner_is_a(seed: int) -> None:
    """Holds under some seeds only."""
    log: list[str] = []
    with ManualSystem(seed) as system:
        racers: list[ActorRef[str]] = [system.spawn(Racer, log) for _ in range(2)]
        racers[0].tell("a")
        racers[1].tell("b")
        system.run_until_idle()
        assert log[0] == "a"


def fails_under(seed: int) -> bool:
    try:
        winner_is_a(seed)
    except AssertionError:
        return True
    return False


first_bad = next(seed for seed in range(100) if fails_under(seed))


def test_every_seed_is_run() -> None:
    seen: list[int] = []
    replay(seeds=4)(lambda seed: seen.append(seed))()
    replay(seeds=[7, 5])(lambda seed: seen.append(seed))()
    assert seen == [0, 1, 2, 3, 7, 5]


async def of_a_coroutine(seed: int) -> None:
    raise AssertionError("nobody runs this")


def of_a_generator(seed: int) -> Iterator[None]:
    yield


async def of_an_async_generator(seed: int) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize("test", [of_a_coroutine, of_a_generator, of_an_async_generator])
def test_a_test_of_which_a_call_runs_nothing_is_refused(test: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match=f"expected a plain function, got {test.__name__}"):
        replay(seeds=3)(test)


def test_a_failure_says_how_to_rerun_its_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError) as caught:
        replay(seeds=100)(winner_is_a)()
    *_, sentence, command = caught.value.__notes__
    assert sentence == f"Failed with seed {first_bad}. To rerun it alone:"
    assert command == (
        f"CALLBOARD_SEED={first_bad} pytest 'tests/testing/test_replay.py"
        "::test_a_failure_says_how_to_rerun_its_seed_alone'"
    )

    seen: list[int] = []
    monkeypatch.setenv("CALLBOARD_SEED", str(first_bad))

    def test(seed: int) -> None:
        seen.append(seed)
        winner_is_a(seed)

    with pytest.raises(AssertionError):
        replay(seeds=100)(test)()
    assert seen == [first_bad]


def test_outside_of_pytest_the_test_is_named_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    with pytest.raises(AssertionError) as caught:
        replay(seeds=100)(winner_is_a)()
    assert caught.value.__notes__[-1].endswith("test_replay.py::winner_is_a'")


def test_a_seed_in_the_environment_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLBOARD_SEED", "many")
    with pytest.raises(ValueError, match="CALLBOARD_SEED must be a whole number, got 'many'"):
        replay()(winner_is_a)()


def test_a_test_without_a_seed_is_refused() -> None:
    with pytest.raises(TypeError, match="has no parameter `seed`"):
        replay()(lambda: None)


def test_replay_without_parentheses_is_refused_with_how_to_write_it() -> None:
    with pytest.raises(TypeError, match=r"got the test winner_is_a: write @replay\(\)"):
        replay(winner_is_a)  # type: ignore[arg-type]


def test_no_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        replay(seeds=0)


def test_the_decorated_test_hides_its_seed_and_keeps_the_rest() -> None:
    def test(tmp_path: object, seed: int, number: int = 3) -> None:
        """Its sentence."""

    wrapped = replay()(test)
    assert list(inspect.signature(wrapped).parameters) == ["tmp_path", "number"]
    assert (wrapped.__name__, wrapped.__doc__) == ("test", "Its sentence.")


@replay(seeds=3)
@pytest.mark.parametrize("number", [1, 2])
def test_fixtures_and_parameters_work_as_usual(
    number: int, seed: int, root: object, request: pytest.FixtureRequest
) -> None:
    assert number in (1, 2)
    assert seed in range(3)
    assert request.node.name == f"test_fixtures_and_parameters_work_as_usual[{number}]"
