from typing import Any

from callboard._ref import ActorRef

# A native actor takes integers, doubles, records and buffers, which it declares nowhere.
class NativeRef(ActorRef[Any]): ...
