from collections.abc import Callable
from typing import Any

from callboard._inside.sending.state import Intake

class PriorityIntake(Intake):
    def __init__(self, key: Callable[[Any], Any]) -> None: ...
