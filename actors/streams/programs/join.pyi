from collections.abc import Callable, Sequence
from typing import Any

from callboard.streams.programs.in_time import InTime

class Join(InTime):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        *,
        within: Any,
        most: int | None,
        three_step: bool,
        keys: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None,
        bands: Sequence[tuple[Callable[[Any], Any], Callable[[Any], Any], Any]],
        test: Callable[[Any, Any], object] | None,
        combine: Callable[[Any, Any], Any] | None,
        how: str,
        by_numbers: bool,
        **options: Any,
    ) -> None: ...
