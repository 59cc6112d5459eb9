"""The threading models of stream graphs, which decide the threads that run an operator.

They are those of Schneider and Wu 2017, section 2.2, and `assigned`, of LPEL (Prokesch 2011).
"""

from __future__ import annotations

from typing import Literal

Model = Literal["dynamic", "manual", "dedicated", "assigned"]

MODELS: tuple[Model, ...] = ("dynamic", "manual", "dedicated", "assigned")
