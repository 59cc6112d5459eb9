"""A summary survives each allocation that fails."""

import gc
import sys

import pytest

from callboard.frequency import SpaceSaving

_testcapi = pytest.importorskip("_testcapi")
pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="which allocation fails was tried on CPython 3.11 only"
)


class Key:
    """An object as a key."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.value == other.value


def add_without_memory(summary: SpaceSaving, key: object, nth: int) -> None:
    """Have the n-th allocation from now on fail."""
    gc.disable()  # a collection reports the failures of its own
    try:
        _testcapi.set_nomemory(nth, nth + 1)
        summary.add(key)
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()
        gc.enable()


@pytest.mark.parametrize("epsilon", [0.001, 0.25])
@pytest.mark.parametrize("nth", range(30))
def test_an_object_that_was_not_added_is_not_referred_to(epsilon: float, nth: int) -> None:
    summary = SpaceSaving(epsilon)
    summary.update(Key(n) for n in range(4))
    add_without_memory(summary, Key(99), nth)
    assert sum(each.count for each in summary) == summary.total in (4, 5)
    summary.add(Key(99))
    assert summary.estimate(Key(99)).count >= 1
    assert len({each.key.value for each in summary}) == len(summary)


@pytest.mark.parametrize("nth", range(60))
def test_keys_that_are_not_kept_as_objects_yet_stay_as_they_are(nth: int) -> None:
    summary = SpaceSaving(0.01)
    summary.update(range(40))
    add_without_memory(summary, 1.5, nth)
    assert sum(each.count for each in summary) == summary.total in (40, 41)
