// Cells on two workers, or four that steal: messages, system messages, and actors that wait in the middle of one.
//
// The loop and the actors' dispatch are those of the runtime's worker and Python dispatch, less the
// interpreter. The oracle: all that was sent is received, in each sender's order, and afterwards
// every cell is idle and nobody asleep has work.
#include <algorithm>
#include <memory>

#include "callboard/_inside/sending/system_kind.hpp"
#include "stress_team.hpp"

using namespace callboard;
using namespace stress;

namespace {

constexpr int actors = 3, producers = 2;
constexpr std::uint32_t quantum = 8;
constexpr int wait_every = 5;  // an actor waits to be resumed after so many messages

struct Actor {
    static Outcome run(Cell* cell, Context* context, std::uint32_t quantum);

    Cell cell{run, this, 0};
    Ledger messages{producers}, watches{producers};
    bool suspended = false;
    int inside = 0, most_inside = 0, dispatches = 0;
    alignas(cache_line) Atomic<std::int64_t> received{0};  // of both kinds, for the main thread
    Atomic<int> wants_resume{0};
};

Node* node_for(Cell& cell, Context* context, Kind kind, std::int64_t value) {
    Node* node = static_cast<ThreadContext*>(context)->small.take(cell.spare);
    node->kind = kind;
    node->integer = value;
    return node;
}

void send(Actor& to, Context* context, std::int64_t value) {
    if (to.cell.tail.push(node_for(to.cell, context, Kind::integer, value)))
        make_ready(&to.cell, context);
}

void send_system(Actor& to, Context* context, SystemKind kind, std::int64_t value) {
    if (to.cell.push_system(node_for(to.cell, context, static_cast<Kind>(kind), value))) make_ready(&to.cell, context);
}

// Handles system messages until the actor may take others (true), or waits and is nobody's (false).
bool handle_system(Actor& actor, Context* context) {
    for (;;) {
        for (Node* node = actor.cell.take_system(); node != nullptr;) {
            Node* following = node->next.load(relaxed);
            if (static_cast<SystemKind>(node->kind) == SystemKind::resume) {
                actor.suspended = false;
            } else {
                actor.watches.receive(node->integer);
                actor.received.fetch_add(1, relaxed);
            }
            static_cast<ThreadContext*>(context)->small.give(node, actor.cell.spare);
            node = following;
        }
        if (!actor.suspended) {
            if (!actor.cell.has_system()) return true;
            continue;
        }
        --actor.inside;
        if (actor.cell.try_wait()) return false;
        ++actor.inside;
    }
}

Outcome Actor::run(Cell* cell, Context* context, std::uint32_t quantum) {
    Actor& actor = *static_cast<Actor*>(cell->owner);
    actor.most_inside = std::max(actor.most_inside, ++actor.inside);
    ++actor.dispatches;
    std::uint32_t handled = 0;
    do {
        if ((actor.suspended || cell->has_system()) && !handle_system(actor, context)) return Outcome::done;
        Node* spent = nullptr;
        while (handled < quantum && !actor.suspended && !cell->has_system()) {
            Node* node = cell->head.pop(spent);
            if (node == nullptr) break;
            ++handled;
            actor.messages.receive(node->integer);
            static_cast<ThreadContext*>(context)->small.give(spent, cell->spare);
            if (actor.messages.received() % wait_every == 0) {
                actor.suspended = true;
                actor.wants_resume.fetch_add(1, relaxed);
            }
            actor.received.fetch_add(1, relaxed);
        }
    } while (handled < quantum && (actor.suspended || cell->has_system()));
    --actor.inside;
    if (!actor.suspended && handled < quantum && cell->try_idle()) return Outcome::done;
    return Outcome::more;
}

struct Stage : StressTeam {
    std::unique_ptr<Actor[]> cast{new Actor[actors]};
    const int most_rounds, messages;  // of each producer to each actor, `messages` in a round
    Atomic<std::int64_t> sent{0};     // to each actor, of each kind
    Atomic<int> sending{producers};

    Stage(std::uint32_t flags, int rounds, int messages, int count = 2)
        : StressTeam(count, flags & unpinned_cell, quantum), most_rounds(rounds), messages(messages) {
        ThreadContext context;
        for (int i = 0; i < actors; ++i) {
            cast[i].cell.affinity.store(&workers[static_cast<std::size_t>(i % count)], relaxed);
            cast[i].cell.set(flags);
            make_ready(&cast[i].cell, &context);
        }
    }

    // A system message after each message; after each round, wait until every actor was idle once.
    void produce(int producer) {
        ThreadContext context;
        Random random(static_cast<std::uint64_t>(producer));
        Rounds rounds(most_rounds);
        int number = 0;
        for (int round = 1; rounds.go_on(round); ++round) {
            for (int i = 0; i < messages; ++i, ++number) {
                for (int to = 0; to < actors; ++to) {
                    send(cast[to], &context, stamp(producer, number));
                    send_system(cast[to], &context, SystemKind::watch, stamp(producer, number));
                }
                random.pause();
            }
            for (int to = 0; to < actors; ++to) await([&] { return cast[to].cell.tail.is_idle(); });
        }
        sent.fetch_add(number, relaxed);
        sending.fetch_sub(1, release);
    }

    bool is_over() const {
        if (sending.load(acquire) != 0) return false;
        for (int i = 0; i < actors; ++i) {
            if (cast[i].received.load(relaxed) != 2 * sent.load(relaxed)) return false;
            if (!cast[i].cell.tail.is_idle()) return false;
        }
        return true;
    }

    // Resumes who waits, until all is received and everybody idle, or nothing moves any more.
    void resume_and_watch() {
        ThreadContext context;
        Random random(producers);
        std::int64_t seen = -1, since = monotonic_ns();
        while (!is_over()) {
            std::int64_t now = 0;
            for (int i = 0; i < actors; ++i) {
                for (int left = cast[i].wants_resume.exchange(0, relaxed); left != 0; --left)
                    send_system(cast[i], &context, SystemKind::resume, 0);
                now += cast[i].received.load(relaxed);
            }
            if (now != seen) {
                seen = now;
                since = monotonic_ns();
            } else if (monotonic_ns() - since > patience) {
                check::give_up(__FILE__, __LINE__, "a lost wake-up, or an actor that cannot go idle");
            }
            random.pause();
        }
        stop();
    }

    void play() {
        together(static_cast<int>(workers.size()) + producers + 1, [&](int index) {
            if (index < producers) return produce(index);
            if (index == producers) return resume_and_watch();
            work(workers[static_cast<std::size_t>(index - producers - 1)]);
        });
        for (int i = 0; i < actors; ++i) {
            CHECK_EQUAL(cast[i].messages.received(), sent.load(relaxed));
            CHECK_EQUAL(cast[i].messages.wrong(), 0);
            CHECK_EQUAL(cast[i].watches.received(), sent.load(relaxed));
            CHECK_EQUAL(cast[i].watches.wrong(), 0);
            CHECK_EQUAL(cast[i].most_inside, 1);
            CHECK(cast[i].cell.tail.is_idle());
        }
        CHECK(sent.load(relaxed) > 0);
        CHECK(shared.token.try_own());
    }
};

}  // namespace

TEST("a system message that meets the beginning of a wait is not lost") {
    Rounds rounds(300000);
    Cell cell(nullptr, nullptr, 0);
    Atomic<int> wanted{0};
    Atomic<bool> readied{false};
    together(2, [&](int index) {
        SmallCache nodes;
        Random random(static_cast<std::uint64_t>(index));
        if (index == 0) {
            for (int sent = 0;;) {
                await([&] { return wanted.load(relaxed) > sent || rounds.over(); });
                if (rounds.over()) return;
                ++sent;
                for (auto i = random.below(32); i != 0; --i) asm volatile("");
                if (cell.push_system(nodes.take(cell.spare))) readied.store(true, release);
            }
        }
        for (int round = 1; rounds.go_on(round); ++round) {
            wanted.store(round, relaxed);
            for (auto i = random.below(64); i != 0; --i) asm volatile("");
            Node* node = nullptr;
            while (node == nullptr) {  // it may be woken by the last round's sender, and then waits again
                if (cell.try_wait()) {
                    const std::int64_t limit = monotonic_ns() + patience;
                    await([&] { return readied.load(acquire) || monotonic_ns() > limit; });
                    if (!readied.load(acquire)) check::give_up(__FILE__, __LINE__, "a lost wake-up");
                    readied.store(false, relaxed);
                }
                node = cell.take_system();
            }
            nodes.give(node, cell.spare);
        }
    });
    CHECK(wanted.load(relaxed) > 0);
    CHECK(!cell.is_waiting());
    CHECK(!cell.has_system());
}

TEST("no wake-up is lost between two workers under load") { Stage(0, 1, 60000).play(); }

TEST("no wake-up is lost when each message may be the last") { Stage(0, 10000, 2).play(); }

TEST("no wake-up is lost when one worker at a time may run the cells") {
    Stage(wants_token, 1, 60000).play();
    Stage(wants_token, 10000, 2).play();
}

TEST("no wake-up is lost between workers that steal") {
    Stage(unpinned_cell, 1, 60000).play();
    Stage(unpinned_cell, 10000, 2).play();
    Stage(unpinned_cell, 1, 30000, 4).play();
    Stage(unpinned_cell, 5000, 2, 4).play();
}

CHECK_MAIN
