from callboard.scheduling.worker import WorkerThread

def read_records(
    worker: WorkerThread, since: int
) -> tuple[list[tuple[int, int, int, int, int, int]], int]: ...
