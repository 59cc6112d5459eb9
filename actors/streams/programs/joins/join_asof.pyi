from collections.abc import Callable
from typing import Any, final

from callboard.streams.programs.joins.join import JoinRows
from callboard.streams.programs.joins.window_rows import WindowRule

@final
class JoinAsof(JoinRows):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        *,
        combine: Callable[[Any, Any], Any] | None,
        nearest: str,
        rule: WindowRule,
        keys: tuple[Callable[[Any], Any], ...] | None,
        times_of: list[Callable[[Any], Any]],
        **options: Any,
    ) -> None: ...
