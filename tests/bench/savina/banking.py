"""Banking: a teller has n transfers made between 1,000 accounts.

The account that pays waits for the answer of the one that is paid before it pays again; what comes
meanwhile is kept for later. Being paid needs no waiting, so two accounts may pay each other.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from hosts.base import Behaviour, Host, Ref
from savina.result import Result
from usage import Watch

ACCOUNTS = 1_000
START = -1
REPORT = -2
PAID = None

Transfer = tuple[int, int, int]  # from, to, amount


def transfers(n: int) -> Iterator[Transfer]:
    """Choose by a linear congruential generator, as the native programs do."""
    random = 2
    for _ in range(n):
        random = (random * 1103515245 + 12345) & 0x7FFFFFFF
        payer, step = (random >> 8) % ACCOUNTS, (random >> 8) // ACCOUNTS
        yield payer, (payer + 1 + step % (ACCOUNTS - 1)) % ACCOUNTS, 1 + random % 99


class Account(Behaviour):
    """Messages: a transfer to make, (an amount, its payer) to take, PAID, and REPORT."""

    def __init__(self, number: int, accounts: list[Ref], teller: list[Ref]) -> None:
        self.number = number
        self.accounts = accounts
        self.teller = teller
        self.balance = 0
        self.paying = False
        self.later: deque[Transfer] = deque()

    def receive(self, message: Any) -> int:
        if message is PAID:
            self.paying = False
            self.teller[0].tell(PAID)
            if self.later:
                self.pay(self.later.popleft())
        elif message == REPORT:
            pass
        elif len(message) == 3:
            if self.paying:
                self.later.append(message)
            else:
                self.pay(message)
        else:
            amount, payer = message
            self.balance += amount
            self.accounts[payer].tell(PAID)
        return self.balance

    def pay(self, transfer: Transfer) -> None:
        _, payee, amount = transfer
        self.paying = True
        self.balance -= amount
        self.accounts[payee].tell((amount, self.number))


class Teller(Behaviour):
    """Order the next transfer whenever one is done; START orders the first of them."""

    def __init__(self, orders: list[Transfer], accounts: list[Ref], done: Any) -> None:
        self.orders = iter(orders)
        self.open = len(orders)
        self.accounts = accounts
        self.done: Callable[[int], object] = done

    def receive(self, message: Any) -> None:
        if message is PAID:
            self.open -= 1
            self.order()
            if self.open == 0:
                self.done(0)
        else:
            for _ in range(ACCOUNTS):
                self.order()

    def order(self) -> None:
        transfer = next(self.orders, None)
        if transfer is not None:
            self.accounts[transfer[0]].tell(transfer)


def run(host: Host, n: int) -> Result:
    orders = list(transfers(n))
    accounts: list[Ref] = []
    teller: list[Ref] = []
    accounts += [host.spawn(Account, number, accounts, teller) for number in range(ACCOUNTS)]
    teller.append(host.spawn(Teller, orders, accounts, host.done))
    watch = Watch()
    host.feed(teller[0], [START])
    host.wait()
    spent = watch.stop()
    expected = [0] * ACCOUNTS
    for payer, payee, amount in orders:
        expected[payer] -= amount
        expected[payee] += amount
    balances = [host.ask(account, REPORT) for account in accounts]
    return Result(4 * n, got=balances, want=expected, **spent)
