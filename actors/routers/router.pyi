from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import Any, Generic, NoReturn, Self, TypeVarTuple, Unpack

from typing_extensions import TypeVar, disjoint_base

from callboard._inside.answers.future import Future
from callboard._inside.arguments import ActorOptions
from callboard._inside.sending.ref import ActorRef
from callboard.actor import AnyActor, Spawns
from callboard.failures import ActorEnd
from callboard.recipient import Recipient
from callboard.remote.sharding.keys import By
from callboard.routers.elastic import AutoScale

_M = TypeVar("_M", contravariant=True)
_R = TypeVar("_R", covariant=True, default=Any)
_N = TypeVar("_N")
_A = TypeVar("_A")
_Ts = TypeVarTuple("_Ts")

@disjoint_base
class Routee:
    @property
    def recipient(self) -> Recipient[Any]: ...
    def __init__(self, recipient: Recipient[Any]) -> None: ...

@disjoint_base
class Router(Generic[_M, _R]):
    _counts: bool
    _family: Any
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
    def __init__(self, refs: Iterable[Recipient[_M]]) -> None: ...
    @classmethod
    def spawn(
        cls,
        spawner: Spawns,
        actor: Callable[[Unpack[_Ts]], AnyActor[_M, _R]],
        /,
        *args: *_Ts,
        routees: int | None = None,
        elastic: AutoScale | tuple[int, int] | None = None,
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> Self: ...
    def tell(self, message: _M, /) -> None: ...
    def tell_many(self, messages: Iterable[_M]) -> None: ...
    def atell(self, message: _M) -> Future[None]: ...
    def atell_many(self, messages: Iterable[_M]) -> Future[None]: ...
    def ask(self, message: _M, timeout: float | None = None) -> Future[_R]: ...
    def _leave_later(self, routee: Routee, messages: int, _: Any = None) -> None: ...
    def _enter_all(self) -> tuple[Routee, ...]: ...
    def _leave_all(self, routees: Iterable[Routee]) -> None: ...
    @property
    def refs(self) -> tuple[Recipient[_M], ...]: ...
    @property
    def parent(self) -> ActorRef[Any] | None: ...
    @property
    def ready(self) -> Future[Self]: ...
    @property
    def ended(self) -> Future[tuple[ActorEnd, ...]]: ...
    def resize(self, routees: int) -> None: ...
    def stop(self, *, after_queue: bool = False) -> None: ...
    def _set_refs(self, refs: Iterable[Recipient[_M]]) -> None: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Self: ...
    def __reduce__(self) -> NoReturn: ...

@disjoint_base
class RoundRobinRouter(Router[_M, _R]):
    @classmethod
    def spawn(
        cls,
        spawner: Spawns,
        actor: Callable[[Unpack[_Ts]], AnyActor[_N, _A]],
        /,
        *args: *_Ts,
        routees: int | None = None,
        elastic: AutoScale | tuple[int, int] | None = None,
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> RoundRobinRouter[_N, _A]: ...

@disjoint_base
class LeastLoadedRouter(Router[_M, _R]):
    @classmethod
    def spawn(
        cls,
        spawner: Spawns,
        actor: Callable[[Unpack[_Ts]], AnyActor[_N, _A]],
        /,
        *args: *_Ts,
        routees: int | None = None,
        elastic: AutoScale | tuple[int, int] | None = None,
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> LeastLoadedRouter[_N, _A]: ...
    def _note_answer(self, routee: Routee, _: Any) -> None: ...

@disjoint_base
class KeyRouter(Router[_M, _R]):
    def __init__(self, refs: Iterable[Recipient[_M]], by: By) -> None: ...
    @classmethod
    def spawn(  # type: ignore[override]
        cls,
        spawner: Spawns,
        actor: Callable[[Unpack[_Ts]], AnyActor[_N, _A]],
        /,
        *args: *_Ts,
        by: By,
        routees: int | None = None,
        elastic: AutoScale | tuple[int, int] | None = None,
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> KeyRouter[_N, _A]: ...
    def of_key(self, key: Any) -> Recipient[_M]: ...
