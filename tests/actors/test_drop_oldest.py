"""Senders that drop the oldest message pop from a mailbox at the same time as its receiver."""

import subprocess
import sys

# In a process of its own: the failure that it hunts is a worker that never lets the interpreter go,
# which no thread of this process could end.
PROGRAM = """
import threading
from callboard import Actor, ActorSystem, BoundedMailbox

class Counter(Actor):
    def __init__(self):
        self.received = 0
    def receive(self, message):
        if message is None:
            return self.received
        self.received += 1

SENDERS, MESSAGES = 3, 3000
with ActorSystem(workers=2) as system:
    dropped = []
    system.dead_letters.subscribe(lambda letter: dropped.append(letter.message))
    counter = system.spawn(Counter, mailbox=BoundedMailbox(4, overflow="drop_oldest"))
    def send(sender):
        for number in range(MESSAGES):
            counter.tell((sender, number))
    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    system.drain(timeout=30)
    received = counter.ask(None).result(timeout=30)
    assert received + len(dropped) == SENDERS * MESSAGES, (received, len(dropped))
    assert dropped, "nothing was dropped, so nothing was tried"
"""


def test_every_message_is_received_or_dropped_while_senders_and_receiver_pop() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
