"""`python -m callboard health ADDRESS` prints the health of a server, for monitoring."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from callboard import CallboardError
from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.remote.client.connection import connect


def main(arguments: Sequence[str]) -> int:
    """Print a server's health as JSON. Returns 0 if it serves, 1 if it does not."""
    parser = argparse.ArgumentParser(prog="python -m callboard health", description=__doc__)
    parser.add_argument("address", metavar="ADDRESS", help="unix:PATH or tcp:HOST:PORT")
    parser.add_argument("--secret-file", metavar="FILE", help="the server's secret")
    parser.add_argument("--ca-file", metavar="FILE", help="the certificate to trust")
    parser.add_argument(
        "--server-user", metavar="USER", help="of the server at a Unix socket, if it is another"
    )
    parser.add_argument("--timeout", type=float, default=5.0, metavar="S", help="(5)")
    options = parser.parse_args(arguments)
    try:
        checks.seconds("--timeout", options.timeout, zero=False, error=ConfigError)
    except ConfigError as error:
        parser.error(str(error))
    try:
        connection = connect(
            options.address,
            secret_file=options.secret_file,
            ca_file=options.ca_file,
            server_user=options.server_user,
            timeout=options.timeout,
        )
        try:
            health = connection.health().result(options.timeout)
        finally:
            connection.close()
    except CallboardError as error:
        print(f"callboard health: {error}", file=sys.stderr)
        return 1
    print(json.dumps(health))
    return 0 if health["state"] == "serving" else 1
