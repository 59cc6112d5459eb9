"""Give up on a user who says nothing for five minutes; test it in no time.

Prints:

    at 0 s: hello
    at 240 s: still there
    at 540 s: asleep since 300 s
"""

from callboard import Actor, ActorRef
from callboard.testing import ManualSystem

PATIENCE = 300.0


class Silent:
    """Sent to a session by its timer."""


class Session(Actor[str | Silent]):
    def __init__(self, log: ActorRef[str]) -> None:
        self.log = log

    def on_start(self) -> None:
        self.timer = self.after(PATIENCE, Silent())

    def receive(self, message: str | Silent) -> None:
        if isinstance(message, Silent):
            self.log.tell(f"asleep since {PATIENCE:.0f} s")
            self.stop()
        else:
            self.timer.cancel()  # not silent after all: wait again
            self.timer = self.after(PATIENCE, Silent())
            self.log.tell(message)


if __name__ == "__main__":
    # In production this is an ActorSystem, and time passes by itself.
    with ManualSystem() as system:
        log = system.probe()
        session = system.spawn(Session, log.ref)
        session.tell("hello")
        print(f"at {system.now:.0f} s: {log.receive_one()}")
        system.advance(240.0)
        session.tell("still there")
        print(f"at {system.now:.0f} s: {log.receive_one()}")
        message = log.receive_one(timeout=1000.0)
        print(f"at {system.now:.0f} s: {message}")
        assert not session.is_alive
