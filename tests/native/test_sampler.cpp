// The sampler, which chooses messages for monitoring.
#include "callboard/core/monitoring/sampler.hpp"

#include "check.hpp"

using namespace callboard;

namespace {

int samples(Sampler& sampler, std::uint32_t every, int messages) {
    int taken = 0;
    for (int i = 0; i < messages; ++i) taken += sampler.takes(every);
    return taken;
}

}  // namespace

TEST("each message is a sample where one of one is") {
    Sampler sampler;
    CHECK_EQUAL(samples(sampler, 1, 100), 100);
}

TEST("one message in the given number is a sample on average") {
    Sampler sampler;
    const int taken = samples(sampler, 100, 1'000'000);
    CHECK(taken > 9'500 && taken < 10'500);
}

TEST("of messages to two by turns both have samples") {
    Sampler sampler;
    int of_each[2] = {0, 0};
    for (int i = 0; i < 200'000; ++i) of_each[i % 2] += sampler.takes(10);
    CHECK(of_each[0] > 9'000 && of_each[1] > 9'000);
}

TEST("a higher rate holds from the next message on") {
    Sampler sampler;
    samples(sampler, 1'000'000'000, 1);
    CHECK_EQUAL(samples(sampler, 1, 10), 10);
}

CHECK_MAIN
