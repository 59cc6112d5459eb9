"""The context of a graph: the task that feeds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """Which partition is read, and by which attempt of which task.

    A retried task has the next `attempt_number`; one that runs again because its shuffle output
    was lost has the old number. `task_attempt_id` alone is different for every run of a task
    within a Spark application, so whatever must tell two runs apart uses it.
    """

    partition_id: int = 0
    attempt_number: int = 0
    task_attempt_id: int = 0
    stage_id: int = 0
    cpus: int = 1

    @classmethod
    def current(cls) -> PartitionContext:
        """Return the context of the task that runs now; call it on the task's own thread.

        Outside of a task, where a partition function was called directly, as a unit test may do,
        this is the only attempt at partition 0, on one processor.
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
    """Return the time zone that the session of the task that runs now was told, if any.

    Without one a session is in the zone of its machine.
    """
    try:
        from pyspark.taskcontext import TaskContext
    except ImportError:
        return None
    task = TaskContext.get()
    return None if task is None else task.getLocalProperty("spark.sql.session.timeZone")


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """The question to a graph that outlives its tasks, before the first batch of each."""

    context: PartitionContext


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The question to an entry point after the last batch; its answer ends the partition's results.

    It says that the input ended, not that it was whole: when something upstream fails, Spark ends
    a partition's iterator early and as if nothing had happened. Nothing may be committed on it.
    """

    context: PartitionContext
