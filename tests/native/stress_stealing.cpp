// Workers that steal. Somebody stays in its dispatch until others have run, which it woke, or which were told
// from outside meanwhile: that ends only if another worker comes for them, whatever that one was doing, watching,
// napping or sleeping, or apart. A placed actor comes between, which nobody may take, and which takes others' time,
// until the end where the watcher is to be kept; and workers give back what they took.
#include <memory>
#include <vector>

#include "callboard/scheduling/dispatching.hpp"
#include "callboard/scheduling/priority.hpp"
#include "callboard/scheduling/stealing.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

namespace {

struct ThreadContext : Context {
    SmallCache small;
};

struct Show;

// Does what is to be done when a message comes, once for all that wait.
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

struct Show {
    static constexpr int helpers = 3;

    TeamState shared;
    std::vector<std::unique_ptr<Worker>> team;
    std::vector<std::unique_ptr<ReadyQueue>> ready;
    const bool from_outside, is_placed, some_apart, keeps_watcher;
    Actor star{*this, play, is_placed ? 0 : unpinned_cell};  // placed, it calls nobody itself
    Actor placed{*this, keeps_watcher ? stand_by : idle_about, 0};
    std::vector<std::unique_ptr<Actor>> cast;
    std::int64_t acts = 0;                          // the star's own
    alignas(cache_line) Atomic<int> helped{0};
    alignas(cache_line) Atomic<bool> is_done{true}, is_on{false};

    Show(int workers, bool from_outside, bool is_placed = false, bool some_apart = false, bool keeps_watcher = false)
        : from_outside(from_outside), is_placed(is_placed), some_apart(some_apart), keeps_watcher(keeps_watcher) {
        std::vector<Worker*> members;
        for (int i = 0; i < workers; ++i) {
            ready.push_back(std::make_unique<ReadyQueue>());
            team.push_back(std::make_unique<Worker>());
            team.back()->team = &shared;
            team.back()->index = static_cast<std::uint32_t>(i);
            team.back()->ready = ready_set(ready.back().get());
            members.push_back(team.back().get());
        }
        let_steal(shared, members);
        ThreadContext context;
        for (int i = 0; i < helpers; ++i) cast.push_back(std::make_unique<Actor>(*this, help));
        star.cell.affinity.store(members[0], relaxed);
        make_ready(&star.cell, &context);
        placed.cell.affinity.store(keeps_watcher ? members[1] : members.back(), relaxed);  // the first that is called
        make_ready(&placed.cell, &context);
        for (auto& actor : cast) {
            actor->cell.affinity.store(members[0], relaxed);
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
            if (some_apart)
                for (auto& worker : team) worker->trials.is_apart.store(random.below(2) == 0, relaxed);
            star.tell(&context);
            if (!keeps_watcher && random.below(2) == 0) placed.tell(&context);
            if (!from_outside) continue;
            if (is_placed) await([&] { return is_on.load(acquire); });
            for (auto& other : cast) other->tell(&context);
        }
        await([&] { return is_done.load(acquire); });
        shared.stopping.store(1, release);
        for (auto& worker : team) worker->parker.unpark();
    }

    void work(Worker& worker) {
        ThreadContext context;
        context.worker = &worker;
        Random random(worker.index);
        worker.idles.fetch_add(1, seq_cst);
        for (;;) {
            Cell* cell = worker.fetch();
            if (cell != nullptr) {
                dispatch(cell, &context, nullptr);
                if (worker.robbed != nullptr && random.below(4) == 0) give_back(worker);
                worker.take_in();
                continue;
            }
            if (worker.take_in() || steal(worker)) continue;
            if (shared.stopping.load(acquire) && worker.inbox.is_empty()) return;
            worker.idles.fetch_add(1, release);
            if (!find_work(&context)) sleep(worker, -1);
            worker.idles.fetch_add(1, seq_cst);
        }
    }

    void play_for(Rounds rounds) {
        together(static_cast<int>(team.size()) + 1, [&](int index) {
            if (index == 0) direct(rounds);
            else work(*team[static_cast<std::size_t>(index - 1)]);
        });
        CHECK(acts > 0);
        CHECK(shared.watcher.load(relaxed) == nullptr || shared.sleepers.load(relaxed) < team.size());
    }
};

}  // namespace

TEST("whoever waits behind a dispatch that lasts is fetched by another") {
    Show(2, false).play_for(Rounds(3000));
    Show(4, false).play_for(Rounds(3000));
}

TEST("so is who was told from outside, where a worker is busy") {
    Show(2, true, true).play_for(Rounds(3000));
    Show(4, true, true).play_for(Rounds(3000));
}

TEST("so is who was told from outside together with the one that lasts") {
    Show(2, true).play_for(Rounds(3000));
    Show(4, true).play_for(Rounds(3000));
}

TEST("so is who waits where the others keep apart") {
    Show(2, false, false, true).play_for(Rounds(100));
    Show(4, true, true, true).play_for(Rounds(100));
}

TEST("so is who waits while the watcher gets something that lasts, too") {
    Show(3, false, true, false, true).play_for(Rounds(3000));
    Show(4, false, true, false, true).play_for(Rounds(3000));
}

CHECK_MAIN
