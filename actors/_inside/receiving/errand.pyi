from collections.abc import Coroutine
from typing import Any

from callboard.core.errors import CallboardError

class TaskEnded(CallboardError): ...

def with_actor(coroutine: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]: ...
