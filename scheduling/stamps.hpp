// How long messages wait in a mailbox: one in sixteen has a time stamp, where monitoring counts the messages of mailboxes.
//
// Each thread that sends stamps about one in sixteen of its messages, at random distances, so that no pattern in them is
// met each time. A look at the clock for each message would cost more than the rest of monitoring. The stamp is in the
// message's node, so it is the time of this very message. It is written before the push, and read after the pop.
//
// A mailbox with times is one with limits: its senders go the slow way, and all write the field, be it 0. Others neither
// write nor read it.
#pragma once

#include <cstdint>

#include "callboard/core/memory/node.hpp"
#include "callboard/scheduling/cell.hpp"
#include "callboard/scheduling/context.hpp"

namespace callboard {

__attribute__((noinline)) inline std::int64_t stamp_now(Context* context) {
    // A xorshift generator: distances from 1 to 31.
    context->stamps ^= context->stamps << 13;
    context->stamps ^= context->stamps >> 17;
    context->stamps ^= context->stamps << 5;
    context->until_stamp = 1 + context->stamps % 31;
    return context->clock.now();
}

// The sender, before it pushes a message to a cell with limits.
inline void stamp(Node* node, Cell* to, Context* context) {
    if (to->times.load(relaxed) == nullptr) return;
    node->sent_at = --context->until_stamp == 0 ? stamp_now(context) : 0;
}

}  // namespace callboard
