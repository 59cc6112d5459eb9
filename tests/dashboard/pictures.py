"""Makes the pictures of the dashboard in the docs: `python -m tests.dashboard.pictures FOLDER`."""

from __future__ import annotations

import random
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from callboard import Actor, ActorSystem, BoundedMailbox
from callboard.dashboard import serve_dashboard
from callboard.streams import entry
from tests.dashboard.browser import Browser

SECONDS = 40.0


class Stock(Actor[Any]):
    """Counts articles, slowly."""

    def receive(self, message: Any) -> None:
        """Count one; a number is no article, and fails."""
        for _ in range(2000 + len(message)):
            pass


class Shop(Actor[Any]):
    """Has carts."""

    def __init__(self, carts: int) -> None:
        for i in range(carts):
            self.spawn(Stock, name=f"cart-{i}")

    def receive(self, message: Any) -> None:
        """Do nothing."""


def price(order: int) -> int:
    """Look for a price."""
    for _ in range(3000):
        order += 0
    return order


def main(folder: Path) -> None:
    """Run a shop, look at it for a while, and write the pictures."""
    over = threading.Event()
    choose = random.Random(1)
    with ActorSystem("shop", workers=2, monitoring="mailboxes") as system:
        mailbox = BoundedMailbox(200, overflow="drop_newest")
        stock = system.spawn(Stock, name="stock", mailbox=mailbox, supervision="resume")
        system.spawn(Shop, 8, name="carts")
        late = system.spawn(Stock, name="till")
        late.stop()
        page = serve_dashboard(system)
        valid = entry("clicks").filter(bool, name="valid")
        orders = entry("orders").map(price)
        run = system.run(valid.union(orders).map(str, name="format").collect())

        def feed() -> None:
            while not over.wait(0.02):
                run.send("clicks", range(1, choose.randrange(50, 300)))
                run.send("orders", range(choose.randrange(40, 120)))
                stock.tell_many(["kettle"] * choose.randrange(40))
                if choose.random() < 0.02:
                    late.tell({"article": "lamp", "count": choose.randrange(9)})

        feeder = threading.Thread(target=feed)
        feeder.start()
        stock.tell(7)
        with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
            browser.resize(1100, 1180)
            browser.open(page.url)
            for part in ("forest", "postbox"):
                browser.value(f"document.getElementById('{part}').open = true")
            browser.value("document.getElementById('most').value = 5")
            over.wait(SECONDS)
            browser.picture(folder / "dashboard.png")
            browser.resize(1100, 1180, dark=True)
            browser.picture(folder / "dashboard-dark.png")
        over.set()
        feeder.join()
        run.cancel()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
