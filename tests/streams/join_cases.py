"""Cases of joins for tests, and their expected outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from callboard.streams import Band, Equal, Stream, entry
from tests.streams.join_model import Row, joined
from tests.streams.test_merge import time_of

HOWS = ["inner", "left", "right", "outer", "semi", "anti"]


@dataclass(frozen=True)
class Choice:
    """A predicate as a user writes it, and what it says of two rows."""

    where: Any
    says: Callable[[Row, Row], object]


CHOICES = [
    Choice(None, lambda left, right: True),
    Choice(Equal("value"), lambda left, right: left.value == right.value),
    Choice(Band("value", 1), lambda left, right: abs(left.value - right.value) <= 1),
    Choice(Equal(3) & Band("number", 2), lambda a, b: a[3] == b[3] and abs(a[1] - b[1]) <= 2),
    Choice(lambda left, right: left.value < right.value, lambda a, b: a.value < b.value),
]


options = st.fixed_dictionaries(
    {
        "how": st.sampled_from(HOWS),
        "rule": st.sampled_from(["strict", "three-step"]),
        "lanes": st.sampled_from([1, 1, 2, 5]),
    }
)


windows = st.one_of(
    st.builds(lambda n: {"within": n}, st.sampled_from([0, 1, 4, 100, (0, 4), (3, 0), (1, 100)])),
    st.builds(lambda n: {"rows": n}, st.sampled_from([1, 2, 50])),
)


def joining(choice: Choice, **options: Any) -> Stream[Any]:
    return entry("a").join(entry("b"), by=time_of, where=choice.where, **options)


def expected(rows: list[Row], choice: Choice, window: dict[str, Any], **options: Any) -> list[Any]:
    names = {"within": "within", "rows": "count"}
    renamed = {names[name]: value for name, value in window.items()}
    options.pop("lanes", None)
    return joined(rows, where=choice.says, **renamed, **options)
