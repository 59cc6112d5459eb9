"""Restart an actor that fails, and decide by the error when to stop it instead.

Prints:

    balance 50
    refused: cannot take 80 from 50
    balance 40
    failed: a transfer of 'ten'
    balance 5
"""

from callboard import Actor, ActorRef, ActorSystem, Supervision
from callboard.supervision import Directive


class Refused(Exception):
    """The account is as it was."""


class Account(Actor[object]):
    def __init__(self) -> None:
        self.balance = 0

    def receive(self, amount: object) -> str:
        if not isinstance(amount, int):
            raise TypeError(f"a transfer of {amount!r}")
        if self.balance + amount < 0:
            raise Refused(f"cannot take {-amount} from {self.balance}")
        self.balance += amount
        return f"balance {self.balance}"


def decide(error: BaseException) -> Directive:
    """Keep the account after an error that left it whole; otherwise make a new one."""
    return "resume" if isinstance(error, Refused) else "restart"


def transfer(account: ActorRef[object], amount: object) -> None:
    try:
        print(account.ask(amount).result(timeout=30.0))
    except Refused as error:
        print("refused:", error)
    except TypeError as error:
        print("failed:", error)


if __name__ == "__main__":
    with ActorSystem() as system:
        account = system.spawn(Account, supervision=Supervision(decide, limit=3, window=60.0))
        for amount in (50, -80, -10, "ten", 5):
            transfer(account, amount)
