// The flows that the calling thread works on: an operator must not wait for its own flow.
//
// For one source only, flow.pyx: a header's thread-local variables exist once for each module that includes it.
#pragma once

#include <cstdint>

#include "callboard/scheduling/flow/flow.hpp"
#include "callboard/scheduling/flow/fused_stage.hpp"

namespace callboard {

// The flows that the calling thread works on, the latest first: an operator may help another flow.
struct AtWork {
    const void* flow;
    const AtWork* outer;
    static inline thread_local const AtWork* here = nullptr;

    explicit AtWork(const void* flow) : flow(flow), outer(here) { here = this; }
    ~AtWork() { here = outer; }
    AtWork(const AtWork&) = delete;

    static bool is_on(const void* flow) {
        const AtWork* one = here;
        while (one != nullptr && one->flow != flow) one = one->outer;
        return one != nullptr;
    }
};

inline Pool::Rest run_pool(const void* flow, Pool& pool, std::uint32_t lane) {
    const AtWork here(flow);
    return pool.run(lane);
}

inline bool help_pool(const void* flow, Pool& pool) {
    const AtWork here(flow);
    return pool.help(all_lanes);
}

inline void call_through(const void* flow, FusedStage& stage) {
    const AtWork here(flow);
    stage.work_through();
}

}  // namespace callboard
