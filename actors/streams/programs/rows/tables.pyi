from typing import Any, final

from typing_extensions import disjoint_base

@final
class EventTime:
    time: Any

@disjoint_base
class Table:
    def __init__(self, in_parts: bool, homes: dict[Any, int] | None, number: int = 0) -> None: ...

def check_key(what: str, key: object, is_part: bool = False) -> None: ...
