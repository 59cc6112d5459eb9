"""Editors and type checkers find every module of a checkout, after `make shape`."""

import subprocess
import tomllib
from pathlib import Path

from tests.sources import names_imported, sources

SUFFIXES = ("", ".py", ".pyi", ".pyx", ".pxd")


def settings(root: Path) -> dict[str, dict[str, list[str]]]:
    tools: dict[str, dict[str, list[str]]] = tomllib.loads((root / "pyproject.toml").read_text())[
        "tool"
    ]
    return tools


def resolves(folder: Path, name: str) -> bool:
    """Tell whether a dotted name is a module below a folder, or a name in one."""
    place = folder.joinpath(*name.split("."))
    found = [parent for parent in (place, place.parent) if parent != folder]
    return any(Path(f"{parent}{suffix}").exists() for parent in found for suffix in SUFFIXES)


def test_type_checkers_and_editors_search_the_folder_of_make_shape(root: Path) -> None:
    assert "SHAPE ?= build/shape\n" in (root / "Makefile").read_text()
    assert settings(root)["pyright"]["extraPaths"] == ["build/shape"]
    assert "build/shape" in settings(root)["mypy"]["mypy_path"]


def test_all_imports_resolve_in_the_shape(root: Path, tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(root), "shape", f"SHAPE={tmp_path}"], check=True)
    missing = [
        f"{path}: {name}"
        for path in sources(root)
        if path.suffix != ".hpp"
        for name in names_imported(path, (root / path).read_text())
        if name.split(".")[0] == "callboard" and not resolves(tmp_path, name)
    ]
    assert missing == []
    assert not resolves(tmp_path, "callboard.no_such_room.module")
