from collections.abc import Sequence
from typing import Any

class NumberMatch:
    def __init__(self, within: Any, distances: Sequence[Any]) -> None: ...
    @staticmethod
    def can_match(within: Any, distances: Sequence[Any]) -> bool: ...
