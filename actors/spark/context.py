"""The context of a graph: the task that feeds it, and its messages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """The partition of a task, and its attempt.

    A retried task has the next `attempt_number`, but one that runs again because its shuffle output
    was lost has the old number. Only `task_attempt_id` is different for each run of a task in a
    Spark application, so use it to distinguish runs.
    """

    partition_id: int = 0
    attempt_number: int = 0
    task_attempt_id: int = 0
    stage_id: int = 0
    cpus: int = 1

    @classmethod
    def current(cls) -> PartitionContext:
        """Return the context of the current task; call it on the task's own thread.

        Outside a task, for example in a unit test of a partition function, it is the only attempt
        at partition 0, on one processor.
        """
        try:
            from pyspark.taskcontext import TaskContext
        except ImportError:
            return cls()
        task = TaskContext.get()
        if task is None:
            return cls()
        return cls(
            partition_id=task.partitionId(),
            attempt_number=task.attemptNumber(),
            task_attempt_id=task.taskAttemptId(),
            stage_id=task.stageId(),
            cpus=max(1, task.cpus()),
        )


def session_zone() -> str | None:
    """Return the configured time zone of the current task's session, if any.

    By default a session has the zone of its machine.
    """
    try:
        from pyspark.taskcontext import TaskContext
    except ImportError:
        return None
    task = TaskContext.get()
    return None if task is None else task.getLocalProperty("spark.sql.session.timeZone")


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """Asked first in each task, of a graph that outlives its tasks."""

    context: PartitionContext


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """Asked to an entry point after the last batch; its answer ends the results.

    It means that the input ended, not that it was complete: after a failure upstream, Spark ends a
    partition's iterator early, without an error. So do not commit because of it.
    """

    context: PartitionContext
