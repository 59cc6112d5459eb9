"""Times as Spark has them: a TIMESTAMP is an instant, and a TIMESTAMP_NTZ what some clock shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def of_times(arrow: pa.DataType) -> Callable[[Any], Any] | None:
    """Return what makes values of a type out of Python's; None, if the type has no times in it.

    Arrow takes a naive datetime for one in UTC, and of an aware one, where there is no zone, what
    clocks in UTC show. Spark takes naive ones for local ones; and the other is a TypeError.
    """
    import pyarrow.types as a

    if a.is_timestamp(arrow):
        return _clock if arrow.tz is None else _instant
    if a.is_list(arrow) or a.is_large_list(arrow):
        return _of_elements(of_times(arrow.value_type))
    if a.is_map(arrow):
        return _of_items(of_times(arrow.key_type), of_times(arrow.item_type))
    if a.is_struct(arrow):
        fields = [arrow.field(index) for index in range(arrow.num_fields)]
        return _of_fields({field.name: of_times(field.type) for field in fields})
    return None


def _instant(value: Any) -> Any:
    if not isinstance(value, datetime) or value.tzinfo is not None:
        return value
    try:
        return value.astimezone(UTC)
    except (OverflowError, ValueError):  # at the ends of the calendar zones make no difference
        return value


def _clock(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise TypeError(f"{value} has a zone, and the column has none")
    return value


def _of_elements(convert: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    if convert is None:
        return None
    return lambda values: values if values is None else [*map(convert, values)]


def _of_items(
    of_key: Callable[[Any], Any] | None, of_value: Callable[[Any], Any] | None
) -> Callable[[Any], Any] | None:
    if of_key is None and of_value is None:
        return None

    def convert(values: Any) -> Any:
        pairs = values.items() if isinstance(values, dict) else values
        return (
            values
            if values is None
            else [
                (of_key(key) if of_key else key, of_value(value) if of_value else value)
                for key, value in pairs
            ]
        )

    return convert


def _of_fields(each: dict[str, Callable[[Any], Any] | None]) -> Callable[[Any], Any] | None:
    if not any(each.values()):
        return None

    def convert(value: Any) -> Any:
        if isinstance(value, tuple):
            value = dict(zip(each, value, strict=True))
        if not isinstance(value, dict):
            return value
        return {
            name: made(inside) if (made := each.get(name)) else inside
            for name, inside in value.items()
        }

    return convert
