"""Texts that can be shown and sent, whatever users' code made."""

from callboard.core.text import safe_repr, safe_str, sendable


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


def test_what_has_no_text_is_named() -> None:
    assert safe_str(Mute()) == "<Mute, whose str() raised ValueError>"
    assert safe_repr(Mute()) == "<Mute, whose repr() raised ValueError>"


def test_a_text_is_cut_between_characters() -> None:
    assert sendable("🙂🙂", 8) == "🙂🙂"
    assert sendable("🙂🙂", 7) == "🙂"
    assert sendable("abc", 0) == ""
