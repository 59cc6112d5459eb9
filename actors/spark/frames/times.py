"""Times of Spark: a TIMESTAMP is an instant, a TIMESTAMP_NTZ a local time without a zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any

from callboard.spark.context import session_zone

if TYPE_CHECKING:
    import pyarrow as pa


def in_known_zones(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose instants are in UTC if Python does not know their zone.

    Java knows more zones, such as "GMT+2" and "PST".
    """
    import pyarrow as pa

    known = pa.schema([field.with_type(_known(field.type)) for field in batch.schema])
    return batch if known == batch.schema else batch.cast(known)


def _known(arrow: pa.DataType) -> pa.DataType:
    import pyarrow as pa
    import pyarrow.types as a

    if a.is_timestamp(arrow):
        return arrow if _is_known(arrow.tz) else pa.timestamp(arrow.unit, "UTC")
    if a.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_known(arrow.value_type)))
    if a.is_map(arrow):
        return pa.map_(_known(arrow.key_type), arrow.item_field.with_type(_known(arrow.item_type)))
    if a.is_struct(arrow):
        return pa.struct([field.with_type(_known(field.type)) for field in arrow])
    return arrow


@cache
def _is_known(zone: str | None) -> bool:
    import pyarrow as pa

    try:
        pa.scalar(0, pa.timestamp("us", zone)).as_py()
    except Exception:  # the class depends on the library of zones that Arrow finds
        return False
    return True


def zone_of_session() -> tzinfo | None:
    """Return the zone of the current task's session; None is that of this machine."""
    name = session_zone()
    return None if name is None else _zone(name)


@cache
def _zone(name: str) -> tzinfo | None:
    import pyarrow as pa

    zone: tzinfo | None = pa.scalar(0, pa.timestamp("us", name)).as_py().tzinfo
    return zone


def in_zone(value: Any, zone: tzinfo | None) -> Any:
    """Return a datetime in a zone; a naive one is local. Other values are not changed."""
    return value.astimezone(zone) if isinstance(value, datetime) else value


def mixes_clocks(one: pa.DataType, other: pa.DataType) -> bool:
    """Tell whether a cast converts between instants and local times or dates."""
    import pyarrow.types as a

    if one.num_fields and one.num_fields == other.num_fields:
        pairs = zip(_inside(one), _inside(other), strict=True)
        return any(mixes_clocks(*pair) for pair in pairs)
    kinds = {a.is_timestamp(each) and each.tz is not None for each in (one, other)}
    return a.is_temporal(one) and a.is_temporal(other) and len(kinds) == 2


def _inside(arrow: pa.DataType) -> list[pa.DataType]:
    return [arrow.field(index).type for index in range(arrow.num_fields)]


def of_times(arrow: pa.DataType) -> Callable[[Any], Any] | None:
    """Return a function that converts Python values for a type, or None for a type without times.

    The function reads naive datetimes as Spark does, as local times; Arrow would read them as UTC.
    For a type without a zone it raises TypeError at an aware datetime, which Arrow would convert to
    UTC.
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
        raise TypeError(f"{value} has a zone, but the column has none")
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
