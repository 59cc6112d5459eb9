from collections.abc import Callable
from typing import Any, TypeVarTuple, Unpack

from typing_extensions import TypeVar, disjoint_base

from callboard._inside.arguments import ActorOptions
from callboard.actor import AnyActor, Spawns
from callboard.routers.elastic import AutoScale
from callboard.routers.router import Routee, Router

_M = TypeVar("_M", contravariant=True)
_R = TypeVar("_R", covariant=True, default=Any)
_N = TypeVar("_N")
_A = TypeVar("_A")
_Ts = TypeVarTuple("_Ts")

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
