"""The paper's heuristics by the names that it gives them, for benchmarks of its figures."""

from callboard.scheduling.flow.heuristics import (
    CurrentThroughput,
    EstimatedTime,
    Heuristic,
    LastInPipeline,
    QueueSizeThrottling,
)


def heuristic(name: str, *, rows: int) -> Heuristic:
    """Make the heuristic of a run that lets so many rows in at most.

    QST has room for a quarter of them: with more than all of them it would never throttle. "LP" is
    the paper's; "LP following" is the product's default.
    """
    match name:
        case "CT":
            return CurrentThroughput()
        case "LP":
            return LastInPipeline(follow=False)
        case "LP following":
            return LastInPipeline()
        case "ET":
            return EstimatedTime()
        case "QST":
            return QueueSizeThrottling(max(1, rows // 4))
    raise ValueError(f"no heuristic {name!r}")
