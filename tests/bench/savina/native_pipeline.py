"""The pipeline as the native programs play it: 1,000 stages and 16,384 items in flight.

So many that two workers with half the stages each both have enough to do.
"""

from hosts.base import Host
from savina import pipeline
from savina.result import Result


def run(host: Host, n: int) -> Result:
    return pipeline.run(host, n, stages=1_000, window=16_384)
