// A process that waits, and the descriptor on which it sleeps.
#pragma once

#include "callboard/mailbox/shared/event_count.hpp"
#include "model.hpp"

namespace model {

class Waiter {
public:
    template <class Tries>
    void wait_until(Tries tries) {
        for (;;) {
            const auto looked = events.look();
            if (tries()) return;
            if (!events.try_sleep(looked)) continue;
            await([&] { return wakes_.load(callboard::relaxed) != seen_; });
            seen_ = wakes_.load(callboard::relaxed);
            events.awake();
        }
    }
    void notify() {
        events.notify([this] { wakes_.fetch_add(1, callboard::relaxed); });
    }

    callboard::EventCount events;

private:
    callboard::Atomic<int> wakes_{0};
    int seen_ = 0;
};

}  // namespace model
