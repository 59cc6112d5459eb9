from collections.abc import Generator
from typing import Any

from typing_extensions import disjoint_base

from callboard._inside.answers.future import Future

@disjoint_base
class Checkpoint(Future[None]):
    def __init__(self) -> None: ...
    def __await__(self) -> Generator[Any]: ...
