from typing_extensions import disjoint_base

@disjoint_base
class Held:
    def _forbid(self) -> None: ...
