// Tools of the benchmarks: interleaved rounds, medians, a table in Markdown, and how busy other programs keep the
// machine.
//
// All candidates of a case run one after the other in each round, so that a slow minute of the
// machine falls on all of them alike. Threads are pinned, so that two run on two cores: a scheduler
// that puts them on one measures no contention.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "callboard/core/clock.hpp"

namespace bench {

// The cores that the process may use.
inline const cpu_set_t& allowed_cores() {
    static const cpu_set_t allowed = [] {
        cpu_set_t set;
        sched_getaffinity(getpid(), sizeof set, &set);
        return set;
    }();
    return allowed;
}

// 1, 2, 4, 8 and 16 threads, as far as each can have a core.
inline std::vector<int> thread_counts(int first = 1) {
    std::vector<int> counts;
    for (int count = first; count <= 16 && count <= CPU_COUNT(&allowed_cores()); count *= 2)
        counts.push_back(count);
    return counts;
}

// Pins the calling thread to one of them.
inline void pin(int index) {
    const cpu_set_t& allowed = allowed_cores();
    int left = index % CPU_COUNT(&allowed);
    for (int cpu = 0;; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed) || left-- != 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        return;
    }
}

// Measures from its construction how much of the machine other processes used.
class Others {
public:
    // Per cent of all cores' time. Linux counts in hundredths of a second.
    double share() const {
        const Times now = read();
        const double all = now.all - begin_.all;
        return all <= 0 ? 0 : std::max(0.0, 100 * ((now.busy - begin_.busy) - (now.own - begin_.own)) / all);
    }

private:
    struct Times {
        double all = 0, busy = 0, own = 0;
    };

    static Times read() {
        Times times;
        double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupts = 0, soft = 0, steal = 0;
        std::FILE* file = std::fopen("/proc/stat", "r");
        if (file == nullptr) return times;
        if (std::fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle,
                        &wait, &interrupts, &soft, &steal) == 8) {
            times.busy = user + nice + system + interrupts + soft + steal;
            times.all = times.busy + idle + wait;
        }
        std::fclose(file);
        rusage usage, children;
        getrusage(RUSAGE_SELF, &usage);
        getrusage(RUSAGE_CHILDREN, &children);
        const auto seconds = [](const timeval& time) {
            return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
        };
        times.own = (seconds(usage.ru_utime) + seconds(usage.ru_stime) +
                     seconds(children.ru_utime) + seconds(children.ru_stime)) *
                    static_cast<double>(sysconf(_SC_CLK_TCK));
        return times;
    }

    const Times begin_ = read();
};

// Rounds in which others used more of the machine than this, in per cent, are repeated for a while.
inline constexpr double quiet_share = 5;

// How long, in seconds for each row of a table: BENCH_PATIENCE, or 3.
inline std::int64_t patience_s() {
    const char* word = std::getenv("BENCH_PATIENCE");
    return word == nullptr ? 3 : std::atoll(word);
}

inline std::vector<double>& noise_of_table() {
    static std::vector<double> shares;
    return shares;
}

struct Candidate {
    std::string name;
    std::function<double()> run;  // nanoseconds per operation; exits if the result is wrong
};

struct Sample {
    double median, least, most;
};

inline Sample summary(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return {values[values.size() / 2], values.front(), values.back()};
}

// Runs rounds of all candidates until `count` of them were quiet, or the time is up; then the
// quietest `count` are kept.
inline std::vector<Sample> rounds(std::size_t count, const std::vector<Candidate>& candidates) {
    struct Round {
        double noise;
        std::vector<double> results;
    };
    std::vector<Round> all;
    std::size_t quiet = 0;
    for (const Candidate& candidate : candidates) candidate.run();  // warms up
    const std::int64_t end = callboard::monotonic_ns() + patience_s() * std::int64_t{1000000000};
    while (all.size() < count || (quiet < count && callboard::monotonic_ns() < end)) {
        const Others others;
        Round round{0, {}};
        for (const Candidate& candidate : candidates) round.results.push_back(candidate.run());
        round.noise = others.share();
        quiet += round.noise <= quiet_share;
        all.push_back(round);
    }
    std::sort(all.begin(), all.end(), [](const Round& a, const Round& b) { return a.noise < b.noise; });
    all.resize(count);
    for (const Round& round : all) noise_of_table().push_back(round.noise);
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        std::vector<double> values;
        for (const Round& round : all) values.push_back(round.results[i]);
        samples.push_back(summary(values));
    }
    return samples;
}

inline void head(const std::string& first, const std::vector<std::string>& columns) {
    std::printf("| %s |", first.c_str());
    for (const std::string& column : columns) std::printf(" %s |", column.c_str());
    std::printf("\n|---|");
    for (std::size_t i = 0; i < columns.size(); ++i) std::printf("---|");
    std::printf("\n");
}

inline void row(const std::string& name, const std::vector<Sample>& samples) {
    std::printf("| %s |", name.c_str());
    for (const Sample& sample : samples)
        std::printf(" %.1f (%.1f to %.1f) |", sample.median, sample.least, sample.most);
    std::printf("\n");
    std::fflush(stdout);
}

// Ends a table with the machine's other load.
inline void foot() {
    const Sample noise = summary(noise_of_table());
    std::printf("\nOther processes used %.0f%% (%.0f to %.0f) of the machine in these rounds.\n\n",
                noise.median, noise.least, noise.most);
    noise_of_table().clear();
}

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "wrong result: %s\n", what);
    std::exit(1);
}

}  // namespace bench
