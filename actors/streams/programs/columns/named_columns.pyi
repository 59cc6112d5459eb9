from typing import Any

def named_columns(
    rows: list[Any], names: list[str] | None = None
) -> tuple[list[str], list[list[Any]]]: ...
