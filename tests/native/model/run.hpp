// Runs a test's threads through one execution: first as its graph says, then wherever the search takes them.
//
// A thread is a fiber. It repeats its events of the graph, and waits where it reads a value that another thread has
// still to write. When all are at the end of their events, the first thread that can go on runs until it ends or waits.
#pragma once

#include <ucontext.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "memory.hpp"
#include "search.hpp"

namespace model {

class Run {
public:
    // The end of one call of run().
    enum class End { complete, stalled, failed };

    Search* search = nullptr;
    std::string failure;
    std::vector<Id> history;  // the events of this run, as they came

    // Makes an order in one line of the source weaker.
    struct Weakened {
        std::string file;
        int line = 0;
        memory_order from = std::memory_order_seq_cst, to = std::memory_order_relaxed;
    };
    std::vector<Weakened> weakened;

    // The orders that are stronger than relaxed, with their places in the source.
    std::set<std::tuple<std::string, int, memory_order>> strong_orders;

    // One execution, from the graphs that are left.
    End run(Body test) {
        graph_ = std::move(search->left.back());
        search->left.pop_back();
        for (Arena& arena : arenas) arena.clear();
        failure.clear();
        history.clear();
        explores_ = false;
        for (Thread& thread : threads_) thread = Thread{};
        start(0, test);
        while (failure.empty()) {
            const int next = next_thread();
            if (next < 0) break;
            resume(next);
        }
        if (failure.empty()) look_at_the_end();
        return !failure.empty() ? End::failed : threads_[0].state == State::ended ? End::complete : End::stalled;
    }

    const Graph& graph() const { return graph_; }

    // --- what the threads do -----------------------------------------------------------------------------------

    Id make(std::uint64_t value, Site site) {
        const Outside outside(*this);
        Event what;
        what.kind = Kind::make;
        what.value = value;
        what.site = site;
        if (const Event* known = replayed(what)) return known->id;
        const Id id = graph_.add_location(current_, what);
        done(id);
        return id;
    }

    Found access(const Access& access) {
        die_if_due();
        const Outside outside(*this);
        Event what;
        what.kind = Kind::read;
        what.location = access.location;
        what.does = access.does;
        what.success = access.success;
        what.failure = access.failure;
        what.operand = access.operand;
        what.expected = access.expected;
        what.mask = access.mask;
        what.site = access.site;
        must_live(what);
        weaken(what.success, what.site);
        weaken(what.failure, what.site);
        what.order = what.success;
        Thread& thread = threads_[current_];
        if (what.does == Does::load && thread.spins != 0 && thread.done != 0) {
            const Event& last = graph_.threads[current_][thread.done - 1];
            if (last.kind == Kind::read && last.does == Does::load && last.location == what.location)
                return {last.value, false};  // a look that is repeated sees the same, which coherence always allows
        }
        const Event* known = replayed(what);
        if (known == nullptr) {
            note(what.success, what.site);
            if (what.does == Does::compare) note(what.failure, what.site);
            if (!search->read(graph_, current_, what)) fail_unmade(what);
            known = &graph_.threads[current_][threads_[current_].done];
            done(known->id);
        }
        const Found found{known->value, known->updates};
        if (found.updated) {  // its write is there, too: they come together
            done({known->id.thread, static_cast<std::uint16_t>(known->id.index + 1)});
            thread.progress = thread.done;
        }
        return found;
    }

    void write(Event what) {
        die_if_due();
        const Outside outside(*this);
        what.kind = Kind::write;
        must_live(what);
        weaken(what.order, what.site);
        if (replayed(what) == nullptr) {
            note(what.order, what.site);
            if (!search->write(graph_, current_, what)) fail_unmade(what);
            done(graph_.threads[current_].back().id);
        }
        threads_[current_].progress = threads_[current_].done;
    }

    void fence(Kind kind, Site site) {
        const Outside outside(*this);
        Event what;
        what.kind = kind;
        what.site = site;
        if (replayed(what) == nullptr) {
            if (kind == Kind::heavy_fence) graph_.add_heavy_fence(current_, what);
            else if (kind == Kind::join) graph_.add_join(what);
            else graph_.add(current_, what);
            done(graph_.threads[current_].back().id);
        }
        threads_[current_].progress = threads_[current_].done;
    }

    unsigned choose(unsigned count, Site site) {
        const Outside outside(*this);
        Event what;
        what.kind = Kind::choice;
        what.site = site;
        if (const Event* known = replayed(what)) return static_cast<unsigned>(known->value);
        search->choice(graph_, current_, what, count);
        done(graph_.threads[current_].back().id);
        return static_cast<unsigned>(graph_.threads[current_].back().value);
    }

    // A location ends: that is a plain access, so all uses must come before it.
    void destroy(Id location, Site site) {
        const Outside outside(*this);
        const Clock now = this->now();
        graph_.each([&](const Event& event) {
            if (event.location == location && !now.has(event.id))
                fail("a race: " + say(site) + " ends what " + say(event.site) + " uses");
        });
    }

    // Runs the bodies as threads, and waits for them.
    void together(const Body* bodies, int count) {
        fence(Kind::fork, {});
        for (int i = 0; i < count; ++i) start(i + 1, bodies[i]);
        threads_[0].state = State::joining;
        leave();
        fence(Kind::join, {});
    }

    [[noreturn]] void wait(bool may_end = false) {
        threads_[current_].state = State::waits;
        threads_[current_].may_end = may_end;
        leave();
        __builtin_trap();
    }

    void begin_attempt() {
        Thread& thread = threads_[current_];
        thread.attempt = thread.progress = thread.done;
    }

    void end_attempt() {
        if (threads_[current_].progress == threads_[current_].attempt) wait();
    }

    void pause() {
        if (++threads_[current_].spins > most_spins) wait();
    }

    // The thread dies before its operation of that number, counted from 1. Zero: it lives.
    void die_before(unsigned operation) { threads_[current_].dies_in = operation; }

    std::int64_t& clock() { return threads_[current_].clock; }

    // --- plain memory ------------------------------------------------------------------------------------------

    Moment moment() const { return {current_, threads_[current_].done}; }

    bool is_before_now(Moment moment) const {
        return moment.thread < 0 || moment.thread == current_ || now().counts[moment.thread] > moment.events;
    }

    int current() const { return current_; }

    [[noreturn]] void fail(const std::string& what) {
        allocating = -1;
        if (failure.empty()) failure = what;
        threads_[current_].state = State::failed;
        leave();
        __builtin_trap();
    }

    static std::string say(Site site) {
        const std::string file = site.file;
        return file.substr(file.rfind('/') + 1) + ":" + std::to_string(site.line);
    }

private:
    static constexpr std::size_t stack_size = 1 << 17;
    static constexpr int most_spins = 5000;

    enum class State { absent, ready, at_new, at_read, joining, waits, ended, failed };

    struct Thread {
        State state = State::absent;
        std::uint32_t done = 0;      // of its events, in this run
        std::uint32_t progress = 0;  // its last write, or so: what it read since is what it waits for
        std::uint32_t attempt = 0;   // where the last one began
        Id source;                   // at_read: what must be there first
        int spins = 0;               // pauses since it did anything new
        bool may_end = false;
        std::int64_t clock = 0;
        unsigned dies_in = 0;  // operations; 0: it does not die
        Body body;
    };

    void die_if_due() {
        unsigned& dies_in = threads_[current_].dies_in;
        if (dies_in != 0 && --dies_in == 0) throw Death{};
    }

    // The checker's own work takes no memory of the test's.
    struct Outside {
        explicit Outside(Run& run) : run(run) { allocating = -1; }
        ~Outside() { allocating = run.current_; }
        Run& run;
    };

    void start(int index, Body body) {
        threads_[index].body = body;
        threads_[index].state = State::ready;
        getcontext(&contexts_[index]);
        contexts_[index].uc_stack.ss_sp = stacks_[index];
        contexts_[index].uc_stack.ss_size = stack_size;
        contexts_[index].uc_link = nullptr;
        makecontext(&contexts_[index], &Run::begin, 0);
    }

    static void begin();

    void run_body() {
        const Body body = threads_[current_].body;
        body.call(body.with);
        threads_[current_].state = State::ended;
        leave();
    }

    void resume(int index) {
        current_ = index;
        allocating = index;
        swapcontext(&scheduler_, &contexts_[index]);
    }

    void leave() {
        const int index = current_, before = allocating;
        allocating = -1;
        swapcontext(&contexts_[index], &scheduler_);
        allocating = before;
    }

    int next_thread() {
        bool all_ended = true;
        for (int i = 0; i < most_threads; ++i) {
            Thread& thread = threads_[i];
            if (thread.state == State::ready) return i;
            if (thread.state == State::at_read && was_done(thread.source)) return i;
            if (i != 0 && thread.state != State::absent && thread.state != State::ended) all_ended = false;
        }
        if (threads_[0].state == State::joining && all_ended) return 0;
        int at_new[most_threads];
        unsigned count = 0;
        for (int i = 0; i < most_threads; ++i)
            if (threads_[i].state == State::at_new) at_new[count++] = i;
        explores_ = true;
        return count == 0 ? -1 : at_new[search->turn(count)];
    }

    bool was_done(Id id) const { return threads_[id.thread].done > id.index; }

    // The thread's next event, if the graph has it. Otherwise, when this returns it is the thread's turn to make it.
    const Event* replayed(const Event& what) {
        Thread& thread = threads_[current_];
        thread.spins = 0;
        if (thread.done < graph_.threads[current_].size()) {
            const Event& known = graph_.threads[current_][thread.done];
            if (known.kind != what.kind || known.location != (what.kind == Kind::make ? known.id : what.location))
                fail("a test must do the same again when it reads the same: " + say(what.site));
            if (known.kind == Kind::read && !was_done(known.source)) {
                thread.source = known.source;
                thread.state = State::at_read;
                leave();
            }
            done(known.id);
            return &graph_.threads[known.id.thread][known.id.index];
        }
        if (!explores_ || search->takes_turns()) {
            thread.state = State::at_new;
            leave();
        }
        if (graph_.size() + 2 > most_events)
            fail("a loop that does not end, or more events than an execution may have: " + say(what.site));
        return nullptr;
    }

    void done(Id id) {
        threads_[id.thread].done = id.index + 1u;
        history.push_back(id);
    }

    Clock now() const {
        const Thread& thread = threads_[current_];
        if (thread.done != 0) return graph_.threads[current_][thread.done - 1].before;
        return current_ == 0 ? Clock{} : fork_clock();
    }

    Clock fork_clock() const {
        for (const Event& event : graph_.threads[0])
            if (event.kind == Kind::fork) return event.before;
        return {};
    }

    void must_live(const Event& what) {
        if (what.location == none) fail("use of what has ended: " + say(what.site));
    }

    [[noreturn]] void fail_unmade(const Event& what) {
        fail("a race: " + say(what.site) + " uses what, as far as it knows, is not made yet");
    }

    void note(memory_order order, Site site) {
        if (order != std::memory_order_relaxed) strong_orders.emplace(site.file, site.line, order);
    }

    void weaken(memory_order& order, Site site) const {
        for (const Weakened& rule : weakened) {
            const std::string file = site.file;
            if (site.line == rule.line && order == rule.from && file.size() >= rule.file.size() &&
                file.compare(file.size() - rule.file.size(), rule.file.size(), rule.file) == 0) {
                order = rule.to;
                return;
            }
        }
    }

    // No thread can go on. Those that wait do so in vain if all that they read is the newest there is.
    void look_at_the_end() {
        if (threads_[0].state == State::ended) {
            int live = 0;
            for (const Arena& arena : arenas) live += arena.live();
            if (live != 0) failure = "a leak: " + std::to_string(live) + " pieces of memory";
            return;
        }
        for (int i = 0; i < most_threads; ++i) {
            const Thread& thread = threads_[i];
            if (thread.state != State::waits) continue;
            if (thread.may_end) return;
            for (std::uint32_t k = thread.progress; k < thread.done; ++k) {
                const Event& event = graph_.threads[i][k];
                if (event.kind == Kind::read && graph_.order_of(event.location).back() != event.source) return;
            }
        }
        failure = "a lost wake-up: a thread waits for what nobody does any more";
    }

    Graph graph_;
    bool explores_ = false;
    int current_ = 0;
    Thread threads_[most_threads];
    ucontext_t contexts_[most_threads], scheduler_;
    alignas(64) static inline unsigned char stacks_[most_threads][stack_size];
};

inline Run* running = nullptr;

inline void Run::begin() { running->run_body(); }

inline Body body_of(void (*function)()) {
    return {[](void* body) { reinterpret_cast<void (*)()>(body)(); }, reinterpret_cast<void*>(function)};
}

}  // namespace model
