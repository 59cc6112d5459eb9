// What a test of the checker is written in. One source file is one program.
//
//     MODEL("a message is seen") {
//         Atomic<int> ready{0};
//         Plain<int> message{0};
//         model::together([&] { message = 7; ready.store(1, release); },
//                         [&] { model::await([&] { return ready.load(acquire) == 1; }); CHECK(message == 7); });
//     }
//
// It is run once for each execution that there is, and must do the same whenever it reads the same. Found are: a CHECK
// that fails, a race on what is Plain, on an Atomic that is not made yet or that has ended, memory that is lost or
// freed twice, and a wait for what nobody does any more.
//
//     PROGRAM [SENTENCE]             those tests whose sentence contains that
//     PROGRAM --weaken F:L:FROM:TO   as if order FROM in line L of file F were TO: then one is to fail
//     PROGRAM --orders               what could be weakened
//     PROGRAM --survey               weakens each, one after the other, and says which test sees it
#pragma once

#include <cstring>
#include <ctime>
#include <set>
#include <sstream>
#include <utility>

#include "run.hpp"
#include "system.hpp"

namespace model {

// Memory that only one thread at a time may use, or several that read it.
template <class T>
class Plain {
public:
    Plain() : Plain(T{}) {}
    Plain(T value) : value_(value) { wrote_ = running->moment(); }
    Plain(const Plain& other) : Plain(other.get()) {}
    Plain& operator=(const Plain& other) { return *this = other.get(); }
    ~Plain() { check_write(), ended_ = true; }

    Plain& operator=(T value) {
        check_write();
        value_ = value;
        return *this;
    }
    operator T() const { return get(); }
    Plain& operator++() { return *this = get() + 1; }

    // As a link of a structure that takes plain ones and atomic ones.
    T load(std::memory_order) const { return get(); }
    void store(T value, std::memory_order) { *this = value; }

    T get() const {
        if (ended_) running->fail("use of a value that has ended");
        if (!running->is_before_now(wrote_)) running->fail("a race: a read and a write that nothing orders");
        read_[running->current()] = running->moment();
        return value_;
    }

private:
    void check_write() {
        if (ended_) running->fail("use of a value that has ended");
        bool ordered = running->is_before_now(wrote_);
        for (const Moment& read : read_) ordered = ordered && running->is_before_now(read);
        if (!ordered) running->fail("a race: a write that nothing orders");
        wrote_ = running->moment();
    }

    T value_;
    Moment wrote_;
    mutable std::array<Moment, most_threads> read_{};
    bool ended_ = false;
};

template <class... Functions>
void together(Functions&&... bodies) {
    running->together(bodies...);
}

// Waits until this holds, which does nothing but look.
template <class Holds>
void await(Holds&& holds) {
    running->begin_attempt();
    if (!holds()) running->wait();
}

// A loop that looks for work begins each attempt by the one, and ends it by the other if there was none.
inline void begin_attempt() { running->begin_attempt(); }
inline void end_attempt() { running->end_attempt(); }

struct Test {
    const char* sentence;
    void (*body)();
    const char* outcomes = nullptr;  // all that came_to() may say, if the test knows
    std::uint64_t executions = 0;    // how many it has, if the test knows
};

inline std::vector<Test>& tests() {
    static std::vector<Test> tests;
    return tests;
}

// What the executions came to, for litmus tests.
inline std::set<std::string> outcomes;

template <class... Values>
void came_to(Values... values) {
    const int thread = std::exchange(allocating, -1);
    outcomes.insert((std::to_string(values) + ...));
    allocating = thread;
}

struct Result {
    std::uint64_t complete = 0, stalled = 0, events = 0;
    std::string failure;
    double seconds = 0;
};

inline std::string name_of(memory_order order) {
    const char* const names[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
    return names[static_cast<int>(order)];
}

inline void print(const Run& run) {
    for (const Id id : run.history) {
        const Event& event = run.graph().at(id);
        const char* const kinds[] = {"make", "read", "write", "light fence", "heavy fence", "choice", "fork", "join"};
        std::fprintf(stderr, "    %*s%u.%-3u %s", 2 * id.thread, "", id.thread, id.index,
                     kinds[static_cast<int>(event.kind)]);
        if (event.location != none) std::fprintf(stderr, " [%u.%u]", event.location.thread, event.location.index);
        if (event.kind <= Kind::write || event.kind == Kind::choice)
            std::fprintf(stderr, " %#llx", static_cast<unsigned long long>(event.value));
        if (event.kind == Kind::read) std::fprintf(stderr, " of %u.%u", event.source.thread, event.source.index);
        if (event.kind == Kind::read || event.kind == Kind::write)
            std::fprintf(stderr, " %s", name_of(event.order).c_str());
        std::fprintf(stderr, "  %s\n", Run::say(event.site).c_str());
    }
}

struct Options {
    std::string filter;
    std::vector<Run::Weakened> weakened;
    bool quiet = false;
    std::uint64_t most = 2'000'000;
    std::set<std::array<std::string, 3>>* orders = nullptr;  // collects those that were met: file, line, order
};

inline Run::Body body_of(void (*function)()) {
    return {[](void* body) { reinterpret_cast<void (*)()>(body)(); }, reinterpret_cast<void*>(function)};
}

inline Result explore(const Test& test, const Options& options) {
    static Run run;
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
        if (options.orders != nullptr) {
            run.graph().each([&](const Event& event) {
                if (event.kind != Kind::read && event.kind != Kind::write) return;
                for (memory_order order : {event.order, event.success, event.failure})
                    if (order != std::memory_order_relaxed)
                        options.orders->insert({event.site.file, std::to_string(event.site.line), name_of(order)});
            });
        }
        if (!result.failure.empty()) {
            if (options.quiet) break;
            std::fprintf(stderr, "%s\n  in execution %llu:\n", result.failure.c_str(),
                         static_cast<unsigned long long>(result.complete + result.stalled + 1));
            print(run);
            break;
        }
        if (result.complete + result.stalled == options.most) {
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

inline memory_order order_named(const std::string& name) {
    for (int order = 0; order < 6; ++order)
        if (name_of(static_cast<memory_order>(order)) == name) return static_cast<memory_order>(order);
    std::fprintf(stderr, "no such order: %s\n", name.c_str());
    std::exit(2);
}

inline std::vector<std::string> weaker_than(const std::string& order) {
    if (order == "seq_cst") return {"acq_rel", "relaxed"};
    if (order == "acq_rel") return {"acquire", "release"};
    return {"relaxed"};
}

inline int survey(const Options& options) {
    std::set<std::array<std::string, 3>> orders;
    Options looking = options;
    looking.quiet = true;
    looking.orders = &orders;
    for (const Test& test : tests()) explore(test, looking);
    looking.orders = nullptr;
    for (const auto& [file, line, from] : orders) {
        for (const std::string& to : weaker_than(from)) {
            looking.weakened = {{file, std::stoi(line), order_named(from), order_named(to)}};
            std::string seen = "NOT SEEN";
            for (const Test& test : tests()) {
                const Result result = explore(test, looking);
                if (result.failure.empty()) continue;
                seen = std::string(test.sentence) + ": " + result.failure;
                break;
            }
            std::printf("%s:%s %s -> %s: %s\n", file.substr(file.rfind('/') + 1).c_str(), line.c_str(), from.c_str(),
                        to.c_str(), seen.c_str());
            std::fflush(stdout);
        }
    }
    return 0;
}

inline int run_all(int count, char** words) {
    Options options;
    const std::string program = words[0];
    std::string again = program;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        if (word == "--survey") return survey(options);
        if (word == "--quiet") {
            options.quiet = true;
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
    std::printf("%d run, %d failed\n", ran, failed);
    return failed != 0 || ran == 0;
}

}  // namespace model

#define MODEL_JOIN2(a, b) a##b
#define MODEL_JOIN(a, b) MODEL_JOIN2(a, b)
#define MODEL(...) MODEL_NAMED(MODEL_JOIN(model_at_line_, __LINE__), __VA_ARGS__)
#define MODEL_NAMED(name, sentence, ...)                                                \
    static void name();                                                                 \
    static const bool MODEL_JOIN(name, _registered) =                                   \
        (model::tests().push_back(model::Test{sentence, name, ##__VA_ARGS__}), true);   \
    static void name()

#define CHECK(condition)                                                                                    \
    do {                                                                                                    \
        if (!(condition)) model::running->fail(model::Run::say({__FILE__, __LINE__}) + ": " #condition);     \
    } while (false)

#define MODEL_MAIN \
    int main(int count, char** words) { return model::run_all(count, words); }
