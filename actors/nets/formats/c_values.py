"""Values of fields as S-Net's interface to C writes them: `(int)5`, `(double[2])1.5,2`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_VALUE = re.compile(
    r"\s*\((?P<type>[a-z]+(?: [a-z]+)?)(?:\[(?P<size>[0-9]+)\])?\)(?P<text>.*)", re.DOTALL
)
_INTEGERS = ("short", "int", "long")
_NUMBERS: dict[str, Callable[[str], int | float]] = {
    **dict.fromkeys(_INTEGERS, int),
    **dict.fromkeys([f"unsigned {name}" for name in _INTEGERS], int),
    **dict.fromkeys(["float", "double", "long double"], float),
}
_CHARACTERS = ("char", "unsigned char")


def value_of(text: str) -> Any:
    """Return the value that a text stands for: a number, a string or a list of numbers.

    A text in another form, as other interfaces write it, is a string as it stands. Raises
    ValueError if what follows a type does not fit it.
    """
    match = _VALUE.fullmatch(text)
    if match is None:
        return text
    type_name, size, content = match["type"], match["size"], match["text"]
    if type_name == "string" and size is None:
        return content
    if type_name in _CHARACTERS:
        return _characters(content, 1 if size is None else int(size))
    if type_name not in _NUMBERS:
        return text
    convert = _NUMBERS[type_name]
    if size is None:
        return convert(content)
    values = [convert(part) for part in content.split(",")] if content.strip() else []
    if len(values) != int(size):
        raise ValueError(f"{size} values are announced, but there are {len(values)}")
    return values


def text_of_value(value: Any) -> str:
    """Write a number, a string or a list of numbers. Raises TypeError for other values."""
    if isinstance(value, str):
        return f"(string){value}"
    if isinstance(value, (int, float)):
        return f"({_type_of([value])}){_number(value)}"
    if isinstance(value, (list, tuple)) and all(isinstance(part, (int, float)) for part in value):
        return f"({_type_of(value)}[{len(value)}]){','.join(map(_number, value))}"
    raise TypeError(f"a number, a string or a list of numbers is expected, not {value!r}")


def _characters(content: str, size: int) -> str:
    """Return the characters between which there are commas."""
    characters, commas = content[::2], content[1::2]
    if len(characters) != size or len(commas) != max(size - 1, 0) or commas.strip(","):
        raise ValueError(f"{content!r} is not {size} characters with commas between them")
    return characters


def _type_of(values: list[int | float] | tuple[int | float, ...]) -> str:
    if any(isinstance(value, float) for value in values):
        return "double"
    return "int" if all(-(2**31) <= value < 2**31 for value in values) else "long"


def _number(value: int | float) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))
