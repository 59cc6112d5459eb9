"""The times and compared columns of a join of Arrow batches, as numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from callboard.streams.programs.columns.layouts import place
from callboard.streams.programs.columns.scale import Scale, scale_of


class TimeColumns:
    """The times of all streams: their columns, and the scale of the first one that came."""

    def __init__(self, names: tuple[str, ...], is_finite: bool) -> None:
        self.names = names
        self.is_finite = is_finite  # infinity is no time
        self.scale: Scale | None = None

    def first_of(self, layouts: list[Any]) -> int | None:
        """Return a stream whose times are on the scale; None: not yet."""
        if self.scale is None:
            return None
        known = [stream for stream, layout in enumerate(layouts) if layout is not None]
        return next(each for each in known if self._scale_in(each, layouts[each]) == self.scale)

    def begin_with(self, stream: int, layout: Any) -> None:
        """Begin with the scale of a stream's times."""
        self.scale = self._scale_in(stream, layout)

    def _scale_in(self, stream: int, layout: Any) -> Scale | None:
        return scale_of(layout.inside.field(self.names[stream]).type)

    def read(self, stream: int, batch: Any, schema: Any) -> tuple[Scale, Any]:
        """Return the scale of a batch's times, and the times. Errors say the types of a schema.

        Raises TypeError and ValueError.
        """
        name = self.names[stream]
        column = column_of(stream, name, batch)
        scale = scale_of(column.type)
        if scale is None or (scale.unit is not None and scale.origin is None):
            raise TypeError(
                f"{place(stream, name)}: times must be integers, floats, timestamps, dates or "
                f"durations, got {schema.field(name).type}"
            )
        _check_same(stream, name, scale.sort, None if self.scale is None else self.scale.sort)
        _refuse(stream, name, "the time is null", _nulls(column))
        times = _numbers(stream, name, scale, column)
        if scale.name == "floats":
            _refuse(stream, name, "the time is NaN", np.isnan(times))
            if self.is_finite:
                _refuse(stream, name, "the time is infinite", np.isinf(times))
        return scale, times


class ComparedColumns:
    """The columns that a join compares: one of each stream, for equality or by a comparison."""

    def __init__(self, names: tuple[str, str], comparison: Any = None) -> None:
        self.names = names
        self.comparison = comparison  # a Comparison, or None: equality
        self.ids = Ids()  # of values that are no numbers
        self.found: Found | None = None

    def read(self, stream: int, batch: Any, schema: Any) -> tuple[Any, Any, Found]:
        """Return a batch's numbers, a mask of nulls, or None for no null, and their Found.

        Raises TypeError and ValueError, which say the types of a schema.
        """
        name, comparison = self.names[stream], self.comparison
        column = column_of(stream, name, batch)
        scale = scale_of(column.type)
        what = _key_name(column.type) if scale is None else scale.sort
        if what is None or (scale is None and comparison is not None):
            can = "Equal compares single values" if comparison is None else comparison.can
            raise TypeError(f"{place(stream, name)}: {can}, got {schema.field(name).type}")
        _check_same(stream, name, what, None if self.found is None else self.found.what)
        if scale is None:
            return self.ids.of(column), None, Found(what, None)
        nulls = _nulls(column)
        numbers = _numbers(stream, name, scale, column)
        if comparison is not None:
            return numbers, nulls, Found(what, comparison.on(scale))
        if scale.name == "floats":
            _refuse(stream, name, "NaN is equal to nothing that Equal compares", np.isnan(numbers))
        return numbers, nulls, Found(what, None)


class Found(NamedTuple):
    """A term's columns and their type, known since the first batch."""

    what: str
    comparison: Any  # on the scale of the values

    @property
    def is_real(self) -> bool:
        """Whether the values are doubles; else they are integers of 64 bits."""
        return self.what == "floats"


class Compared:
    """All columns that a join compares.

    Behind the columns of terms is one with a bit for each `Equal` in which a row has null. So it
    tells null from 0; and where nothing else is compared it is equal in all rows. With another
    comparison there is a last one: which rows have null in it, and so no partner.
    """

    def __init__(self, terms: list[ComparedColumns]) -> None:
        self.terms = sorted(terms, key=lambda term: term.comparison is not None)
        self.has_nulls = not terms or self.terms[0].comparison is None
        self.has_unmatchable = any(term.comparison is not None for term in terms)

    def read(self, stream: int, batch: Any, schema: Any = None) -> list[Any]:
        """Return the columns of a batch, an array for each. Raises TypeError and ValueError.

        Errors say the types of a schema, which is that of the batch or what it was made from.
        """
        schema = batch.schema if schema is None else schema
        read = [term.read(stream, batch, schema) for term in self.terms]
        columns = [numbers for numbers, _, _ in read]
        bits = np.zeros(len(batch), np.int64)
        alone = np.zeros(len(batch), np.bool_)
        for bit, (term, (_, nulls, _)) in enumerate(zip(self.terms, read, strict=True)):
            if nulls is None:
                continue
            if term.comparison is None:
                bits |= nulls.astype(np.int64) << bit
            else:
                alone |= nulls
        columns += [bits] if self.has_nulls else []
        columns += [alone] if self.has_unmatchable else []
        for term, (_, _, found) in zip(self.terms, read, strict=True):
            term.found = found
        return columns

    def native(self) -> list[tuple[bool, Any]]:
        """Say of each column whether it is of doubles, and the comparison, or None for equality."""
        founds = [term.found or Found("", None) for term in self.terms]
        native = [(found.is_real, found.comparison) for found in founds]
        return [*native, (False, None)] if self.has_nulls else native

    @property
    def has_many_ids(self) -> bool:
        """Whether there are values to forget, if no columns hold them."""
        return any(len(term.ids.numbers) > 1_000 for term in self.terms)

    def forget(self, columns: list[list[Any]]) -> None:
        """Forget values of which no columns hold any number, once these are most of them."""
        for at, term in enumerate(self.terms):
            if len(term.ids.numbers) > 1_000 + 2 * sum(len(each[at]) for each in columns):
                term.ids.forget([each[at] for each in columns])


class Ids:
    """Numbers for values. Equal values have one number, and no other value ever gets it."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.next = 0

    def of(self, column: Any) -> Any:
        """Return the numbers of a column's values, of which null is one."""
        import pyarrow as pa

        encoded = column.dictionary_encode()
        values = [*encoded.dictionary.to_pylist(), None]
        for value in values:
            if value not in self.numbers:
                self.numbers[value] = self.next
                self.next += 1
        numbers = np.array([self.numbers[value] for value in values], np.int64)
        places = encoded.indices.cast(pa.int64()).fill_null(len(values) - 1)
        return numbers[places.to_numpy()]

    def forget(self, used: list[Any]) -> None:
        """Keep those alone that arrays of numbers hold."""
        known = set(np.unique(np.concatenate(used)).tolist()) if used else set()
        self.numbers = {value: n for value, n in self.numbers.items() if n in known}


def column_of(stream: int, name: str, batch: Any) -> Any:
    """Return a column of a batch. Raises ValueError."""
    found = batch.schema.get_all_field_indices(name)
    if len(found) != 1:
        has = ", ".join(map(repr, batch.schema.names)) or "none"
        how_many = f"{len(found)} columns of that name" if found else "no such column"
        raise ValueError(f"{place(stream, name)}: there is {how_many}; the columns are {has}")
    return batch.column(found[0])


def _key_name(arrow: Any) -> str | None:
    """Say what values are that are compared for equality, and are no numbers; None: they cannot."""
    import pyarrow.types as a

    for name, types in {
        "strings": (a.is_string, a.is_large_string),
        "bytes": (a.is_binary, a.is_large_binary, a.is_fixed_size_binary),
        "booleans": (a.is_boolean,),
        "decimals": (a.is_decimal,),
    }.items():
        if any(check(arrow) for check in types):
            return name
    return None


def _numbers(stream: int, name: str, scale: Scale, column: Any) -> Any:
    try:
        return scale.numbers_of(column)
    except ValueError as error:  # Arrow's, of an integer beyond 64 bits
        raise ValueError(f"{place(stream, name)}: {error}") from None


def _nulls(column: Any) -> Any:
    return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None


def _check_same(stream: int, name: str, what: str, expected: str | None) -> None:
    if expected is not None and what != expected:
        raise TypeError(f"{place(stream, name)}: it has {what}, and others have {expected}")


def _refuse(stream: int, name: str, fact: str, wrong: Any) -> None:
    if wrong is not None and wrong.any():
        raise ValueError(f"{place(stream, name)}, row {int(wrong.argmax())}: {fact}")
