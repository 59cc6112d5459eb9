"""The folder of callboard's C++ headers, for packages with native actors."""

from pathlib import Path


def get_include() -> str:
    """Return the folder to pass to a C++ compiler as `-I`. Any thread may call this.

    It contains headers such as `callboard/core/atomics.hpp`, and the `.pxd` files for `from
    callboard.native cimport NativeActor`.

    Raises FileNotFoundError for an editable install, whose sources are not laid out as a package:
    build against an installed wheel.
    """
    package = Path(__file__).parent
    if not (package / "core").is_dir():
        raise FileNotFoundError(f"{package} holds no headers: it is an editable install's source")
    return str(package.parent)
