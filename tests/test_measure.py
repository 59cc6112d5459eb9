"""The measures of the repository (measure.py)."""

from pathlib import Path

from tests import measure
from tests.sources import write


def test_the_house_is_measured(root: Path) -> None:
    now = measure.measure(root)
    assert now.keys() == measure.AIMS.keys()
    assert all(value > 0 for value in now.values())
    assert measure.table(now).splitlines()[0].split() == ["measure", "|", "now", "|", "aim"]


def test_the_places_of_an_addition_are_the_files_of_its_entry() -> None:
    text = "- **A**: a file in `a/b/`; `x` in\n  `c.py`, and `c.py`. **B**: `d.py`\n- **Z**: `e.py`"
    assert measure.places(text, "A") - measure.places(text, "B") == {"a/b/", "c.py", "meson.build"}


def test_members_are_those_of_a_class_and_not_of_every_actor() -> None:
    from callboard import Actor

    class Own(Actor[int]):
        mine = 1

        def receive(self, message: int) -> None:
            pass

    assert measure.members(Own) == set()  # no class of ours
    assert "receive" not in measure.members(Own)
    assert {"spawn", "stash", "ref"} <= measure.members(Actor)


def test_modules_with_one_importer_are_counted_once_for_all_languages(tmp_path: Path) -> None:
    texts = {
        "core/a.hpp": "",
        "core/a.pxd": 'cdef extern from "callboard/core/a.hpp":\n    pass',
        "core/b.py": "import callboard.core.c",
        "core/c.py": "",
        "actors/d.pyx": "from callboard.core.a cimport x",
        "actors/d.pxd": "from callboard.core.a cimport x",
    }
    write(tmp_path, texts)
    assert measure.with_one_importer(tmp_path) == {Path("core/a"), Path("core/c")}
