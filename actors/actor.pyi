import concurrent.futures
from collections.abc import Awaitable, Callable, Hashable
from types import GenericAlias
from typing import (
    Any,
    Generic,
    ParamSpec,
    Protocol,
    TypeVarTuple,
    Unpack,
    overload,
    type_check_only,
)

from typing_extensions import TypeVar

from callboard._inside.answers.future import Future
from callboard._inside.arguments import SpawnOptions
from callboard._inside.sending.ref import ActorRef
from callboard.recipient import Recipient
from callboard.system import ActorSystem
from callboard.timers import Timer

_M = TypeVar("_M", contravariant=True)
_R = TypeVar("_R", covariant=True, default=Any)
_N = TypeVar("_N")
_A = TypeVar("_A")
_P = ParamSpec("_P")
_Ts = TypeVarTuple("_Ts")

# An Actor, or a NativeActor.
@type_check_only
class AnyActor(Protocol[_M, _R]):
    @property
    def ref(self) -> ActorRef[_M, _R]: ...

# A system, or an actor. No type stands for "a class's parameters, and options", so arguments by
# name are either those of the class or options; a `partial` holds the class's beside options.
@type_check_only
class Spawns(Protocol):
    @overload
    def spawn(
        self, cls: Callable[_P, AnyActor[_N, _A]], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> ActorRef[_N, _A]: ...
    @overload
    def spawn(
        self,
        cls: Callable[[Unpack[_Ts]], AnyActor[_N, _A]],
        /,
        *args: *_Ts,
        **options: Unpack[SpawnOptions],
    ) -> ActorRef[_N, _A]: ...

class Actor(Spawns, Generic[_M, _R]):
    __slots__ = ("__weakref__", "_callboard_ref")
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
    # Every subclass has one, by any name for the message.
    def receive(self, message: _M, /) -> _R | Awaitable[_R]: ...
    def on_start(self) -> Any: ...  # None, or `async def`
    def on_stop(self) -> Any: ...  # None, or `async def`
    def on_failure(self, error: BaseException, message: Any) -> None: ...
    @property
    def ref(self) -> ActorRef[_M, _R]: ...
    @property
    def sender(self) -> ActorRef[Any] | None: ...
    def is_wanted(self) -> bool: ...
    @property
    def system(self) -> ActorSystem: ...
    @property
    def children(self) -> list[ActorRef[Any]]: ...
    def stop(self) -> None: ...
    def become(self, handler: Callable[[_M], _R | Awaitable[_R]]) -> None: ...
    def unbecome(self) -> None: ...
    def stash(self) -> None: ...
    def unstash_all(self) -> None: ...
    def after(
        self,
        seconds: float,
        message: Any,
        *,
        to: Recipient[Any] | None = None,
        key: Hashable | None = None,
    ) -> Timer: ...
    def every(
        self,
        seconds: float,
        message: Any,
        *,
        to: Recipient[Any] | None = None,
        key: Hashable | None = None,
        coalesce: bool = False,
    ) -> Timer: ...
    def cancel_timer(self, key: Hashable) -> bool: ...
    def pipe(
        self,
        future: Awaitable[Any] | concurrent.futures.Future[Any],
        *,
        to: Recipient[Any] | None = None,
        wrap: Callable[[Any], Any] | None = None,
    ) -> None: ...
    def sleep(self, seconds: float) -> Future[None]: ...
    def watch(self, ref: ActorRef[Any]) -> None: ...
    def unwatch(self, ref: ActorRef[Any]) -> None: ...
