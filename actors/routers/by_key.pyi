from collections.abc import Callable, Iterable
from typing import Any, TypeVarTuple, Unpack

from typing_extensions import TypeVar, disjoint_base

from callboard._inside.arguments import ActorOptions
from callboard.actor import AnyActor, Spawns
from callboard.recipient import Recipient
from callboard.remote.sharding.keys import By
from callboard.routers.elastic import AutoScale
from callboard.routers.router import Router

_M = TypeVar("_M", contravariant=True)
_R = TypeVar("_R", covariant=True, default=Any)
_N = TypeVar("_N")
_A = TypeVar("_A")
_Ts = TypeVarTuple("_Ts")

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
