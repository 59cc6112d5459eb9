// Stages with structures that callboard's are measured against: another reorder buffer, another queue of partitions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "callboard/scheduling/flow/flow.hpp"

namespace callboard {

template <template <class> class Buffer>
Stage& add_shared(Flow& flow, Pool& pool, const Work& work, LaneKinds runs_on, std::uint32_t most_lanes) {
    return flow.add<SharedStage<Buffer>>(pool, runs_on, most_lanes, work, flow.settings.window);
}

// And the stage before it that divides batches.
template <template <class> class Queue, template <class> class Buffer>
Stage& add_keyed(Flow& flow, Pool& pool, const Work& divider, const Work& work, LaneKinds runs_on,
                 std::uint32_t most_lanes, std::uint32_t partitions) {
    Stage& before = add_shared<Buffer>(flow, pool, divider, runs_on, most_lanes);
    return flow.add<KeyedStage<Queue, Buffer>>(pool, runs_on, std::min(partitions, most_lanes), work, before,
                                               partitions, flow.settings.window,
                                               flow.settings.one_by_one ? 0 : Flow::sample_every);
}

}  // namespace callboard
