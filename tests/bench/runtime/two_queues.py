"""Two threads that answer each other over two SimpleQueues, for comparison with an ask."""

from queue import SimpleQueue
from threading import Thread
from time import perf_counter

from savina.result import Result


def run(n: int) -> Result:
    questions: SimpleQueue[int | None] = SimpleQueue()
    answers: SimpleQueue[int] = SimpleQueue()

    def echo() -> None:
        while (number := questions.get()) is not None:
            answers.put(number + 1)

    thread = Thread(target=echo)
    thread.start()
    answer = 0
    begin = perf_counter()
    for _ in range(n):
        questions.put(answer)
        answer = answers.get()
    seconds = perf_counter() - begin
    questions.put(None)
    thread.join()
    return Result(n, seconds, got=answer, want=n)
