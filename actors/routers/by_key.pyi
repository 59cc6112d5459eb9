from collections.abc import Iterable
from typing import Any, Self, TypeVar

from typing_extensions import disjoint_base

from callboard.actor import Actor
from callboard.native import NativeActor
from callboard.recipient import Recipient
from callboard.remote.sharding.keys import By
from callboard.routers.elastic import Elastic
from callboard.routers.router import Router
from callboard.system import ActorSystem

_M = TypeVar("_M", contravariant=True)

@disjoint_base
class KeyRouter(Router[_M]):
    def __init__(self, refs: Iterable[Recipient[_M]], by: By) -> None: ...
    @classmethod
    def spawn(  # type: ignore[override]
        cls,
        spawner: ActorSystem | Actor[Any] | NativeActor,
        actor: type[Actor[_M]] | type[NativeActor],
        /,
        *args: Any,
        by: By,
        routees: int | None = None,
        elastic: Elastic | tuple[int, int] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self: ...
    def of_key(self, key: Any) -> Recipient[_M]: ...
