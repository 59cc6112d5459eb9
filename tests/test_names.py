"""One word, one thing: no two types share a name, whatever their languages."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.sources import sources, unit_of, write

CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# A type inside the private part of a class has a name there alone.
CPP_PRIVATE = re.compile(r"^private:.*?(?=^(?:public:|protected:|\};))", re.MULTILINE | re.DOTALL)
# With its body, so no forward declaration.
CPP_TYPE = re.compile(
    r"\b(?:enum\s+(?:class|struct)|class|struct|enum|union)\s+(?:alignas\([^)]*\)\s*)*"
    r"(\w+)(?:\s+final)?\s*(?::[^:;{}()][^;{}()]*)?\{"
)
# What a `cdef extern` block declares has its name from C++.
CYTHON_EXTERN = re.compile(r"^cdef extern from [^\n]*:\n(?:(?:[ \t][^\n]*)?\n)*", re.MULTILINE)
CYTHON_TYPE = re.compile(
    r"^[ \t]*(?:(?:cdef|cpdef|ctypedef)\s+(?:public\s+|packed\s+)*"
    r"(?:class|struct|enum(?:\s+class)?|union|cppclass)|class)\s+(\w+)",
    re.MULTILINE,
)

# What Cython and C++ call one type; an instance of a template has no name in C++.
ALIAS = re.compile(r'^\s*(?:cdef\s+)?(?:cppclass|struct|enum(?: class)?) (\w+) "([\w:]+)"', re.M)


def is_name_of(ours: str, theirs: str) -> bool:
    """Tell whether a C++ type is called so; one inside a class may carry the class's name, too."""
    names = theirs.split("::")
    return ours in {names[-1], "".join(names[-2:])}


def types_in(path: Path, text: str) -> set[str]:
    """Return the names of the types that a source defines, nested ones too."""
    if path.suffix == ".pyi":
        return set()
    if path.suffix == ".py":
        return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)}
    if path.suffix == ".hpp":
        return set(CPP_TYPE.findall(CPP_PRIVATE.sub("", CPP_COMMENT.sub("", text))))
    return set(CYTHON_TYPE.findall(CYTHON_EXTERN.sub("", text + "\n")))


def shared_names(root: Path) -> dict[str, list[str]]:
    """Map each name that several types have to the files that define them."""
    places = defaultdict(set)
    for path in sources(root):
        for name in types_in(path, (root / path).read_text()):
            places[name].add(str(unit_of(path)))
    return {name: sorted(files) for name, files in places.items() if len(files) > 1}


def test_no_two_types_share_a_name(root: Path) -> None:
    assert shared_names(root) == {}


def test_cython_calls_a_type_of_cpp_by_its_name(root: Path) -> None:
    texts = [(root / path).read_text() for path in sources(root) if path.suffix in {".pxd", ".pyx"}]
    pairs = [pair for text in texts for pair in ALIAS.findall(text)]
    assert pairs
    assert [pair for pair in pairs if not is_name_of(*pair)] == []


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.py", "class A:\n    class _B: pass\ndef f():\n    class C(A): pass", "A _B C"),
        ("a.pyx", "cdef class A(B):\n    pass\nclass C: pass\ncdef struct D:\n    int x", "A C D"),
        ("a.pxd", "cdef enum class A:\n    x\ncpdef enum B:\n    y", "A B"),
        ("a.pxd", "ctypedef struct A:\n    int x\ncdef class B\ncdef int class_of(A)", "A B"),
        ("a.pyx", 'cdef extern from "x.hpp" nogil:\n    cppclass A:\n\n        int x\n', ""),
        ("a.pyx", 'cdef extern from "x.h":\n    struct A:\n        int x\ncdef class B:\n  0', "B"),
        ("a.pyi", "class A: ...", ""),
        ("a.hpp", "class A;\nstruct B;\nclass C { struct D { int x; }; };", "C D"),
        (
            "a.hpp",
            "class A {\npublic:\n struct B {};\nprivate:\n struct C {};\n};\nstruct D {};",
            "A B D",
        ),
        ("a.hpp", "template <class T, typename U>\nclass A final : public B<T>\n{\n};", "A"),
        ("a.hpp", "enum class A : uint8_t { x };\nstruct alignas(64) B {};\n// class C {", "A B"),
        ("a.hpp", "template <class A> void f(struct B* b) { class_of(b); }", ""),
    ],
)
def test_the_types_of_a_source_are_found(path: str, text: str, names: str) -> None:
    assert types_in(Path(path), text) == set(names.split())


def test_a_name_that_two_languages_share_is_found(tmp_path: Path) -> None:
    texts = {
        "core/a.hpp": "struct Lane { int x; };",
        "core/a.pyx": "cdef class Lane:\n    pass",
        "core/a.pxd": "cdef class Lane:\n    cdef int x",
    }
    write(tmp_path, texts)
    assert shared_names(tmp_path) == {"Lane": ["core/a", "core/a.hpp"]}
