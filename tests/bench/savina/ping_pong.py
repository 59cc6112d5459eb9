"""Ping-pong: two actors send a message to and fro, n messages in all; the smallest thread ring."""

from hosts.base import Host
from savina import thread_ring
from savina.result import Result


def run(host: Host, n: int) -> Result:
    return thread_ring.run(host, n, size=2)
