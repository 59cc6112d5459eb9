// The program of a file of tests: runs all executions of each, and prints how many there were.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "model.hpp"
#include "run.hpp"

namespace model {

static std::set<std::string> outcomes;

void came_to(std::initializer_list<int> values) {
    const int thread = std::exchange(allocating, -1);
    std::string outcome;
    for (const int value : values) outcome += std::to_string(value);
    outcomes.insert(outcome);
    allocating = thread;
}

namespace {

struct Result {
    std::uint64_t complete = 0, stalled = 0, events = 0;
    std::string failure;
    double seconds = 0;
};

std::string name_of(memory_order order) {
    const char* const names[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
    return names[static_cast<int>(order)];
}

void print(const Run& run) {
    for (const Id id : run.history) {
        const Event& event = run.graph().at(id);
        const char* const kinds[] = {"make", "read", "write", "light fence", "heavy fence", "choice", "fork", "join"};
        std::fprintf(stderr, "    %*s%u.%-3u %s", 2 * id.thread, "", id.thread, id.index,
                     kinds[static_cast<int>(event.kind)]);
        if (event.location != none) std::fprintf(stderr, " [%u.%u]", event.location.thread, event.location.index);
        if (event.kind <= Kind::write || event.kind == Kind::choice)
            std::fprintf(stderr, " %#llx", static_cast<unsigned long long>(event.value));
        if (event.kind == Kind::read) std::fprintf(stderr, " from %u.%u", event.source.thread, event.source.index);
        if (event.kind == Kind::read || event.kind == Kind::write)
            std::fprintf(stderr, " %s", name_of(event.order).c_str());
        std::fprintf(stderr, "  %s\n", Run::say(event.site).c_str());
    }
}

constexpr std::uint64_t most_executions = 2'000'000;

struct Options {
    std::string filter;
    std::vector<Run::Weakened> weakened;
};

// The run of all tests: it knows the orders that all of them have met.
Run run;

Result explore(const Test& test, const Options& options) {
    Search search;
    running = &run;
    run.search = &search;
    run.weakened = options.weakened;
    outcomes.clear();
    Result result;
    const auto begin = std::clock();
    while (!search.left.empty()) {
        switch (run.run(body_of(test.body))) {
            case Run::End::complete: ++result.complete; break;
            case Run::End::stalled: ++result.stalled; break;
            case Run::End::failed: result.failure = run.failure; break;
        }
        result.events += run.history.size();
        if (!result.failure.empty()) {
            std::fprintf(stderr, "%s\n  in execution %llu:\n", result.failure.c_str(),
                         static_cast<unsigned long long>(result.complete + result.stalled + 1));
            print(run);
            break;
        }
        if (result.complete + result.stalled == most_executions) {
            result.failure = "more executions than it may have";
            break;
        }
    }
    if (result.failure.empty() && test.outcomes != nullptr) {
        std::string found;
        for (const std::string& outcome : outcomes) found += (found.empty() ? "" : " ") + outcome;
        if (found != test.outcomes) result.failure = "came to " + found + ", not to " + test.outcomes;
    }
    if (result.failure.empty() && test.executions != 0 && test.executions != result.complete)
        result.failure = "not the executions that there are: " + std::to_string(test.executions);
    result.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    return result;
}

memory_order order_named(const std::string& name) {
    for (int order = 0; order < 6; ++order)
        if (name_of(static_cast<memory_order>(order)) == name) return static_cast<memory_order>(order);
    std::fprintf(stderr, "no such order: %s\n", name.c_str());
    std::exit(2);
}

// Those of the product, as --weaken takes them.
void write_orders(const char* path) {
    std::FILE* const file = std::fopen(path, "w");
    for (const auto& [source, line, order] : run.strong_orders) {
        const auto product = source.find("/callboard/");
        if (product == source.npos) continue;
        std::fprintf(file, "%s:%d:%s\n", source.substr(product + 11).c_str(), line, name_of(order).c_str());
    }
    std::fclose(file);
}

int run_all(int count, char** words) {
    Options options;
    const char* orders = nullptr;
    const std::string program = words[0];
    std::string again = program;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        if (word == "--orders" && i + 1 < count) {
            orders = words[++i];
        } else if (word == "--weaken" && i + 1 < count) {
            again += " --weaken " + std::string(words[i + 1]);
            std::stringstream rule(words[++i]);
            std::string file, line, from, to;
            std::getline(rule, file, ':'), std::getline(rule, line, ':'), std::getline(rule, from, ':');
            std::getline(rule, to);
            options.weakened.push_back({file, std::stoi(line), order_named(from), order_named(to)});
        } else {
            options.filter = word;
        }
    }
    int ran = 0, failed = 0;
    for (const Test& test : tests()) {
        if (std::strstr(test.sentence, options.filter.c_str()) == nullptr) continue;
        const Result result = explore(test, options);
        const std::uint64_t all = result.complete + result.stalled;
        ++ran;
        std::printf("%s %s: %llu executions, %llu that stalled, %llu events, %.2f s\n",
                    result.failure.empty() ? "ok  " : "FAIL", test.sentence,
                    static_cast<unsigned long long>(result.complete), static_cast<unsigned long long>(result.stalled),
                    static_cast<unsigned long long>(result.events), result.seconds);
        if (!result.failure.empty()) {
            ++failed;
            std::printf("     %s, in execution %llu; again: %s \"%s\"\n", result.failure.c_str(),
                        static_cast<unsigned long long>(all + 1), again.c_str(), test.sentence);
        }
        std::fflush(stdout);
    }
    if (orders != nullptr) write_orders(orders);
    std::printf("%d run, %d failed\n", ran, failed);
    return failed != 0 || ran == 0;
}

}  // namespace
}  // namespace model

int main(int count, char** words) { return model::run_all(count, words); }
