// The output of every native program: one line of JSON that the harness reads and checks.
#pragma once

#include <cstdint>
#include <cstdio>

struct Result {
    std::int64_t operations;
    double seconds;
    std::int64_t got, want;
};

inline int print(const Result& r) {
    std::printf("{\"operations\": %lld, \"seconds\": %.9f, \"got\": %lld, \"want\": %lld}\n",
                            static_cast<long long>(r.operations), r.seconds, static_cast<long long>(r.got),
                            static_cast<long long>(r.want));
    return r.got == r.want ? 0 : 1;
}
