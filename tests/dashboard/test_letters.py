"""Dead letters that are kept for observers."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from callboard import ActorRef, ActorSystem
from callboard.core.text import short_repr
from callboard.dashboard import serve_dashboard
from callboard.observing import kept_dead_letters
from callboard.observing.kept_dead_letters import MOST_LETTERS, KeptDeadLetters
from tests.dashboard.asking import get, picture
from tests.observing.actors import Box


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Heavy:
    pass


@dataclass
class Order:
    articles: list[int]
    note: str


def gone_of(system: ActorSystem) -> ActorRef[Any]:
    gone = system.spawn(Box, name="gone")
    gone.stop()
    gone.ended.result(30)
    return gone


def test_the_latest_come_first_and_a_repr_that_raises_is_named() -> None:
    with ActorSystem("shop", workers=1) as system:
        url = serve_dashboard(system).url
        gone = gone_of(system)
        for message in (*range(MOST_LETTERS + 5), Mute()):
            gone.tell(message)
        assert picture(url)["kept"] == []
        found = picture(url, letters=1)["kept"]
    assert found[0]["message"] == "<Mute, whose repr() raised RuntimeError>"
    assert [one["message"] for one in found[1:3]] == ["104", "103"]
    assert {(one["to"], one["reason"], one["sender"]) for one in found} == {
        ("/gone", "stopped", None)
    }
    assert 0 < len(found) <= MOST_LETTERS


def test_a_message_is_let_go_when_it_was_shown() -> None:
    with ActorSystem("shop", workers=1) as system:
        url = serve_dashboard(system).url
        gone, message = gone_of(system), Heavy()
        there = weakref.ref(message)
        gone.tell(message)
        del message
        gc.collect()
        assert there() is not None
        assert "Heavy" in picture(url, letters=1)["kept"][0]["message"]
        gc.collect()
        assert there() is None
        assert "Heavy" in picture(url, letters=1)["kept"][0]["message"]


def test_two_observers_that_look_at_once_see_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = KeptDeadLetters()

    def second_look(value: object) -> str:
        monkeypatch.undo()
        assert letters.latest(1)[0]["message"] == "7"
        return short_repr(value)

    with ActorSystem("shop", workers=1) as system:
        letters.keep(7, gone_of(system), None, "stopped", None)
        monkeypatch.setattr(kept_dead_letters, "short_repr", second_look)
        assert letters.latest(1)[0]["message"] == "7"
        assert letters.latest(1)[0]["message"] == "7"


def test_a_system_that_cannot_be_observed_keeps_no_letters() -> None:
    with ActorSystem("shop", workers=1) as system:
        gone, message = gone_of(system), Heavy()
        there = weakref.ref(message)
        gone.tell(message)
        del message
        gc.collect()
        assert there() is None
        url = serve_dashboard(system).url
        assert picture(url, letters=1)["kept"] == []
        gone.tell(2)
        assert [one["message"] for one in picture(url, letters=1)["kept"]] == ["2"]


def test_an_error_is_shown_with_a_failed_message() -> None:
    with ActorSystem("shop", workers=1) as system:
        url = serve_dashboard(system).url
        system.spawn(Box, name="box").tell("fail")
        system.drain(60)
        (found,) = picture(url, letters=1)["kept"]
    assert (found["message"], found["error"]) == ("'fail'", "ValueError: fail")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([*range(1000)], "[0, 1, 2, 3, 4, 5, 6, 7, ...]"),
        ({1: [2], 3: (4,)}, "{1: [2], 3: (4,)}"),
        (dict.fromkeys(range(9)), f"{{{', '.join(f'{i}: None' for i in range(8))}, ...}}"),
        ({5}, "{5}"),
        (set(), "set()"),
        (frozenset({5}), "frozenset({5})"),
        (Order([*range(100)], "a"), "Order(articles=[0, 1, 2, 3, 4, 5, 6, 7, ...], note='a')"),
        ([[[[[1]]]]], "[[[[...]]]]"),
        (None, "None"),
        ([Mute()], "[<Mute, whose repr() raised RuntimeError>]"),
        (Order, repr(Order)),
    ],
)
def test_a_short_repr_has_the_first_items(value: object, text: str) -> None:
    assert short_repr(value) == text


@pytest.mark.parametrize("value", ["x" * 10**6, b"x" * 10**6, bytearray(10**6), [["y" * 900] * 9]])
def test_a_short_repr_is_bounded(value: object) -> None:
    assert len(short_repr(value)) <= 400


@pytest.mark.parametrize("branches", ["0", "0:", "0:x", "0:401", "1:-1"])
def test_wrong_branches_are_refused(branches: str) -> None:
    with ActorSystem("shop", workers=1) as system:
        url = serve_dashboard(system).url
        assert get(url, f"picture?most=1&branches={branches}")[0] == 400
