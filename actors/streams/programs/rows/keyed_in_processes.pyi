from typing import Any, final

from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.in_processes import ProcessAnswers

@final
class KeyedInProcesses(ProcessAnswers):
    def __init__(
        self, name: str, *, keyed: Program, states: Any, most: int, **options: Any
    ) -> None: ...

def answer_part(program: Program, part: tuple[Any, ...]) -> list[Any]: ...
def state_of(program: Program, is_divided: bool) -> tuple[tuple[Any, ...], list[Any]]: ...
