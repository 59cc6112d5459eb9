from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVarTuple, Unpack, overload

from typing_extensions import TypeVar, disjoint_base

from callboard._inside.arguments import ActorOptions
from callboard.actor import Actor
from callboard.native import NativeActor
from callboard.recipient import Recipient
from callboard.remote.sharding.keys import By
from callboard.routers.elastic import Elastic
from callboard.routers.router import Router
from callboard.system import ActorSystem

_M = TypeVar("_M", contravariant=True)
_R = TypeVar("_R", covariant=True, default=Any)
_Ts = TypeVarTuple("_Ts")

@disjoint_base
class KeyRouter(Router[_M, _R]):
    def __init__(self, refs: Iterable[Recipient[_M]], by: By) -> None: ...
    @overload  # type: ignore[override]
    @classmethod
    def spawn(
        cls,
        spawner: ActorSystem | Actor[Any] | NativeActor,
        actor: Callable[[Unpack[_Ts]], Actor[_M, _R]],
        /,
        *args: *_Ts,
        by: By,
        routees: int | None = None,
        elastic: Elastic | tuple[int, int] | None = None,
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> Self: ...
    @overload
    @classmethod
    def spawn(
        cls,
        spawner: ActorSystem | Actor[Any] | NativeActor,
        actor: Callable[[Unpack[_Ts]], NativeActor],
        /,
        *args: *_Ts,
        by: By,
        routees: int | None = None,
        elastic: Elastic | tuple[int, int] | None = None,
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> Self: ...
    def of_key(self, key: Any) -> Recipient[_M]: ...
