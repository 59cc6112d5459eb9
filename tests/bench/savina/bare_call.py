"""The floor for Python actors: a bare bound-method call in a loop."""

from time import perf_counter

from savina.result import Result


class Receiver:
    def receive(self, message: int) -> int:
        return message


def run(n: int) -> Result:
    receive = Receiver().receive
    answer = None
    begin = perf_counter()
    for number in range(n):
        answer = receive(number)
    return Result(n, perf_counter() - begin, got=answer, want=n - 1)
