// Inline polling: an idle worker's sleep on a descriptor.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include "callboard/scheduling/stealing.hpp"
#include "callboard/scheduling/worker.hpp"

namespace callboard {

// Like sleep(), but also ends when `descriptor` can be read, and after `milliseconds`. Other threads wake the worker
// by `wake_fd`: see Parker. True: the descriptor can be read. Returns at once if other workers of the team are busy:
// the worker watches their work instead.
inline bool sleep_reading(Worker& worker, int descriptor, int wake_fd, int milliseconds) {
    pollfd looked_at[] = {{descriptor, POLLIN, 0}, {wake_fd, POLLIN, 0}};
    bool has_looked = false;
    const auto look = [&] {
        has_looked = true;
        poll(looked_at, 2, milliseconds);
        eventfd_t count;
        if (looked_at[1].revents != 0) eventfd_read(wake_fd, &count);
    };
    const auto park = [&] {
        // An earlier unpark, for cells that were taken in since, gives no reason to stay awake.
        while (worker.parker.park_by(wake_fd, look) && !has_looked && worker.inbox.is_empty() &&
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
