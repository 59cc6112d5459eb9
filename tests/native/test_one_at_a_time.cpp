#include "callboard/core/one_at_a_time.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "callboard/core/atomics.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

struct Place : OneAtATime<Producer>, OneAtATime<Consumer> {
    template <class Role, class Meanwhile>
    void stay(const Meanwhile& meanwhile) {
        const Alone<Role> alone(*this);
        meanwhile();
    }
};

const auto nothing = [] {};

// Whether a process that does this is stopped by an assertion. What it says is not to be seen.
template <class Does>
bool is_stopped(const Does& does) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        ::close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        does();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEST("a second thread that comes in is stopped") {
    Place place;
    CHECK(is_stopped([&] { place.stay<Producer>([&] { std::thread([&] { place.stay<Producer>(nothing); }).join(); }); }));
}

TEST("one thread after the other is not") {
    Place place;
    place.stay<Producer>(nothing);
    std::thread([&] { place.stay<Producer>(nothing); }).join();
    place.stay<Producer>(nothing);
}

TEST("a thread may come in again, and is inside until it has left as often") {
    Place place;
    place.stay<Producer>([&] { place.stay<Producer>(nothing); });
    CHECK(is_stopped([&] {
        place.stay<Producer>([&] {
            place.stay<Producer>(nothing);
            std::thread([&] { place.stay<Producer>(nothing); }).join();
        });
    }));
}

TEST("each role is another") {
    Place place;
    place.stay<Producer>([&] { std::thread([&] { place.stay<Consumer>(nothing); }).join(); });
}

CHECK_MAIN
