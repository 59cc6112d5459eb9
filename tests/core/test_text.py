"""Texts of users' objects can be shown and sent, however broken they are."""

from callboard.core.text import cut, safe_repr, safe_str, sendable


class Odd:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class Mute:
    def __repr__(self) -> str:
        raise ValueError("no text")


def test_a_surrogate_is_shown_as_its_escape_sequence() -> None:
    assert safe_str("a\ud800") == "a\\ud800"
    assert safe_str(ValueError("caf\udce9")) == "caf\\udce9"
    assert safe_repr(Odd("\udfff")) == "\\udfff"
    assert sendable("naïve 🙂") == "naïve 🙂"


def test_an_object_without_a_text_is_named() -> None:
    assert safe_str(Mute()) == "<Mute, whose str() raised ValueError>"
    assert safe_repr(Mute()) == "<Mute, whose repr() raised ValueError>"


def test_a_text_is_cut_between_characters() -> None:
    assert sendable("🙂🙂", 8) == "🙂🙂"
    assert sendable("🙂🙂", 7) == "🙂"
    assert sendable("abc", 0) == ""


def test_a_repr_in_an_errors_text_is_cut() -> None:
    for large in (
        "x" * 10**6,
        b"x" * 10**6,
        [1] * 10**6,
        {"a": "x" * 10**6},
        ValueError("y" * 10**6),
    ):
        assert len(safe_repr(large)) < 3_000
    assert safe_repr({"a": "x" * 1_000}) == repr({"a": "x" * 1_000})
    assert cut("a" * 30 + "b" * 30, 20) == "aaaaaaaaaa... (60 characters) ...bbbbbbbbbb"
