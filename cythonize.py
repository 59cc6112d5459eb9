"""Translate the Cython modules to C++; meson calls this when a source or a declaration has changed.

    cythonize.py FOLDER CYTHON-ARGUMENT... -- MODULE...

FOLDER holds the sources as they are installed. Each MODULE.cpp that is older than what it was made
from is written anew, into the current folder. A module that has no source is the one that holds
Cython's own functions for the others (`--shared`).

Most modules cimport the same declarations, and to read them takes several times as long as to
translate a module. So one process reads them, and each module is translated in a fork of that
process. A fork works on a copy: no module sees what another made of a declaration. The translations
are those of Cython's command, but that includes have another order, and that some inline functions
are there that nobody calls.

CYTHON_KEPT=FOLDER keeps translations for other builds of the same sources: they are the same for
every interpreter.
"""

import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from Cython import __version__ as cython_version
from Cython.Build.Dependencies import create_dependency_tree
from Cython.Build.SharedModule import generate_shared_module
from Cython.Compiler import Errors
from Cython.Compiler.CmdLine import parse_command_line
from Cython.Compiler.Main import Context, run_pipeline
from Cython.Compiler.Options import CompilationOptions

KEPT = os.environ.get("CYTHON_KEPT")


class ReadContext(Context):
    """Knows declarations before the module is known that wants them."""

    read: dict[str, object]

    def read_ahead(self, modules: Iterable[str]) -> None:
        """Read these modules' declarations, and what they cimport."""
        self.read = {}
        for module in modules:
            self.find_module(module)
        if self.utility_pxds:  # they would become part of every module
            raise SystemExit("a .pxd cannot name the type of a memory view: see cythonize.py")
        self.read, self.pxds = self.pxds, {}

    def find_module(self, *args: object, **options: object) -> object:
        """Find a module that is cimported.

        The translation contains the inline functions of all in `pxds`, so only these are put there.
        """
        scope = super().find_module(*args, **options)
        for each in (*scope.cimported_modules, scope):
            if each.qualified_name in self.read:
                self.pxds.setdefault(each.qualified_name, self.read[each.qualified_name])
        return scope


def is_current(output: Path) -> bool:
    """Tell whether a translation is younger than all that it was made from, as Cython named it."""
    try:
        made = output.stat().st_mtime_ns
        inputs = Path(f"{output}.dep").read_text().partition(":")[2].replace("\\\n", " ").split()
        return all(os.stat(each).st_mtime_ns < made for each in (*inputs, __file__))
    except FileNotFoundError:
        return False


def take_kept(module: str) -> bool:
    """Take the translation that another build has kept."""
    found = KEPT is not None and Path(KEPT, module).exists()
    if found:
        shutil.copyfile(Path(KEPT, module), f"{module}.cpp")
    return found


def keep(module: str) -> None:
    """Let other builds have the translation; it is whole when it gets its name."""
    if KEPT is not None:
        os.makedirs(KEPT, exist_ok=True)
        shutil.copyfile(f"{module}.cpp", Path(KEPT, f"{module}.{os.getpid()}"))
        os.rename(Path(KEPT, f"{module}.{os.getpid()}"), Path(KEPT, module))


def translate(context: Context, options: CompilationOptions, module: str, source: str) -> bool:
    """Translate a module; this process is of no use for another."""
    options.output_file = f"{module}.cpp"
    if os.path.exists(source):
        return run_pipeline(source, options, module, context).num_errors == 0
    options.shared_c_file_path, options.shared_utility_qualified_name = options.output_file, None
    options.module_name = module
    Path(f"{module}.cpp.dep").touch()
    return generate_shared_module(options)[0] is None


def in_forks(calls: Iterable[Callable[[], bool]], most: int) -> bool:
    """Make each call in a fork, at most so many at a time, and tell whether all returned True."""
    running, good = 0, True
    for call in calls:
        if running == most:
            good &= os.wait()[1] == 0
            running -= 1
        if os.fork() == 0:
            status = 1
            try:
                status = 0 if call() else 1
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        running += 1
    for _ in range(running):
        good &= os.wait()[1] == 0
    return good


def declarations(folder: str, context: Context, sources: Iterable[str]) -> list[str]:
    """Name the modules with declarations that the sources need, directly or not."""
    tree = create_dependency_tree(context)
    files = set().union(*(tree.all_dependencies(source) for source in sources))
    ours = (os.path.relpath(file, folder) for file in files if file.endswith(".pxd"))
    return sorted(file[:-4].replace("/", ".") for file in ours if not file.startswith(".."))


def size(item: tuple[str, str]) -> int:
    """Return about how much there is to translate; most in Cython's own functions."""
    return os.path.getsize(item[1]) if os.path.exists(item[1]) else 1 << 30


def main(folder: str, *words: str) -> bool:
    """Translate what is not up to date, and tell whether that went well."""
    arguments, modules = words[: words.index("--")], words[words.index("--") + 1 :]
    asked = Path("cythonize.arguments")  # of the last time
    asking = f"{cython_version} {arguments}"
    same = asked.exists() and asked.read_text() == asking
    sources = {
        module: f"{folder}/{module.replace('.', '/')}.pyx"
        for module in modules
        if not (same and is_current(Path(f"{module}.cpp"))) and not take_kept(module)
    }
    if not sources:
        return True
    found = [source for source in sources.values() if os.path.exists(source)]
    parsed, _ = parse_command_line(["-I", folder, *arguments, *found])
    options = CompilationOptions(parsed, depfile=True)
    context = ReadContext.from_options(options)
    Errors.open_listing_file(None)
    context.read_ahead(declarations(folder, context, found))
    if Errors.get_errors_count():
        return False
    largest_first = sorted(sources.items(), key=size, reverse=True)
    calls = [lambda item=item: translate(context, options, *item) for item in largest_first]
    if not in_forks(calls, len(os.sched_getaffinity(0))):
        return False
    for module in sources:
        keep(module)
    asked.write_text(asking)
    return True


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
