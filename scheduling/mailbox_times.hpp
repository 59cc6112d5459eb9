// The end of a message's time in the mailbox: see stamps.hpp for its begin.
#pragma once

#include <cstdint>

#include "callboard/core/memory/node.hpp"
#include "callboard/core/monitoring/actor_times.hpp"
#include "callboard/scheduling/cell.hpp"
#include "callboard/scheduling/context.hpp"
#include "callboard/scheduling/worker.hpp"

namespace callboard {

// The receiver, on its worker, when it takes a message of a cell with limits out.
inline void note_taken(Node* node, Cell* cell, Context* context) {
    ActorTimes* const times = cell->times.load(acquire);  // pairs with whoever gave the cell its own
    if (times == nullptr || __builtin_expect(node->sent_at == 0, 1) || context->worker == nullptr) return;
    times->note_waited(context->worker->index, context->clock.now() - node->sent_at);
}

}  // namespace callboard
