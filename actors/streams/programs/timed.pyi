from typing import Any

from callboard.streams.programs.keyed import Objects

class Timed(Objects):
    def __init__(self, name: str, make: Any, **options: Any) -> None: ...
