"""Adds the docstrings of compiled modules to the reference. Their stubs have the signatures.

Inherited members come after a class's own. Attributes without a docstring are left out, unless they
are fields of a dataclass.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

SIGNATURE = re.compile(r"^[\w.]+\(.*?\)(?: -> [^\n]+)?(?:\n|$)", re.DOTALL)
"""The signature with which Cython begins a docstring."""


class CompiledDocstrings(griffe.Extension):
    """Looks up the docstring of each object that a stub describes."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Add docstrings to callboard when it has been read."""
        if pkg.path == "callboard":
            fill(pkg)


def fill(holder: griffe.Module | griffe.Class) -> None:
    """Give docstrings to the members of a module or a class, and to those of its members."""
    for member in list(holder.members.values()):
        if isinstance(member, griffe.Module | griffe.Class):
            fill(member)
        if member.is_alias or member.is_module or member.has_docstring:
            continue
        assert isinstance(member, griffe.Object)
        if text := docstring(member):
            member.docstring = griffe.Docstring(text, parent=member)
        elif member.labels == {"instance-attribute"} and "dataclass" not in holder.labels:
            del holder.members[member.name]  # it is not documented, so it is internal
    if isinstance(holder, griffe.Class):
        for name, inherited in holder.inherited_members.items():
            holder.members.setdefault(name, inherited)


def docstring(member: griffe.Object) -> str:
    """Return the docstring of the object in the imported module, or an empty text."""
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
