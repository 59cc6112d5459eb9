from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class Answering:
    def __init__(self, function: Callable[[Any], Any]) -> None: ...
    def __call__(self, value: Any, /) -> Any: ...

def check_answer(answer: Any) -> None: ...
