from typing import Any, Literal

from callboard.channels.receiver import Receiver
from callboard.channels.sender import Sender

def channel(
    capacity: int, *, on_deadlock: Literal["raise", "grow"] = "raise"
) -> tuple[Sender[Any], Receiver[Any]]: ...
