"""Systems whose workers all run Python actors, as on a build without a GIL."""

from typing import Any

import pytest

from callboard import ActorSystem


def tokenless(*args: Any, **options: Any) -> ActorSystem:
    """Make a system without the token by which one worker at a time runs Python actors.

    On a build with a GIL its workers contend for the GIL.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("callboard.system.has_gil", lambda: False)
        return ActorSystem(*args, **options)
