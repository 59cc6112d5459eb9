"""`callboard demo`: a simulated shop, to be watched with `callboard top`."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from typing import Any

from callboard.actor import Actor
from callboard.mailboxes import BoundedMailbox
from callboard.system import ActorSystem

NAME = "demo"
ARTICLES = ("iron", "kettle", "lamp", "radio", "toaster")
BURST = 200
"""Orders in a tick of the door, a tenth of a second."""


class Stock(Actor[str]):
    """Counts articles. It is the slowest actor of the shop, and has a bounded mailbox."""

    def __init__(self) -> None:
        self.sold = dict.fromkeys(ARTICLES, 0)

    def receive(self, article: str) -> int:
        """Sell an article. Answers how many were sold so far."""
        for _ in range(500):  # it looks for it
            self.sold[article] += 0
        self.sold[article] += 1
        return sum(self.sold.values())


class Cart(Actor[str]):
    """Asks the stock for an article, and waits for the answer."""

    def __init__(self, stock: Any) -> None:
        self.stock = stock

    async def receive(self, article: str) -> None:
        """Buy an article."""
        await self.stock.ask(article)


def main(arguments: Sequence[str]) -> int:
    """Run a small shop, to be looked at with `callboard top` from another terminal."""
    parser = argparse.ArgumentParser(prog="callboard demo", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the shop is open")
    seconds = parser.parse_args(arguments).seconds
    if not 0 <= seconds <= 86_400:
        parser.error(f"--seconds must be from 0 to 86400, got {seconds}")
    choose = random.Random(1)
    with ActorSystem(NAME, workers=2, monitoring="mailboxes", observable=True) as system:
        stock = system.spawn(Stock, name="stock", mailbox=BoundedMailbox(100))
        carts = [system.spawn(Cart, stock, name=f"cart-{i}") for i in range(8)]
        print(f"The shop is open for {seconds:g} s. Look at it from another terminal:")
        print(f"    callboard top {NAME}", flush=True)
        end = time.monotonic() + seconds
        orders = 0
        try:
            while True:
                for _ in range(BURST):
                    choose.choice(carts).tell(choose.choice(ARTICLES))
                orders += BURST
                left = end - time.monotonic()
                if left <= 0:
                    break
                time.sleep(min(left, 0.1))
        except KeyboardInterrupt:
            pass
        system.drain()
    print(f"{orders:,} orders")
    return 0
