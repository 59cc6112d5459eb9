// Workers that are suspended and resumed, while actors send messages to each other. Each message is handled once,
// none is lost, and an actor that wants the token runs on one thread at a time with the others that want it.
#include <memory>
#include <vector>

#include "stress_team.hpp"

using namespace callboard;
using namespace stress;

namespace {

struct Show;

// A message is a number of hops that are left: the actor sends it on to the next one.
struct Actor {
    Actor(Show& show, std::uint32_t flags) : show(show) { cell.set(flags); }

    static Outcome run(Cell* cell, Context* context, std::uint32_t quantum);

    void tell(std::int64_t hops, Context* context) {
        waiting.fetch_add(hops, relaxed);
        if (cell.tail.push(static_cast<ThreadContext*>(context)->small.take(cell.spare))) make_ready(&cell, context);
    }

    Show& show;
    Actor* next{nullptr};
    Atomic<std::int64_t> waiting{0};  // hops of its messages, in all
    std::int64_t handled{0};          // plain: a dispatch on two threads at once is a data race
    Cell cell{run, this, 0};
};

struct Show : StressTeam {
    static constexpr int actors = 24;

    std::vector<std::unique_ptr<Actor>> cast;
    std::int64_t with_token{0};  // plain, of those that want it
    alignas(cache_line) Atomic<std::int64_t> left{0};  // messages on their way

    explicit Show(int count) : StressTeam(count) {
        // A third of the actors is placed, a third runs where it is woken, and a third wants the token.
        constexpr std::uint32_t kinds[] = {0, unpinned_cell, wants_token};
        for (std::size_t i = 0; i < actors; ++i) {
            cast.push_back(std::make_unique<Actor>(*this, kinds[i % 3]));
            cast.back()->cell.affinity.store(&workers[i % workers.size()], relaxed);
        }
        ThreadContext context;
        for (std::size_t i = 0; i < actors; ++i) {
            cast[i]->next = cast[(i + 1) % actors].get();
            make_ready(&cast[i]->cell, &context);  // a new cell is not idle
        }
    }

    void set_level(std::size_t level) {
        for (std::size_t i = 0; i < workers.size(); ++i)
            workers[i].stand_in.store(i < level ? nullptr : &workers[i % level], release);
        for (Worker& worker : workers) worker.parker.unpark();
    }

    // In each round some messages start, and all of them end at any level.
    void direct(Rounds& rounds) {
        ThreadContext context;
        Random random(0);
        for (int round = 1; rounds.go_on(round); ++round) {
            const auto count = 1 + random.below(4);
            left.fetch_add(count, relaxed);
            for (std::uint32_t i = 0; i < count; ++i)
                cast[random.below(actors)]->tell(random.below(200), &context);
            const std::int64_t limit = monotonic_ns() + patience;
            for (auto changes = random.below(8); left.load(acquire) != 0;) {
                if (changes != 0 && random.below(4) == 0) {
                    --changes;
                    set_level(1 + random.below(static_cast<std::uint32_t>(workers.size())));
                }
                random.pause();
                if (monotonic_ns() > limit) check::give_up(__FILE__, __LINE__, "a message does not come on");
            }
        }
        stop();
    }

    void play_for(Rounds rounds) {
        together(static_cast<int>(workers.size()) + 1, [&](int index) {
            if (index == 0) direct(rounds);
            else work(workers[static_cast<std::size_t>(index - 1)]);
        });
        std::int64_t handled = 0, waiting = 0, with = 0;
        for (auto& actor : cast) {
            handled += actor->handled;
            waiting += actor->waiting.load(relaxed);
            if (actor->cell.has(wants_token)) with += actor->handled;
        }
        CHECK(handled > 0);
        CHECK_EQUAL(waiting, 0);
        CHECK_EQUAL(with, with_token);
    }
};

Outcome Actor::run(Cell* cell, Context* context, std::uint32_t quantum) {
    Actor& actor = *static_cast<Actor*>(cell->owner);
    Node* spent = nullptr;
    for (std::uint32_t i = 0; i < quantum; ++i) {
        if (cell->head.pop(spent) == nullptr) return cell->try_idle() ? Outcome::done : Outcome::more;
        static_cast<ThreadContext*>(context)->small.give(spent, cell->spare);
        ++actor.handled;
        if (cell->has(wants_token)) ++actor.show.with_token;
        // Which of its messages that is makes no difference: their hops are one sum.
        const std::int64_t hops = actor.waiting.exchange(0, relaxed);
        if (hops > 0) actor.next->tell(hops - 1, context);
        else actor.show.left.fetch_sub(1, release);
    }
    return Outcome::more;
}

}  // namespace

TEST("every message comes on while workers are suspended and resumed") {
    Show(2).play_for(Rounds(2000));
    Show(4).play_for(Rounds(2000));
}

CHECK_MAIN
