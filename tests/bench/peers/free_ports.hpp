// The operator scheduler of IBM Streams 4.2, as a peer for measurements: Schneider and Wu 2017, section 4.1,
// figures 2 to 5.
//
// Each operator's input port has a ring of tuples, and the ports on which no thread works are in a free list. A
// scheduler thread takes a port from the front, works on it until its ring is empty, and puts it at the back. A
// thread that finds the ring full into which it must push works on that port for a quarter of the ring.
//
// Rules:
//   1. Only the holder of a port's `producer` pushes, and only the holder of its `consumer` pops. So the ring,
//      and the operator's state, pass from thread to thread by the flags.
//   2. A port is in the free list, or in the hands of the one scheduler thread that popped it. A pusher works
//      on it by the flag alone and does not look for it in the list.
//   3. A thread that meets contention in an optional step gives it up and does something else.
//
// Where this differs from the figures:
//   - Figure 2 keeps `prodLocked` after a push that succeeded, which would end the port. It is released.
//   - Figure 4's walk ends where it meets the first port again. Another thread may have that one by then, and the
//     walk would go on for as long as ports come back. Here it also ends after as many ports as there are.
//   - Figure 5 runs one tuple more than the limit, and its counter is misprinted.
//   - A port knows its ring, which saves `queues_table`, and a tuple is found at its port, which saves its
//     `port()`. Both are to that scheduler's advantage.
//   - The ring is ours instead of Boost's, and so is the list, which has a bound that all ports fit in. The ring
//     says "full" and "empty" only when it is; the list says so as well while another thread is stopped in the
//     middle of a call.
//   - A thread that waits for a port on which another works yields after some looks. With more threads than
//     cores, the loop as printed would spend whole time slices.
// As printed: a thread goes to sleep for a time, and a pusher wakes no thread.
//
// Progress: a pusher waits for the thread that works on the port; the rest is lock-free, as the text says.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/mailbox/ordered/worklist.hpp"

namespace free_ports {

using namespace callboard;

// A flag that is taken or not, and never waited for.
class TryLock {
public:
    [[nodiscard]] bool try_lock() {
        bool expected = false;
        return locked_.compare_exchange_strong(expected, true, acquire, relaxed);  // pairs with unlock()
    }
    void unlock() { locked_.store(false, release); }  // pairs with try_lock()

private:
    Atomic<bool> locked_{false};
};

// An operator's input port: figure 2's SPSCEnforcer, with the operator of its tuples.
template <class Tuple>
class Port {
    static_assert(std::is_trivially_copyable_v<Tuple>, "tuples are copied; one that was refused is still there");

public:
    using Execute = void (*)(void* self, Tuple tuple);

    Port(Execute execute, void* self, std::size_t capacity) : ring_(capacity), execute_(execute), self_(self) {}

    // Any thread. False: the ring is full, or another thread is pushing.
    [[nodiscard]] bool push(const Tuple& tuple) {
        if (!producer_.try_lock()) return false;
        const bool pushed = ring_.try_push(tuple);
        producer_.unlock();
        return pushed;
    }

    // Any thread; then it alone may pop and execute.
    [[nodiscard]] bool try_consume() { return consumer_.try_lock(); }
    void stop_consuming() { consumer_.unlock(); }
    [[nodiscard]] bool pop(Tuple& tuple) { return ring_.try_pop(tuple); }
    void execute(const Tuple& tuple) { execute_(self_, tuple); }

    std::int64_t capacity() const { return ring_.capacity(); }

private:
    Spsc<Tuple> ring_;
    alignas(cache_line) TryLock producer_;
    alignas(cache_line) TryLock consumer_;
    const Execute execute_;
    void* const self_;
};

template <class Tuple>
class Scheduler {
public:
    // `ports` stay the caller's. Tuples may be pushed at once.
    explicit Scheduler(const std::vector<Port<Tuple>*>& ports) : free_(ports.size()), port_count_(ports.size()) {
        for (Port<Tuple>* port : ports) put_back(port);
    }
    Scheduler(const Scheduler&) = delete;
    ~Scheduler() { shut_down(); }

    // --- threads; one caller at a time, before they are stopped --------------------------------------------

    // Makes `count` scheduler threads, and a record for one more if `and_caller`, which calls schedule().
    void start(std::size_t count, bool and_caller = false) {
        caller_ = count;
        for (std::size_t i = 0; i < count + and_caller; ++i) threads_.push_back(std::make_unique<Thread>());
        for (std::size_t i = 0; i < count; ++i)
            threads_[i]->thread = std::thread([this, i] { schedule(*threads_[i]); });
    }

    // The thread that called start(): becomes a scheduler thread until all is over.
    void schedule() { schedule(*threads_[caller_]); }

    // The elastic level's: such a thread sleeps after its tuple, until it is resumed.
    void suspend(std::size_t thread) { threads_[thread]->suspended.store(true, relaxed); }
    void resume(std::size_t thread) {
        threads_[thread]->suspended.store(false, relaxed);
        threads_[thread]->wake();
    }

    // Any thread. There will be no more tuples; or none is to be executed any more.
    void close_ports() { end(ports_closed_, &Thread::ports_closed); }
    void shut_down() {
        end(shut_down_, &Thread::shut_down);
        for (auto& each : threads_)
            if (each->thread.joinable()) each->thread.join();
    }

    // --- figure 5: pushing; any thread, an operator's among them -------------------------------------------

    void push(Port<Tuple>& port, const Tuple& tuple) {
        if (!port.push(tuple)) reschedule(port, tuple);
    }

private:
    // A thread's record. It has its own copies of the fields that all threads look at before each tuple, so
    // that they share no cache line. A thread that changes them goes from record to record (4.1.2).
    struct alignas(cache_line) Thread {
        Atomic<bool> suspended{false}, shut_down{false}, ports_closed{false};
        // Acquire pairs with end(): all that happened before the end of the run is seen.
        bool is_finished() const { return shut_down.load(acquire) || ports_closed.load(acquire); }
        bool is_suspended() const { return suspended.load(relaxed); }

        // Sleeps for a time, or until it is woken.
        void block(std::chrono::microseconds time) {
            std::unique_lock<std::mutex> lock(mutex);
            condition.wait_for(lock, time, [&] { return is_finished(); });
        }
        void sleep_while_suspended() {
            std::unique_lock<std::mutex> lock(mutex);
            condition.wait(lock, [&] { return !is_suspended() || is_finished(); });
        }
        // After the flag was changed. With the mutex: a thread that has looked at the flag sleeps by then.
        void wake() {
            { std::lock_guard<std::mutex> lock(mutex); }
            condition.notify_all();
        }

        std::mutex mutex;
        std::condition_variable condition;
        std::thread thread;
    };

    static constexpr std::chrono::microseconds longest_block{10'000};
    static constexpr int looks = 100;  // before a yield

    // --- figure 3: the main loop ---------------------------------------------------------------------------

    void schedule(Thread& self) {
        current_ = &self;
        Tuple tuple;
        while (Port<Tuple>* port = find_work_blocking(self, tuple)) {
            do port->execute(tuple);
            while (!self.is_suspended() && !self.is_finished() && port->pop(tuple));
            port->stop_consuming();
            put_back(port);
        }
        current_ = nullptr;
    }

    // --- figure 4: finding work ----------------------------------------------------------------------------

    // A port that the thread may consume, and its oldest tuple. Null: it is finished.
    Port<Tuple>* find_work_blocking(Thread& self, Tuple& tuple) {
        std::chrono::microseconds delay{1};
        while (!self.is_finished()) {
            if (self.is_suspended()) {
                self.sleep_while_suspended();
                continue;
            }
            if (Port<Tuple>* found = find_work(tuple)) return found;
            self.block(delay);
            if (delay < longest_block) delay *= 10;
        }
        return nullptr;
    }

    Port<Tuple>* find_work(Tuple& tuple) {
        Port<Tuple>* first = nullptr;
        for (std::size_t seen = 0; seen <= port_count_; ++seen) {
            Port<Tuple>* port;
            if (free_.pop(port) == free_.none) return nullptr;
            if (port->try_consume()) {
                if (port->pop(tuple)) return port;
                port->stop_consuming();
            }
            put_back(port);
            if (port == first) return nullptr;
            if (first == nullptr) first = port;
        }
        return nullptr;
    }

    void put_back(Port<Tuple>* port) {
        while (free_.push(port) == free_.none) relax();  // it has room for all: another is in the middle of a pop
    }

    // --- figure 5 ------------------------------------------------------------------------------------------

    void reschedule(Port<Tuple>& port, const Tuple& tuple) {
        const std::int64_t limit = port.capacity() < 4 ? 1 : port.capacity() / 4;
        for (int look = 1; !port.push(tuple) && !is_finished(); ++look) {
            if (port.try_consume()) {
                Tuple next;
                // At least one, even if the thread is suspended: there may be no other to make room.
                for (std::int64_t i = 0; i < limit && port.pop(next); ++i) {
                    port.execute(next);
                    if (is_finished() || is_suspended()) break;
                }
                port.stop_consuming();
                look = 0;
            } else if (look % looks == 0) {
                std::this_thread::yield();
            } else {
                relax();
            }
        }
    }

    // An operator's thread has no record, and looks at the global flags. Acquire pairs with end().
    bool is_finished() const {
        return current_ != nullptr ? current_->is_finished() : shut_down_.load(acquire) || ports_closed_.load(acquire);
    }
    bool is_suspended() const { return current_ != nullptr && current_->is_suspended(); }

    void end(Atomic<bool>& global, Atomic<bool> Thread::* copy) {
        global.store(true, release);  // pairs with is_finished()
        for (auto& each : threads_) {
            ((*each).*copy).store(true, release);  // pairs with is_finished()
            each->wake();
        }
    }

    inline static thread_local Thread* current_ = nullptr;

    Worklist<Port<Tuple>*> free_;
    const std::size_t port_count_;
    std::vector<std::unique_ptr<Thread>> threads_;
    std::size_t caller_{0};
    Atomic<bool> shut_down_{false}, ports_closed_{false};
};

}  // namespace free_ports
