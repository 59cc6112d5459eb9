"""A box is a function with a signature: by text, or by the hints of its parameters and results."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, NotRequired, TypedDict, cast

import pytest

from callboard.nets import Box, NetSyntaxError, Tag, box
from callboard.nets.language.parsing import parse_box_signature


@dataclass
class Question:
    text: str
    attempt: Tag
    hints: list[str] = field(default_factory=list)


class Answer(TypedDict):
    answer: str
    sure: NotRequired[Tag]


def of_a_pair(question: str, attempt: Tag) -> Answer: ...  # type: ignore[empty-body]


def nothing(x: object) -> None: ...


def two_outputs(question: str, attempt: Tag) -> Question | Answer | None: ...


def unhinted(x, y=1, *, z=2):  # type: ignore[no-untyped-def]
    """Add them."""
    return x + y + z


def any_labels(x: object) -> Mapping[str, object]: ...  # type: ignore[empty-body]


def of_a_record(question: Question) -> Question: ...  # type: ignore[empty-body]


def of_a_dict(answer: Answer) -> None: ...


def no_arguments() -> None: ...


def generator(x: object) -> Iterator[Question | Answer]:
    yield Question("", 0)


async def coroutine(x: object) -> Answer: ...  # type: ignore[empty-body]


async def coroutines(x: object) -> AsyncIterator[Answer]:
    yield {"answer": ""}


def bare_generator(x: object) -> Iterator:  # type: ignore[type-arg]
    yield


class Counter:
    """It counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: object) -> Answer:
        self.calls += 1
        return {"answer": str(self.calls)}


class Model:
    """It answers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, question: str) -> Answer:
        return {"answer": f"{self.name}: {question}"}

    @classmethod
    def of_a_class(cls, question: str) -> Answer:
        return {"answer": question}


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        (nothing, "(x) -> "),
        (
            two_outputs,
            "(question, <attempt>) -> (text, <attempt>, hints) | (answer, <sure>) | (answer)",
        ),
        (unhinted, "(x) -> ..."),
        (any_labels, "(x) -> ..."),
        (of_a_record, "(text, <attempt>) -> (text, <attempt>, hints)"),
        (of_a_dict, "(answer) ->"),
        (no_arguments, "() ->"),
        (generator, "(x) -> (text, <attempt>, hints) | (answer, <sure>) | (answer)"),
        (coroutine, "(x) -> (answer, <sure>) | (answer)"),
        (coroutines, "(x) -> (answer, <sure>) | (answer)"),
        (bare_generator, "(x) -> ..."),
        (Counter, "(x) -> (answer, <sure>) | (answer)"),
        (Counter(), "(x) -> (answer, <sure>) | (answer)"),
        (partial(unhinted), "(x) -> ..."),
        (partial(of_a_pair, attempt=1), "(question) -> (answer, <sure>) | (answer)"),
        (lambda x, y: x, "(x, y) -> ..."),
        (partial(Model, "m"), "(question) -> (answer, <sure>) | (answer)"),
        (partial(Model, name="m"), "(question) -> (answer, <sure>) | (answer)"),
        (Model("m"), "(question) -> (answer, <sure>) | (answer)"),
        (Model("m").__call__, "(question) -> (answer, <sure>) | (answer)"),
        (Model.of_a_class, "(question) -> (answer, <sure>) | (answer)"),
        (lru_cache(of_a_pair), "(question, <attempt>) -> (answer, <sure>) | (answer)"),
    ],
)
def test_hints_give_a_box_its_signature(function: Callable[..., Any], signature: str) -> None:
    assert str(box(function).signature).strip() == signature.strip()


def test_a_parameter_that_stands_for_the_record_is_remembered() -> None:
    assert box(of_a_record)._accepts is Question
    assert box(of_a_dict)._accepts is Answer
    assert box(nothing)._accepts is None
    assert box(of_a_record, "(x) -> (y)")._accepts is None


def test_a_text_says_the_signature_in_any_of_these_ways() -> None:
    expected = parse_box_signature("(x) -> (x, <p>) | (y)")
    text = "(x) -> (x, <p>) | (y)"
    assert box(text)(nothing).signature == expected
    assert box(signature=text)(nothing).signature == expected
    assert box(nothing, text).signature == expected
    assert box(nothing, signature=text).signature == expected
    assert box(expected)(nothing).signature == expected


def test_a_bare_decorator_and_one_with_options_make_boxes() -> None:
    @box
    def plain(x: object) -> None: ...

    @box(retries=2, timeout=1, concurrency=3, backoff=0, errors="skip", threads=True, name="other")
    def with_options(x: object) -> None: ...

    assert (plain.name, plain.options.retries) == ("plain", 0)
    assert with_options.name == "other"
    options = with_options.options
    assert (options.retries, options.timeout, options.concurrency) == (2, 1.0, 3)
    assert (options.backoff, options.errors, options.threads) == (0, "skip", True)
    assert with_options.with_options(retries=0).options.retries == 0


def test_a_box_is_called_and_documented_as_its_function() -> None:
    made = box(unhinted)
    assert made(1, z=4) == 6
    assert made.__doc__ == "Add them."
    assert made.__name__ == "unhinted"  # type: ignore[attr-defined]
    assert made.with_options(retries=1).__doc__ == "Add them."
    assert str(made) == "unhinted"
    counter = box(Counter)
    assert counter.__doc__ == "It counts."
    assert [counter(1), counter(1)] == [{"answer": "1"}] * 2  # an instance for each call


def test_a_class_gets_its_arguments_by_partial() -> None:
    made = box(partial(Model, name="m"))
    assert (made.name, made.__doc__) == ("Model", "It answers.")
    assert made("why") == {"answer": "m: why"}
    with pytest.raises(
        TypeError, match=r"the class Model cannot make an instance .*'name'.* by functools"
    ):
        box(Model)
    with pytest.raises(TypeError, match=r"the class Model cannot make an instance .*'more'"):
        box(partial(cast(Any, Model), name="m", more=1))


def test_a_declared_box_has_no_function_to_call() -> None:
    with pytest.raises(TypeError, match="the box 'b' has no function"):
        Box("b", parse_box_signature("(x) -> (y)"))(1)


class NotCallable:
    pass


def of_a_number(x: object) -> int: ...  # type: ignore[empty-body]


def star_arguments(*labels: object) -> None: ...


def keyword_only(*, x: object) -> None: ...


def of_an_unknown_name(x: Unknown) -> None: ...  # type: ignore[name-defined]  # noqa: F821


class ManyKeys(TypedDict, total=False):
    a: int
    b: int
    c: int
    d: int
    e: int


def of_many_keys(x: object) -> ManyKeys: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "fact"),
    [
        (of_a_number, "the box of_a_number returns int, which names no labels: return a dataclass"),
        (star_arguments, r"the box star_arguments has \*labels: write its signature as text"),
        (keyword_only, "keyword_only is called by position, and x is keyword-only"),
        (of_an_unknown_name, "name 'Unknown' is not defined.*write its signature as text"),
        (of_many_keys, "ManyKeys has 5 keys that may be missing"),
        (NotCallable, "the class NotCallable is not a box: it has no __call__ method"),
        (3, r"box\(\) expects a function or a class with __call__, got 3"),
        (box(nothing), "nothing is already a box"),
    ],
)
def test_a_function_without_labels_is_not_a_box(function: Any, fact: str) -> None:
    with pytest.raises(TypeError, match=fact):
        box(function)


def test_a_signature_must_fit_the_arguments() -> None:
    with pytest.raises(TypeError, match=r"box nothing cannot be called with \{x, y\}.*too many"):
        box(nothing, "(x, y) -> (z)")
    with pytest.raises(TypeError, match=r"box nothing cannot be called with \{\}.*missing"):
        box(nothing, "-> (z)")
    assert box(unhinted, "(x, y) -> (z)").signature.inputs == ("x", "y")  # y has a default


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"concurrency": 0}, "a box's concurrency must be a whole number of at least 1, got 0"),
        (
            {"timeout": 0},
            "a box's timeout must be a number of seconds above 0 and at most 1e9, got 0",
        ),
        ({"retries": -1}, "a box's number of retries must be a whole number of at least 0, got -1"),
        ({"backoff": float("nan")}, "a box's backoff must be a number of seconds"),
        ({"errors": "ignore"}, "a box's errors must be one of fail, skip, variant, got 'ig"),
        ({"threads": 1}, "a box's threads must be True or False, got 1"),
        ({"dedicated": "no"}, "a box's dedicated must be True or False, got 'no'"),
        ({"name": ""}, "a box's name expects a non-empty string, got ''"),
        ({"signature": 3}, "a box's signature expects a string, got 3"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, Any], fact: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        box(**options)
    assert fact in str(caught.value)
    if not {"name", "signature"} & set(options):
        with pytest.raises((TypeError, ValueError), match=re.escape(fact)):
            box(nothing).with_options(**options)


@pytest.mark.parametrize("option", ["threads", "dedicated"])
def test_a_coroutine_function_has_no_thread(option: str) -> None:
    with pytest.raises(ValueError, match=f"the box coroutine is async: it takes no {option}=True"):
        box(coroutine, **{option: True})  # type: ignore[call-overload]


def test_two_signatures_and_a_wrong_text_are_refused() -> None:
    with pytest.raises(TypeError, match="one signature, not two"):
        box("(x) -> (y)", signature="(x) -> (y)")
    with pytest.raises(NetSyntaxError, match="line 1, column"):
        box("(x -> (y)")(nothing)
