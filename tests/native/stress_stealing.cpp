// Workers that steal. An actor stays in its dispatch until others have run, which it woke, or which were told from
// outside. That ends only if another worker comes for them, whether it was watching, napping, sleeping or throttled. In
// some cases a placed actor, which no worker may take, occupies a worker for some time, or the watcher until the end.
// Workers also give back cells that they took.
#include <memory>
#include <vector>

#include "stress_team.hpp"

using namespace callboard;
using namespace stress;

namespace {

struct Show;

// Acts when a message comes, once for all that wait.
struct Actor {
    Actor(Show& show, void (*act)(Actor&, Context*), std::uint32_t flags = unpinned_cell) : show(show), act(act) {
        cell.set(flags);
    }

    static Outcome run(Cell* cell, Context* context, std::uint32_t) {
        Actor& actor = *static_cast<Actor*>(cell->owner);
        Node* spent = nullptr;
        while (cell->head.pop(spent) != nullptr) {
            static_cast<ThreadContext*>(context)->small.give(spent, cell->spare);
            actor.act(actor, context);
        }
        return cell->try_idle() ? Outcome::done : Outcome::more;
    }

    void tell(Context* context) {
        if (cell.tail.push(static_cast<ThreadContext*>(context)->small.take(cell.spare))) make_ready(&cell, context);
    }

    Show& show;
    void (*const act)(Actor&, Context*);
    Cell cell{run, this, 0};
};

struct Show : StressTeam {
    static constexpr int helpers = 3;

    const bool from_outside, is_placed, some_throttled, keeps_watcher;
    Actor star{*this, play, is_placed ? 0 : unpinned_cell};  // placed, it calls nobody itself
    Actor placed{*this, keeps_watcher ? stand_by : idle_about, 0};
    std::vector<std::unique_ptr<Actor>> cast;
    std::int64_t acts = 0;                          // the star's own
    alignas(cache_line) Atomic<int> helped{0};
    alignas(cache_line) Atomic<bool> is_done{true}, is_on{false};

    Show(int count, bool from_outside, bool is_placed = false, bool some_throttled = false, bool keeps_watcher = false)
        : StressTeam(count), from_outside(from_outside), is_placed(is_placed), some_throttled(some_throttled),
          keeps_watcher(keeps_watcher) {
        ThreadContext context;
        for (int i = 0; i < helpers; ++i) cast.push_back(std::make_unique<Actor>(*this, help));
        star.cell.affinity.store(&workers[0], relaxed);
        make_ready(&star.cell, &context);
        placed.cell.affinity.store(keeps_watcher ? &workers[1] : &workers.back(), relaxed);  // the first that is called
        make_ready(&placed.cell, &context);
        for (auto& actor : cast) {
            actor->cell.affinity.store(&workers[0], relaxed);
            make_ready(&actor->cell, &context);
        }
    }

    static void help(Actor& actor, Context*) { actor.show.helped.fetch_add(1, release); }

    // Keeps its worker from watching, now and then.
    static void idle_about(Actor&, Context*) {
        const std::int64_t end = monotonic_ns() + 30'000;
        while (monotonic_ns() < end) relax();
    }

    // Keeps its worker for as long as the star waits.
    static void stand_by(Actor& actor, Context*) {
        await([&] { return actor.show.is_done.load(acquire); });
    }

    static void play(Actor& actor, Context* context) {
        Show& show = actor.show;
        ++show.acts;
        show.is_on.store(true, release);
        if (!show.from_outside)
            for (auto& other : show.cast) other->tell(context);
        if (show.keeps_watcher) show.placed.tell(context);
        const std::int64_t limit = monotonic_ns() + patience;
        await([&] { return show.helped.load(acquire) == helpers || monotonic_ns() > limit; });
        if (show.helped.load(acquire) != helpers) check::give_up(__FILE__, __LINE__, "nobody comes to help");
        show.helped.store(0, relaxed);
        show.is_done.store(true, release);
    }

    void direct(Rounds& rounds) {
        ThreadContext context;
        Random random(0);
        for (int round = 1; rounds.go_on(round); ++round) {
            await([&] { return is_done.load(acquire); });
            is_done.store(false, relaxed);
            is_on.store(false, relaxed);
            for (auto i = random.below(64); i != 0; --i) random.pause();  // workers come to sleep, or not quite
            if (some_throttled)
                for (Worker& worker : workers) worker.trials.is_throttled.store(random.below(2) == 0, relaxed);
            star.tell(&context);
            if (!keeps_watcher && random.below(2) == 0) placed.tell(&context);
            if (!from_outside) continue;
            if (is_placed) await([&] { return is_on.load(acquire); });
            for (auto& other : cast) other->tell(&context);
        }
        await([&] { return is_done.load(acquire); });
        stop();
    }

    void play_for(Rounds rounds) {
        together(static_cast<int>(workers.size()) + 1, [&](int index) {
            if (index == 0) return direct(rounds);
            Random random(static_cast<std::uint64_t>(index));
            work(workers[static_cast<std::size_t>(index - 1)], [&](Worker& worker) {
                if (worker.robbed != nullptr && random.below(4) == 0) give_back(worker);
            });
        });
        CHECK(acts > 0);
        CHECK(shared.watcher.load(relaxed) == nullptr || shared.sleepers.load(relaxed) < workers.size());
    }
};

}  // namespace

TEST("an actor that waits behind a long dispatch is fetched by another worker") {
    Show(2, false).play_for(Rounds(3000));
    Show(4, false).play_for(Rounds(3000));
}

TEST("so is an actor that is told from outside while a worker is busy") {
    Show(2, true, true).play_for(Rounds(3000));
    Show(4, true, true).play_for(Rounds(3000));
}

TEST("so is an actor that is told from outside together with the long one") {
    Show(2, true).play_for(Rounds(3000));
    Show(4, true).play_for(Rounds(3000));
}

TEST("so is an actor that waits where the others are throttled") {
    Show(2, false, false, true).play_for(Rounds(100));
    Show(4, true, true, true).play_for(Rounds(100));
}

TEST("so is an actor that waits while the watcher gets a long one, too") {
    Show(3, false, true, false, true).play_for(Rounds(3000));
    Show(4, false, true, false, true).play_for(Rounds(3000));
}

CHECK_MAIN
