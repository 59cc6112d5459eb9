"""Threading models of stream graphs: which threads run which operators.

Those of Schneider and Wu 2017, section 2.2, and with `assigned` that of LPEL (Prokesch 2011).
"""

from __future__ import annotations

from typing import Literal

Model = Literal["dynamic", "manual", "dedicated", "assigned"]

MODELS: tuple[Model, ...] = ("dynamic", "manual", "dedicated", "assigned")
