// Space Saving by one thread: with counters in no order, one by one and in batches, and with the stream summary of
// its authors. Zipf streams as in Das et al. 2009, section 5: a million elements of an alphabet of five
// million, epsilon 1e-4. Every run checks that the counts add up and that both miss nobody.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "../../bench/peers/stream_summary.hpp"
#include "callboard/frequency/counting/keys.hpp"
#include "callboard/frequency/counting/counters.hpp"

using namespace callboard;

namespace {

constexpr std::size_t elements = 1000000, alphabet = 5000000;
constexpr std::uint32_t counters = 10000;
constexpr std::uint64_t seed = 0x2545f4914f6cdd1d;
constexpr int rounds = 7;

std::vector<std::int64_t> zipf(double alpha) {
    std::vector<double> sums(alphabet);
    double sum = 0;
    for (std::size_t i = 0; i < alphabet; ++i) sums[i] = sum += std::pow(static_cast<double>(i + 1), -alpha);
    std::vector<std::int64_t> keys(elements);
    for (std::size_t i = 0; i < elements; ++i) {
        const double draw = static_cast<double>(random_number(1, i) >> 11) * 0x1p-53 * sum;
        const auto rank = std::lower_bound(sums.begin(), sums.end(), draw) - sums.begin();
        keys[i] = static_cast<std::int64_t>(mix(static_cast<std::uint64_t>(rank)));  // no key is near its neighbour
    }
    return keys;
}

void hold(bool right, const char* what) {
    if (right) return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::exit(1);
}

template <class Run>
double ns_each(const Run& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    return time.count() / elements;
}

double median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

std::uint64_t sum_of(const Counters<IntegerKeys>& summary) {
    std::uint64_t sum = 0;
    for (std::uint32_t slot = 0; slot < summary.size(); ++slot) sum += summary.count_of(slot);
    return sum;
}

}  // namespace

int main() {
    std::printf("ns for an element, medians of %d rounds\n\n", rounds);
    std::printf("| alpha | stream summary | one by one | in batches | top(25), us |\n|---|---|---|---|---|\n");
    for (double alpha : {0.5, 1.0, 1.5, 2.0, 2.5, 3.0}) {
        const auto keys = zipf(alpha);
        std::vector<double> ordered_ns, single_ns, batches_ns, top_us;
        for (int round = 0; round < rounds; ++round) {
            auto ordered = std::make_unique<StreamSummary<IntegerKeys>>(counters, seed);
            ordered_ns.push_back(ns_each([&] {
                for (auto key : keys) ordered->add(key, 1);
            }));
            Counters<IntegerKeys> single(counters, seed), batches(counters, seed);
            single_ns.push_back(ns_each([&] {
                for (auto key : keys) single.add(key, 1);
            }));
            batches_ns.push_back(ns_each([&] { batches.add_array(keys.data(), keys.size()); }));
            std::size_t found = 0;
            top_us.push_back(ns_each([&] { found = batches.top(25).size(); }) * elements / 1000);
            const auto counts = ordered->counts();
            hold(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) == elements, "the stream summary's sum");
            hold(sum_of(single) == elements && sum_of(batches) == elements, "a sum");
            hold(found == 25 && batches.count_of(batches.top(1)[0]) >= counts[0] * 9 / 10, "the greatest");
        }
        std::printf("| %.1f | %.1f | %.1f | %.1f | %.1f |\n", alpha, median(ordered_ns), median(single_ns),
                    median(batches_ns), median(top_us));
        std::fflush(stdout);
    }
}
