// A machine in simulated time: cores, threads, and cache lines.
//
// Threads are fibers. The one whose clock is least runs next, so what they do happens in the order of simulated time,
// and a run is repeated exactly. A thread gives way at each atomic operation, if another one's clock is behind its
// own. Between them it only adds to its clock.
//
// Each cache line is a server. A core that has it pays little. Others wait in line for it, and it moves to them by the
// distance between cores. So the loss by contention is not put in. It comes of what the real code does with its lines:
//   1. A read of a line that another core wrote moves it, and both have it then. A line that is only read is copied
//      without a queue.
//   2. A locked operation, and a sequentially consistent store, needs the line alone. It waits for the thread's
//      stores before it.
//   3. A plain store needs the line alone, too, but the thread goes on: a store buffer.
//   4. The core that a line leaves can use it for a while, until the request has come to it: so a core that is quick has
//      several turns at a contended line.
//   5. A line that its core has not used for long has left its first cache.
//
// Threads beyond the cores wait in one queue, first in, first out, and run for a slice. A thread that was woken goes
// before them, on the core of its waker: Linux prefers those that slept. A parked thread takes no core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "fiber.hpp"

namespace simulated {

// Nanoseconds, but for counts. Measured by parameters.cpp, apart from `far_ns`, which needs a second socket.
struct Parameters {
    double instructions_ns = 1;  // of an atomic operation on a line that the core has, with the code around it
    double update_ns = 5;        // more, for a locked one
    double second_cache_ns = 4;  // more, for a line that has left the first cache
    double exposed = 1;          // the part of a line's way that a load waits for; meanwhile the core does other things
    double near_ns = 50;         // a line that another core of the socket wrote
    double far_ns = 150;         // or one of another socket
    double kept_ns = 30;         // after another core asked for a line, until it leaves
    double row_line_ns = 10;     // a line of rows that another core of the socket wrote; one after the other
    double clock_ns = 20;
    double wake_ns = 2000;       // for the thread that wakes another
    double woken_ns = 20000;     // until that one runs
    double switch_ns = 2000;     // from a thread to another on one core
    double time_slice_ns = 3e6;  // of a thread, while others wait for a core
    int cores = 2;
    int of_socket = 1 << 20;     // cores of a socket
    int first_cache = 512;       // lines
};

constexpr int most_cores = 256;

struct Thread {
    Thread(std::function<void()> body, int number) : fiber(std::move(body), number), number(number) {}

    Fiber fiber;
    const int number;
    int core{-1};       // none: it waits for one, or is parked
    int last_core{-1};
    double time{0};
    double stored{0};   // when its last store is done
    double got_core{0};
    double busy{0};     // on cores
    Thread* woken_by{nullptr};
    bool is_preempted{false};
    bool parked{false}, notified{false};
};

class Machine {
public:
    Machine(const Parameters& parameters, std::uint64_t seed)
        : parameters(parameters), random(seed), cores_(static_cast<std::size_t>(parameters.cores)) {}

    const Parameters parameters;
    std::mt19937_64 random;
    std::uint64_t operations{0}, cold{0}, moved{0}, switches{0}, wakes{0};

    Thread& start(std::function<void()> body) {
        threads_.push_back(std::make_unique<Thread>([this, body = std::move(body)] { body(), end(); },
                                                    static_cast<int>(threads_.size())));
        go_on_at(*threads_.back(), 0);
        return *threads_.back();
    }

    // Until a thread calls stop(). False: all threads are parked, or have ended.
    bool run() {
        current_ = next();
        if (current_ != nullptr) main_.resume(current_->fiber);
        return stopped_;
    }
    void stop() {
        stopped_ = true;
        current_->fiber.resume(main_);
    }

    Thread* current() const { return current_; }
    double now() const { return current_->time; }
    double busy_of(const Thread& thread) const {
        return thread.busy + (thread.core >= 0 ? thread.time - thread.got_core : 0);
    }

    // --- for the thread that runs ------------------------------------------------------------------

    void spend(double ns) { current_->time += ns; }

    // Lets the threads run that are behind this one.
    void pass() { give_way(); }

    void read(const void* address) {
        Line& line = line_of(address);
        Thread& me = *current_;
        if (line.has(me.core) || line.is_still_at(me)) return used(line, me);
        if (line.owner < 0) return take(line, me.core), spend(parameters.second_cache_ns);
        const double cost = transfer(line.owner, me.core);
        if (line.is_shared) {
            line.waited += cost * parameters.exposed;
            spend(cost * parameters.exposed);
        } else {
            const double begin = std::max(me.time, line.free_at);
            line.moved(begin, cost, parameters.kept_ns);
            line.waited += begin + cost * parameters.exposed - me.time;
            me.time = begin + cost * parameters.exposed;
            line.is_shared = true;
        }
        line.add(me.core);
        ++moved;
    }

    void write(const void* address) {
        Line& line = line_of(address);
        Thread& me = *current_;
        if (line.is_of(me.core) || line.is_still_at(me)) return used(line, me);
        if (line.owner < 0) return take(line, me.core);
        const double begin = std::max({me.time, me.stored, line.free_at});
        me.stored = line.moved(begin, transfer(line.owner, me.core), parameters.kept_ns);
        take(line, me.core);
        ++moved;
    }

    void update(const void* address) {
        Line& line = line_of(address);
        Thread& me = *current_;
        me.time = std::max(me.time, me.stored);
        if (line.is_of(me.core) || line.is_still_at(me)) used(line, me);
        else if (line.owner < 0) take(line, me.core);
        else {
            const double arrived = me.time;
            me.time = line.moved(std::max(arrived, line.free_at), transfer(line.owner, me.core), parameters.kept_ns);
            line.waited += me.time - arrived;
            take(line, me.core);
            ++moved;
        }
        spend(parameters.update_ns);
    }

    // Reads so many lines of rows that were written on another core; they come one after the other.
    void read_rows(int& written_on, double lines) {
        Thread& me = *current_;
        cores_[static_cast<std::size_t>(me.core)].touched += static_cast<std::uint32_t>(lines);
        if (written_on >= 0 && written_on != me.core)
            spend(lines * parameters.row_line_ns *
                  (are_near(written_on, me.core) ? 1.0 : parameters.far_ns / parameters.near_ns));
        written_on = me.core;
    }

    std::int64_t clock() {
        spend(parameters.clock_ns);
        return static_cast<std::int64_t>(now());
    }

    // Sleeps until wake(); returns at once if there was one.
    void park() {
        Thread& me = *current_;
        give_way();
        if (me.notified) return void(me.notified = false);
        me.parked = true;
        leave_core(me);
        resume_next();
    }

    void wake(Thread& thread) {
        give_way();
        if (!thread.parked) return void(thread.notified = true);
        ++wakes;
        thread.parked = false;
        thread.woken_by = current_;
        spend(parameters.wake_ns);
        go_on_at(thread, now() + parameters.woken_ns);
    }

    // Calls visit(address, ns) with each line that cores have waited for.
    template <class Visit>
    void each_line(Visit visit) const {
        for (const auto& entry : lines_.entries_)
            if (entry.address != 0 && lines_.made_[entry.line].waited > 0)
                visit(entry.address * 64, lines_.made_[entry.line].waited);
    }

private:
    struct Line {
        double free_at{0};
        double kept_until{0};
        double waited{0};  // for it, by all cores
        std::uint32_t used{0};
        std::int16_t owner{-1};   // the core that wrote it last, or used it first
        std::int16_t before{-1};  // that owned it before
        bool is_shared{false};
        std::uint64_t cores[most_cores / 64]{};

        bool has(int core) const { return cores[core / 64] >> core % 64 & 1; }
        bool is_of(int core) const { return owner == core && !is_shared; }
        bool is_still_at(const Thread& me) const { return before == me.core && me.time < kept_until; }
        // Returns when it has come to the next core.
        double moved(double begin, double takes, double kept) {
            before = owner;
            kept_until = begin + kept;
            return free_at = begin + takes;
        }
        void add(int core) { cores[core / 64] |= std::uint64_t{1} << core % 64; }
    };
    // Lines by their addresses: an open hash table that grows.
    class Lines {
    public:
        Line& operator[](std::uintptr_t address) {
            if (2 * count_ >= entries_.size()) grow();
            Entry& entry = find(entries_, address);
            if (entry.address == 0) entry.address = address, entry.line = made_.size(), made_.emplace_back(), ++count_;
            return made_[entry.line];
        }

    private:
        struct Entry {
            std::uintptr_t address{0};
            std::size_t line{0};
        };
        friend class Machine;
        static Entry& find(std::vector<Entry>& entries, std::uintptr_t address) {
            std::size_t place = address * 0x9e3779b97f4a7c15u >> 20;
            for (;; ++place) {
                Entry& entry = entries[place & (entries.size() - 1)];
                if (entry.address == address || entry.address == 0) return entry;
            }
        }
        void grow() {
            std::vector<Entry> more(std::max<std::size_t>(1 << 16, 4 * entries_.size()));
            for (const Entry& entry : entries_)
                if (entry.address != 0) find(more, entry.address) = entry;
            entries_.swap(more);
        }

        std::vector<Entry> entries_;
        std::deque<Line> made_;
        std::size_t count_{0};
    };
    struct Core {
        Thread* thread{nullptr};
        double free_at{0};
        std::uint32_t touched{0};  // lines
    };
    struct Event {
        double time;
        std::uint64_t order;
        Thread* thread;
        bool operator<(const Event& other) const {
            return time != other.time ? time > other.time : order > other.order;
        }
    };

    Line& line_of(const void* address) {
        ++operations;
        give_way();
        spend(parameters.instructions_ns);
        return lines_[reinterpret_cast<std::uintptr_t>(address) / 64];
    }

    // A core's count of lines stands for its first cache: a line that was used so many lines ago has left it.
    void used(Line& line, const Thread& me) {
        if (line.owner != me.core) return;
        auto& touched = cores_[static_cast<std::size_t>(me.core)].touched;
        const auto since = touched - line.used;
        if (since > static_cast<std::uint32_t>(parameters.first_cache)) spend(parameters.second_cache_ns), ++cold;
        if (since > 8) line.used = ++touched;
    }

    void take(Line& line, int core) {
        line.owner = static_cast<std::int16_t>(core);
        line.is_shared = false;
        for (auto& word : line.cores) word = 0;
        line.add(core);
        line.used = ++cores_[static_cast<std::size_t>(core)].touched;
    }

    bool are_near(int one, int other) const { return one / parameters.of_socket == other / parameters.of_socket; }
    double transfer(int from, int to) const { return are_near(from, to) ? parameters.near_ns : parameters.far_ns; }

    // --- which thread runs -------------------------------------------------------------------------

    void go_on_at(Thread& thread, double time) {
        thread.time = time;
        events_.push({time, order_++, &thread});
    }

    // While another thread is behind this one's clock, that one runs.
    void give_way() {
        Thread& me = *current_;
        if (events_.empty() || me.time <= events_.top().time) return;
        if (!waiting_.empty() && (me.is_preempted || me.time - me.got_core > parameters.time_slice_ns)) {
            me.is_preempted = false;
            leave_core(me);
            waiting_.push_back(&me);
            ++switches;
        } else {
            events_.push({me.time, order_++, &me});
        }
        resume_next();
    }

    void end() {
        leave_core(*current_);
        resume_next();
    }

    void resume_next() {
        Thread& me = *current_;
        current_ = next();
        if (current_ == &me) return;
        me.fiber.resume(current_ != nullptr ? current_->fiber : main_);
    }

    Thread* next() {
        while (!events_.empty()) {
            Thread& thread = *events_.top().thread;
            events_.pop();
            if (thread.core >= 0) return &thread;
            if (find_core(thread)) go_on_at(thread, thread.time);
            else wait_for_core(thread);
        }
        return nullptr;
    }

    bool find_core(Thread& thread) {
        int found = -1;
        if (thread.last_core >= 0 && is_free(thread.last_core)) found = thread.last_core;
        for (int core = 0; found < 0 && core < parameters.cores; ++core)
            if (is_free(core)) found = core;
        if (found < 0) return false;
        put_on(thread, found);
        return true;
    }
    bool is_free(int core) const { return cores_[static_cast<std::size_t>(core)].thread == nullptr; }

    // A thread that was woken gets the core of the one that woke it, if that still has one: it slept, so it is due.
    void wait_for_core(Thread& thread) {
        Thread* waker = std::exchange(thread.woken_by, nullptr);
        if (waker == nullptr || waker->core < 0) return waiting_.push_back(&thread);
        waker->is_preempted = true;
        waiting_.push_front(&thread);
    }

    void put_on(Thread& thread, int core) {
        Core& here = cores_[static_cast<std::size_t>(core)];
        here.thread = &thread;
        thread.core = thread.last_core = core;
        thread.time = thread.got_core = std::max(thread.time, here.free_at);
    }

    // The first of the threads that wait for a core gets it.
    void leave_core(Thread& me) {
        const int number = me.core;
        Core& core = cores_[static_cast<std::size_t>(number)];
        me.busy += me.time - me.got_core;
        me.core = -1;
        core.thread = nullptr;
        core.free_at = me.time;
        if (waiting_.empty()) return;
        Thread& first = *waiting_.front();
        waiting_.pop_front();
        put_on(first, number);
        go_on_at(first, first.time + parameters.switch_ns);
    }

    std::vector<Core> cores_;
    std::vector<std::unique_ptr<Thread>> threads_;
    Lines lines_;
    std::priority_queue<Event> events_;
    std::deque<Thread*> waiting_;
    std::uint64_t order_{0};
    Fiber main_;
    Thread* current_{nullptr};
    bool stopped_{false};
};

// The machine that the program simulates; null while a graph is built.
inline Machine* machine = nullptr;

inline bool runs() { return machine != nullptr && machine->current() != nullptr; }
inline void read(const void* address) { if (runs()) machine->read(address); }
inline void write(const void* address) { if (runs()) machine->write(address); }
inline void update(const void* address) { if (runs()) machine->update(address); }
inline std::int64_t look_at_clock() { return runs() ? machine->clock() : 0; }

}  // namespace simulated
