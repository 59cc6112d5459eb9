from typing_extensions import disjoint_base

from callboard.streams.programs.joins.finder import Finder
from callboard.streams.programs.joins.kept import WindowRule

@disjoint_base
class NativePredicate: ...

class NativeFinder(Finder):
    def __init__(
        self,
        rule: WindowRule,
        lane: int,
        lanes: int,
        *,
        predicate: NativePredicate,
        once: bool,
    ) -> None: ...
