"""The attempts at tasks, as Spark's event log records them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path


def attempts(folder: Path) -> Counter[str]:
    """Count the attempts at tasks in all logs below a folder, which are not compressed.

    `begun` are all, `repeated` those that followed one that had failed, `speculative` those that
    Spark began while another ran, `won` the speculative ones that ended first. A driver that was
    killed may have left out its last ones.
    """
    found: Counter[str] = Counter()
    for log in folder.rglob("events_*"):
        for line in log.read_text().splitlines():
            # The last line of a driver that was killed may be torn.
            if not line.startswith('{"Event":"SparkListenerTask') or not line.endswith("}"):
                continue
            event = json.loads(line)
            info = event["Task Info"]
            if event["Event"] == "SparkListenerTaskStart":
                found["begun"] += 1
                found["speculative"] += info["Speculative"]
                found["repeated"] += info["Attempt"] > 0 and not info["Speculative"]
            elif event["Event"] == "SparkListenerTaskEnd":
                success = event["Task End Reason"]["Reason"] == "Success"
                found["won"] += info["Speculative"] and success
    return found
