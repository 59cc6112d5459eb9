"""The folder of callboard's C++ headers, for packages with native actors."""

from pathlib import Path


def get_include() -> str:
    """Return the folder to hand to a C++ compiler as `-I`.

    `#include "callboard/core/atomics.hpp"` and the like are found there, and so are the `.pxd`
    files behind `from callboard.native cimport NativeActor`. Any thread may call this.

    Raises `FileNotFoundError` for an editable install, whose sources do not lie in the shape of a
    package: build against an installed wheel.
    """
    package = Path(__file__).parent
    if not (package / "core").is_dir():
        raise FileNotFoundError(f"{package} holds no headers: it is an editable install's source")
    return str(package.parent)
