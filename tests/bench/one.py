"""Run one benchmark on one host and print one line of JSON.

    python tests/bench/one.py MODULE HOST SIZE [OPTION=VALUE ...]

The module is in a folder such as `savina`, `streams` or `nexmark`; the host is one of `hosts`, or
`none`. The line holds `operations` and `seconds`, or a `value`, with `got` and `want`;
or `absent`, with what is not installed. Options that the module's `run` takes are handed to it, the
others to the host; their values are read as JSON where they are JSON.
"""

import importlib
import json
import sys
from dataclasses import replace
from inspect import signature
from typing import Any

from hosts import open_host
from savina.result import Quantity, Result


def parse(option: str) -> tuple[str, Any]:
    name, _, value = option.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def play(module: str, host_name: str, size: int, options: dict[str, Any]) -> Result | Quantity:
    """Run the module; with a host, the messages that it lost are part of what is checked."""
    run = importlib.import_module(module).run
    if host_name == "none":
        result: Result | Quantity = run(size, **options)
        return result
    own = {name: options.pop(name) for name in signature(run).parameters if name in options}
    host = open_host(host_name, **options)
    try:
        result = run(host, size, **own)
        return replace(result, got=[result.got, host.lost()], want=[result.want, 0])
    finally:
        host.close()


def main(arguments: list[str]) -> None:
    module, host, size, *options = arguments
    try:
        result = play(module, host, int(size), dict(map(parse, options)))
    except ModuleNotFoundError as error:
        print(json.dumps({"absent": error.name}))
        return
    print(json.dumps(vars(result)))


if __name__ == "__main__":
    main(sys.argv[1:])
