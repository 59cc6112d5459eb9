// The activity of one end of a channel, for monitoring: the accounting in a stream's descriptor of LPEL (Prokesch
// 2011, section 4.4.4).
//
// The user of the end writes it, within its dispatches; any thread reads `moved` and `state`.
#pragma once

#include <cstdint>

#include "callboard/_inside/answers/thread_locals.hpp"
#include "callboard/core/atomics.hpp"
#include "callboard/core/monitoring/records.hpp"
#include "callboard/core/monitoring/recorder.hpp"

namespace callboard {

inline constexpr char end_opened = 'O', end_in_use = 'I', end_closed = 'C', end_replaced = 'R';

class EndActivity {
public:
    // The end gets another user, or another channel.
    void restart(std::int64_t channel, bool sends) {
        moved_.store(0, relaxed);
        state_.store(end_opened, relaxed);
        channel_ = channel;
        mode_ = sends ? 'w' : 'r';
        serial_ = 0;
    }

    // An operation of the user begins, on the thread that has this context.
    void begin(const Context* context) {
        context_ = static_cast<const ActorContext*>(context);
        woken_before_ = context_->woken;
    }

    // The operation moved this number of values.
    void note_moved(std::uint64_t values) {
        moved_.store(moved_.load(relaxed) + values, relaxed);
        if (ChannelUse* const use = use_in_work()) {
            use->has_moved = true;
            use->has_blocked = false;
        }
        state_.store(end_in_use, relaxed);
    }

    // The user waits here for the operation.
    void note_blocked() {
        if (ChannelUse* const use = use_in_work()) use->has_blocked = true;
        state_.store(end_in_use, relaxed);
    }

    // The operation has closed the end, or replaced it.
    void note_end(char state) {
        if (ChannelUse* const use = use_in_work()) use->state = state;
        state_.store(state, relaxed);
    }

    std::uint64_t moved() const { return moved_.load(relaxed); }
    char state() const { return state_.load(relaxed); }

private:
    // Null outside of the workers, as on an event loop, where no dispatch is in work.
    ChannelUse* use_in_work() {
        if (context_->recorder == nullptr) return nullptr;
        bool is_new = false;
        ChannelUse* const use = context_->recorder->use(serial_, at_, is_new);
        if (use == nullptr) return nullptr;
        if (is_new) {
            use->channel = channel_;
            use->mode = mode_;
            use->state = state_.load(relaxed);
        }
        use->moved = moved();
        if (context_->woken != woken_before_) use->has_woken = true;
        return use;
    }

    Atomic<std::uint64_t> moved_{0};
    Atomic<char> state_{end_opened};
    char mode_{'r'};
    std::uint32_t at_{0};
    std::uint64_t serial_{0};  // of the dispatch that used it last
    std::int64_t channel_{0};
    const ActorContext* context_{nullptr};
    std::uint64_t woken_before_{0};
};

}  // namespace callboard
