"""Records as XML, as S-Net's programs read and write them.

Each is a `record`, with a `field`, `tag` or `btag` for each label. The last is of type `terminate`.
A file is a sequence of such documents rather than one, so each may begin with an XML declaration.
Document types, and with them entities, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from callboard.core.text import safe_repr
from callboard.nets.errors import RecordError
from callboard.nets.formats.c_values import text_of_value, value_of
from callboard.nets.formats.labelled import Source, Target, checked, lines_of, opened
from callboard.nets.terms.labels import Label, Record, binding_tag, is_binding, is_tag, name_of, tag

_DECLARATION = re.compile(r"<\?xml\b[^<>]*\?>")
_ENCODING = re.compile(rb"""<\?xml\b[^<>]*\bencoding\s*=\s*["']([\w.-]+)["']""")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SHORT = 4096  # bytes of a part without an end that are parsed with each line
_PARTS: dict[str, Callable[[str], Label]] = {"field": str, "tag": tag, "btag": binding_tag}


def read_xml(source: Source) -> Iterator[Record]:
    """Yield the records of a file, of which the path is given, or of lines.

    The end is the record of type `terminate`, or the source's. Text that is no record raises
    RecordError with the line. Values of fields are read as `value_of` says,
    those of a record with `mode="binary"`, too: they are not decoded.
    """
    reader = _Reader()
    for line in _decoded(lines_of(source)):
        yield from reader.feed(line)
        if reader.terminated:
            return
    yield from reader.close()


def write_xml(
    records: Iterable[Mapping[str, Any]], target: Target, *, interface: str = "C4SNet"
) -> int:
    """Write records to a path or an open file, and return how many there were.

    Fields may be numbers, strings and lists of numbers.
    """
    number = 0
    attributes = (
        f'xmlns="snet-home.org" type="data" mode="textual" interface={quoteattr(interface)}'
    )
    with opened(target) as file:
        file.write('<?xml version="1.0" encoding="UTF-8" ?>\n')
        for number, record in enumerate(records, 1):
            place = f"record {number}"
            parts = [_element(*item, place) for item in checked(record, place).items()]
            file.write("\n".join([f"<record {attributes}>", *parts, "</record>\n"]))
        file.write('<record xmlns="snet-home.org" type="terminate" />\n')
    return number


class _Reader:
    """The state between two lines, as expat has told it."""

    def __init__(self) -> None:
        self.terminated = False
        self._records: list[Record] = []
        self._record: Record | None = None  # the one that is being read
        self._label: Label | None = None  # and its part
        self._text: list[str] = []
        self._open: list[str] = []
        self._fed = 0  # bytes, and those that wait to be parsed
        self._waiting: list[bytes] = []
        self._waits = 0
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parse("<records>")

    def feed(self, line: str) -> list[Record]:
        """Read a line, and return the records that end with it."""
        if "<!DOCTYPE" in line or "<!ENTITY" in line:
            raise self._error("document types and entities are refused")
        self._parse(_DECLARATION.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), line))
        records, self._records = self._records, []
        return records

    def close(self) -> list[Record]:
        """Make sure that nothing is left open."""
        self._parse("</records>", final=True)
        return self._records

    def _parse(self, text: str, *, final: bool = False) -> None:
        """Parse a text, and what waits. While a part is long and has no end yet, texts wait.

        The parser begins such a part anew with each text: it has twice as much each time.
        """
        try:
            self._waiting.append(text.encode())
            self._waits += len(self._waiting[-1])
            unfinished = self._fed - self._parser.CurrentByteIndex
            if not final and unfinished > SHORT and self._waits < unfinished:
                return
            data, self._waiting, self._waits = b"".join(self._waiting), [], 0
            self._fed += len(data)
            self._parser.Parse(data, final)
        except UnicodeEncodeError as error:
            raise self._error(f"{safe_repr(error.object[error.start])} is no character") from None
        except expat.ExpatError as error:
            raise RecordError(f"line {error.lineno}: {expat.ErrorString(error.code)}") from None

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        around = self._open[-1] if self._open else None
        self._open.append(name)
        if self.terminated or name == "records" or (name == "data" and around == "records"):
            return
        if name == "record" and around in ("records", "data"):
            self._begin_record(attributes.get("type", "data"))
        elif name in _PARTS and self._record is not None and self._label is None:
            self._begin_part(name, attributes.get("label", ""))
        else:
            raise self._error(f"<{name}> is not expected here")

    def _begin_record(self, kind: str) -> None:
        if kind == "terminate":
            self.terminated = True
        elif kind == "data":
            self._record = {}
        else:
            raise self._error(f"a record of type {kind!r} is unknown")

    def _begin_part(self, name: str, label: str) -> None:
        self._label = _PARTS[name](label)
        self._text = []
        if self._record is not None and self._label in self._record:
            raise self._error(f"the label {self._label} occurs twice in a record")

    def _end(self, name: str) -> None:
        self._open.pop()
        if self.terminated or self._record is None:
            return
        if name == "record":
            self._records.append(checked(self._record, self._place))
            self._record = None
        elif self._label is not None:
            text = "".join(self._text)
            try:
                value = int(text) if is_tag(self._label) else value_of(text)
            except ValueError as error:
                raise self._error(f"{self._label}: {error}") from None
            self._record[self._label] = value
            self._label = None

    def _characters(self, text: str) -> None:
        if self._label is not None:
            self._text.append(text)
        elif text.strip() and not self.terminated:
            raise self._error(f"{text.strip()!r} is not expected here")

    @property
    def _place(self) -> str:
        return f"line {self._parser.CurrentLineNumber}"

    def _error(self, reason: str) -> RecordError:
        return RecordError(f"{self._place}: {reason}")


def _decoded(lines: Iterator[str | bytes]) -> Iterator[str]:
    """Yield lines as text. Bytes have the encoding that a declaration says, or UTF-8."""
    encoding = "utf-8"
    for number, line in enumerate(lines, 1):
        if isinstance(line, str):
            yield line
            continue
        if declared := _ENCODING.search(line):
            encoding = declared[1].decode()
        try:
            yield line.decode(encoding)
        except (LookupError, UnicodeError) as error:
            raise RecordError(f"line {number}: {error}") from None


def _element(label: Label, value: Any, place: str) -> str:
    if is_tag(label):
        name, text = "btag" if is_binding(label) else "tag", str(value)
    else:
        try:
            name, text = "field", text_of_value(value)
        except TypeError as error:
            raise RecordError(f"{place}: {label}: {error}") from None
    if found := _NOT_XML.search(text):
        raise RecordError(f"{place}: {label}: XML cannot have the character {found[0]!r}")
    written = escape(text, {"\r": "&#13;"})
    return f"  <{name} label={quoteattr(name_of(label))}>{written}</{name}>"
