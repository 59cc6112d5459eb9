"""Has the reference show the docstrings of compiled modules, whose stubs have the signatures."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

SIGNATURE = re.compile(r"^[\w.]+\(.*?\)(?: -> [^\n]+)?(?:\n|$)", re.DOTALL)
"""Cython begins a docstring with the signature, in its own words."""


class CompiledDocstrings(griffe.Extension):
    """Looks up the docstring of each object that a stub describes."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Go through the package once it is read."""
        if pkg.path == "callboard":
            self._fill(pkg)

    def _fill(self, holder: griffe.Object) -> None:
        for name, member in holder.members.items():
            if member.is_alias or name.startswith("_"):
                if not (name == "_inside" and not member.is_alias):
                    continue
            assert isinstance(member, griffe.Object)
            if member.is_module or member.is_class:
                self._fill(member)
            if not member.has_docstring and not member.is_module:
                text = docstring(member)
                if text:
                    member.docstring = griffe.Docstring(text, parent=member)


def docstring(member: griffe.Object) -> str:
    """Return what the running object says of itself; nothing if it cannot be had."""
    found: Any
    try:
        found = importlib.import_module(member.module.path)
    except ImportError:
        return ""
    *holders, name = member.path.removeprefix(f"{member.module.path}.").split(".")
    for holder in holders:
        found = getattr(found, holder, None)
    found = vars(found).get(name) if hasattr(found, "__dict__") else None
    text = getattr(found, "__doc__", None)
    if not isinstance(text, str) or text == type(found).__doc__:
        return ""
    return inspect.cleandoc(SIGNATURE.sub("", text, count=1))
