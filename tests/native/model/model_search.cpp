// The search itself: in random programs it finds the executions that a search through all schedules finds, each once.
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "callboard/core/mix.hpp"
#include "model.hpp"
#include "naive.hpp"
#include "run.hpp"

using namespace callboard;

namespace {

int program = 0;

struct Random {
    std::uint64_t taken = 0;
    std::uint32_t below(std::uint32_t limit) {
        return static_cast<std::uint32_t>(random_number(static_cast<std::uint64_t>(program), taken++) >> 32) % limit;
    }
    std::memory_order order() {
        const std::memory_order orders[] = {relaxed, acquire, release, acq_rel, seq_cst, seq_cst};
        return orders[below(6)];
    }
};

// Two or three threads, up to four operations each, on two words.
void any_program() {
    Random random;
    Atomic<int> words[2];
    struct Operation {
        std::uint32_t what, word;
        std::memory_order order;
    } operations[3][4];
    std::uint32_t counts[3];
    const std::uint32_t threads = 2 + random.below(2);
    for (std::uint32_t thread = 0; thread < 3; ++thread) {
        counts[thread] = thread < threads ? 1 + random.below(threads == 2 ? 4 : 3) : 0;
        for (Operation& operation : operations[thread]) operation = {random.below(8), random.below(2), random.order()};
    }
    const auto play = [&](int thread) {
        int found = 1;
        for (std::uint32_t i = 0; i < counts[thread]; ++i) {
            const auto [what, word, order] = operations[thread][i];
            switch (what) {
                case 0: case 1: found = words[word].load(order); break;
                case 2: case 3: words[word].store(found + 1 + thread, order); break;
                case 4: found = words[word].fetch_add(10, order); break;
                case 5: found = 0, words[word].compare_exchange_strong(found, 100 + thread, order); break;
                case 6: model::fence(word == 0 ? model::Kind::light_fence : model::Kind::heavy_fence, {}); break;
                // Some wait, and some of these in vain.
                case 7: found = words[word].load(order); if (found == 0 && order == acquire) model::wait(true);
            }
        }
    };
    model::together([&] { play(0); }, [&] { play(1); }, [&] { play(2); });
}

struct Found {
    std::set<std::string> executions;
    std::uint64_t runs = 0;
};

template <class GoOn>
Found find(model::Search& search, GoOn&& goes_on) {
    static model::Run run;
    model::running = &run;
    run.search = &search;
    Found found;
    do {
        const auto end = run.run(model::body_of(any_program));
        if (end == model::Run::End::failed) std::printf("FAIL %s\n", run.failure.c_str()), std::exit(1);
        if (end == model::Run::End::complete) ++found.runs, found.executions.insert(model::text_of(run.graph()));
    } while (goes_on());
    return found;
}

}  // namespace

// PROGRAM [HOW-MANY]
int main(int count, char** words) {
    const int programs = count == 2 ? std::atoi(words[1]) : 150;
    std::uint64_t executions = 0, schedules = 0;
    for (program = 0; program < programs; ++program) {
        model::Search search;
        const Found once = find(search, [&] { return !search.left.empty(); });
        model::NaiveSearch naive;
        const Found all = find(naive, [&] { return naive.go_on(); });
        executions += once.runs, schedules += all.runs;
        if (once.executions == all.executions && once.runs == once.executions.size()) continue;
        std::printf("FAIL program %d: %zu executions in %llu runs, against %zu\n", program, once.executions.size(),
                    static_cast<unsigned long long>(once.runs), all.executions.size());
        return 1;
    }
    std::printf("ok   %d programs: %llu executions, each found once, and in %llu schedules\n", programs,
                static_cast<unsigned long long>(executions), static_cast<unsigned long long>(schedules));
}
