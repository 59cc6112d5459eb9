"""How long to look for a counterexample: `--hypothesis-profile=thorough` for a long hunt."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# The tests here import each other's helpers.
sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "streams",
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("streams")
