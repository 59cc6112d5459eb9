// The owner of a summary: one thread at a time, which notices when it enters again.
//
// Comparing Python keys runs code of theirs, which may use the summary again, or let another thread have the
// interpreter. So a thread that has the interpreter only tries, and waits without it.
#pragma once

#include <mutex>
#include <thread>

#include "callboard/core/atomics.hpp"

namespace callboard {

class SummaryGuard {
public:
    bool try_enter() {
        if (!mutex_.try_lock()) return false;
        owner_.store(std::this_thread::get_id(), relaxed);
        return true;
    }

    // Not by the thread that is in already.
    void enter() {
        mutex_.lock();
        owner_.store(std::this_thread::get_id(), relaxed);
    }

    void leave() {
        owner_.store({}, relaxed);
        mutex_.unlock();
    }

    // The calling thread is in. relaxed: it reads what it wrote itself, or something that is not its number.
    bool is_mine() const { return owner_.load(relaxed) == std::this_thread::get_id(); }

private:
    std::mutex mutex_;
    Atomic<std::thread::id> owner_{};
};

}  // namespace callboard
