"""Ask: the main program asks an idle actor n times, waiting for each answer."""

from time import perf_counter

from hosts.base import Behaviour, Host
from savina.result import Result


class Echo(Behaviour):
    def receive(self, number: int) -> int:
        return number + 1


def run(host: Host, n: int) -> Result:
    echo = host.spawn(Echo)
    ask = host.ask
    answer = ask(echo, 0)
    begin = perf_counter()
    for _ in range(n):
        answer = ask(echo, answer)
    return Result(n, perf_counter() - begin, got=answer, want=n + 1)
