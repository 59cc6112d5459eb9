# Which flows the calling thread works on: an operator must not wait for its own. For one source only, the flow's:
# what is thread-local here exists once for each.
from libc.stdint cimport uint32_t

from callboard.scheduling.flow.flow cimport Pool, Rest
from callboard.scheduling.flow.fused_stage cimport FusedStage

cdef extern from *:
    """
    #include "callboard/scheduling/flow/flow.hpp"

    // The flows that the calling thread works on, the latest first: an operator may help another flow.
    struct AtWork {
        const void* flow;
        const AtWork* outer;
        static thread_local const AtWork* here;

        explicit AtWork(const void* flow) : flow(flow), outer(here) { here = this; }
        ~AtWork() { here = outer; }
        AtWork(const AtWork&) = delete;

        static bool is_on(const void* flow) {
            const AtWork* one = here;
            while (one != nullptr && one->flow != flow) one = one->outer;
            return one != nullptr;
        }
    };
    thread_local const AtWork* AtWork::here = nullptr;

    static callboard::Pool::Rest run_pool(const void* flow, callboard::Pool& pool, std::uint32_t lane) {
        const AtWork here(flow);
        return pool.run(lane);
    }
    static bool help_pool(const void* flow, callboard::Pool& pool) {
        const AtWork here(flow);
        return pool.help(callboard::all_lanes);
    }
    static void call_through(const void* flow, callboard::FusedStage& stage) {
        const AtWork here(flow);
        stage.work_through();
    }
    """
    Rest run_pool(const void* flow, Pool& pool, uint32_t lane) nogil
    bint help_pool(const void* flow, Pool& pool) nogil
    void call_through(const void* flow, FusedStage& stage) nogil
    bint is_at_work "AtWork::is_on" (const void* flow) nogil
