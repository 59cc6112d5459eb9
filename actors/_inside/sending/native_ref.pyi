from typing import Any

from callboard._inside.sending.ref import ActorRef

# A native actor takes integers, doubles, records and buffers, which it declares nowhere.
class NativeRef(ActorRef[Any]): ...
