from typing_extensions import disjoint_base

from callboard.scheduling.handle import Handle

@disjoint_base
class Waiter(Handle): ...
