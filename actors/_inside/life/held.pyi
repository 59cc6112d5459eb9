from typing_extensions import disjoint_base

@disjoint_base
class Held:
    def _figures(self) -> tuple[int, str, str, int | None, int, int] | None: ...
