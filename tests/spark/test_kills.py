"""Every process that delivers rows to shards is killed once: no row is lost or doubled.

CALLBOARD_SPARK_KILLS says how often (4), CALLBOARD_KILLS_SEED from which seed on (0); `soak.py`
goes on for longer, and with speculation.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from soak import KINDS, Soak, summary

KILLS = int(os.environ.get("CALLBOARD_SPARK_KILLS", "4"))
SEED = int(os.environ.get("CALLBOARD_KILLS_SEED", "0"))


@pytest.mark.timeout(300 + 60 * KILLS)
def test_kills_anywhere_lose_and_double_nothing(tmp_path: Path) -> None:
    with Soak(tmp_path, "local-cluster[2,1,1024]") as soak:
        for kill in range(KILLS):
            soak.round(KINDS[kill % len(KINDS)], SEED + kill)
        soak.finish()
    assert soak.batches >= KILLS
    print(summary(soak))
