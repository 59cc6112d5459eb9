from collections.abc import Callable
from typing import Any, final

from typing_extensions import disjoint_base

from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.keyed import Timed
from callboard.streams.programs.windows.window import SessionWindow

@disjoint_base
class Sessions(Timed):
    def __init__(
        self,
        name: str,
        session: SessionWindow,
        function: Callable[[list[Any]], Any],
        late: str,
        **options: Any,
    ) -> None: ...

@final
class Clock(Program):
    def __init__(
        self, name: str, by: Callable[[Any], Any], delay_threshold: Any, every: int, **options: Any
    ) -> None: ...
