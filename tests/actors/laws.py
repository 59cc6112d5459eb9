"""Laws that hold in every run of every program, in any interleaving."""

from __future__ import annotations

from collections import Counter, defaultdict

from callboard import ActorStopped, AskTimeout, MailboxFull, Terminated
from tests.actors.programs import ScriptedFailure, ScriptMessage, World

REASONS = {"stopped", "failed", "refused", "dropped_newest", "dropped_oldest", "system stopped"}


def check_idle(world: World) -> None:
    """Check what holds when nothing is under way any more, while actors are alive."""
    no_message_has_two_fates(world)
    senders_order_is_kept(world)
    the_stopped_have_ended(world)
    the_ended_handle_nothing_more(world)
    each_watcher_hears_of_each_end_once(world)


def check_at_end(world: World) -> None:
    """Check what holds when the system has stopped."""
    assert world.system.actors == []
    alive = [account.ref for account in world.actors if account.ref.is_alive]
    assert alive == [], f"{alive} outlived their system"
    no_message_has_two_fates(world)
    no_message_is_lost(world)
    each_dead_letter_has_its_reason(world)
    each_ask_has_its_answer(world)
    senders_order_is_kept(world)
    the_ended_handle_nothing_more(world)
    each_start_has_its_stop(world)


def the_stopped_have_ended(world: World) -> None:
    alive = [ref for ref in world.stopped if ref.is_alive]
    assert alive == [], f"{alive} were stopped, and live"


def fates(world: World) -> Counter[tuple[int, int]]:
    """Count for each message how often it was handled, or died."""
    count: Counter[tuple[int, int]] = Counter()
    handled = {about for what, _, about in world.events if what == "handled"}
    count.update(about for what, _, about in world.events if what == "handled")
    for dead in world.dead:
        # On the event loop a message fails after its handler if one that this sent found no room.
        fails_late = isinstance(dead.error, MailboxFull) and dead.reason == "failed"
        if isinstance(dead.message, ScriptMessage) and not (
            fails_late and dead.message.uid in handled
        ):
            count[dead.message.uid] += 1
    return count


def no_message_has_two_fates(world: World) -> None:
    twice = {uid: count for uid, count in fates(world).items() if count > 1}
    assert not twice, f"handled or dead more than once: {twice}"


def no_message_is_lost(world: World) -> None:
    known = fates(world)
    free = {
        message.uid for message in world.sent if message.late
    }  # its timer may have ended before
    free |= {message.uid for chunk in world.unsure for message in chunk}
    free |= {
        message.uid
        for message, future in world.asks
        if isinstance(future.exception(timeout=0), MailboxFull | AskTimeout)  # may be refused late
    }
    refused = {message.uid for message in world.refused}
    lost = [
        message
        for message in world.sent
        if message.uid not in free and message.uid not in refused and message.uid not in known
    ]
    assert not lost, f"neither handled nor dead: {lost}"
    wrong = [uid for uid in refused if uid in known]
    assert not wrong, f"refused, and yet handled or dead: {wrong}"
    for chunk in world.unsure:
        arrived = [message.uid in known for message in chunk]
        assert arrived == sorted(arrived, reverse=True), f"sent after one was refused: {chunk}"
        assert not all(arrived), f"all sent, and yet one was refused: {chunk}"


def each_dead_letter_has_its_reason(world: World) -> None:
    assert world.system.dead_letters.count == len(world.dead)
    for dead in world.dead:
        assert dead.reason in REASONS, dead
        if dead.reason == "failed":
            assert isinstance(dead.error, ScriptedFailure | MailboxFull), dead


def each_ask_has_its_answer(world: World) -> None:
    dead = {d.message.uid: d for d in world.dead if isinstance(d.message, ScriptMessage)}
    handled = {about for what, _, about in world.events if what == "handled"}
    for message, future in world.asks:
        assert future.done(), f"{message} is neither answered nor failed"
        match future.exception():
            case None:
                assert future.result() == message.uid
                assert message.uid in handled
            case ScriptedFailure():
                assert dead[message.uid].reason == "failed"
            case ActorStopped():
                assert message.uid in dead
            case MailboxFull() | AskTimeout():
                pass
            case error:
                raise AssertionError(f"{message} was answered with {error!r}")


def senders_order_is_kept(world: World) -> None:
    late = {message.uid for message in world.sent if message.late}
    plain = {
        account.key
        for account in world.actors
        if account.kind is not None and account.kind.is_plain and not account.stashed
    }
    latest: dict[tuple[int, int], int] = defaultdict(int)
    for what, receiver, about in world.events:
        if what == "began" and receiver in plain and about not in late:
            sender, number = about
            before = latest[sender, receiver]
            assert number > before, f"{receiver} took message {number} of {sender} after {before}"
            latest[sender, receiver] = number


def the_ended_handle_nothing_more(world: World) -> None:
    keys = {account.ref: account.key for account in world.actors}
    ended: set[int] = set()
    for what, actor, about in world.events:
        if what == "saw the end of":
            ended.add(keys[about])
        assert actor not in ended, f"actor {actor} {what} {about} after its end"


def each_watcher_hears_of_each_end_once(world: World) -> None:
    heard: Counter[tuple[object, object]] = Counter()
    refs = {account.key: account.ref for account in world.actors}
    for what, watcher, about in world.events:
        if what == "saw the end of":
            heard[refs[watcher], about] += 1
    for dead in world.dead:
        if isinstance(dead.message, Terminated):
            heard[dead.recipient, dead.message.ref] += 1
    for account in world.actors:
        for other in account.watched:
            count = heard[account.ref, other]
            if other.is_alive:
                assert count == 0, f"{account.ref} heard of the end of {other}, which lives"
            elif account.ref.is_alive and other.parent is not account.ref:  # or a restart ended it
                assert count == 1, f"{account.ref} heard {count} times of the end of {other}"
            else:
                assert count <= 1, f"{account.ref} heard {count} times of the end of {other}"


def each_start_has_its_stop(world: World) -> None:
    for account in world.actors:
        assert account.starts == account.stops, (
            f"{account.ref} was started {account.starts} times and stopped {account.stops} times"
        )
