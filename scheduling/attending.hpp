// How an idle worker sleeps on a descriptor as well.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include "callboard/scheduling/stealing.hpp"
#include "callboard/scheduling/worker.hpp"

namespace callboard {

// As sleep(), but also ends when `descriptor` can be read, and after `milliseconds`. Others wake the worker by
// `bell`: see Parker. True: the descriptor can be read. At once if others of the team are at work: their work is
// to be looked at instead.
inline bool sleep_reading(Worker& worker, int descriptor, int bell, int milliseconds) {
    pollfd looked_at[] = {{descriptor, POLLIN, 0}, {bell, POLLIN, 0}};
    bool has_looked = false;
    const auto look = [&] {
        has_looked = true;
        poll(looked_at, 2, milliseconds);
        eventfd_t count;
        if (looked_at[1].revents != 0) eventfd_read(bell, &count);
    };
    const auto park = [&] {
        // An earlier unpark, for cells that were taken in since, is no reason to stay awake.
        while (worker.parker.park_by(bell, look) && !has_looked && worker.inbox.is_empty() &&
               worker.team->stopping.load(relaxed) == 0) {}
    };
    if (!worker.steals) {
        park();
    } else if (!worker.is_watching()) {
        begin_sleeping(worker);
        if (worker.others_idle()) park();
        stop_sleeping(worker);
    }
    return looked_at[0].revents != 0;
}

}  // namespace callboard
