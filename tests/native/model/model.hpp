// The vocabulary of a test. One source file is one program.
//
//     MODEL("a message is seen") {
//         Atomic<int> ready{0};
//         Plain<int> message{0};
//         model::together([&] { message = 7; ready.store(1, release); },
//                         [&] { model::await([&] { return ready.load(acquire) == 1; }); CHECK(message == 7); });
//     }
//
// The body runs once for each execution, and must do the same whenever it reads the same. The checker finds: a
// CHECK that fails; a race on a Plain, or on an Atomic that is not made yet or has ended; memory that is lost or
// freed twice; and a wait for something that no thread will do.
//
// A process that ends at any point is code in dies().
//
//     PROGRAM [SENTENCE]                    those tests whose sentence contains that
//     PROGRAM --weaken FILE:LINE:FROM:TO    with the order FROM in that line as TO: see weakened.sh
//     PROGRAM --orders FILE                 and writes a list of the orders that can be weakened
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "kernel.hpp"

namespace model {

// Memory that only one thread at a time may use, or several that read it.
template <class T>
class Plain {
public:
    Plain() : Plain(T{}) {}
    Plain(T value) : value_(value) { wrote_ = now(); }
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
        if (ended_) fail("use of a value that has ended");
        if (!is_before_now(wrote_)) fail("a race: a read and a write that nothing orders");
        const Moment moment = now();
        read_[moment.thread] = moment;
        return value_;
    }

private:
    void check_write() {
        if (ended_) fail("use of a value that has ended");
        bool ordered = is_before_now(wrote_);
        for (const Moment& read : read_) ordered = ordered && is_before_now(read);
        if (!ordered) fail("a race: a write that nothing orders");
        wrote_ = now();
    }

    T value_;
    Moment wrote_;
    mutable Moment read_[most_threads];
    bool ended_ = false;
};

// Runs the functions as threads, and waits for them.
template <class... Functions>
void together(Functions&&... functions) {
    static_assert(sizeof...(functions) < most_threads);
    const Body bodies[] = {{[](void* body) { (*static_cast<std::remove_reference_t<Functions>*>(body))(); },
                            const_cast<void*>(static_cast<const void*>(&functions))}...};
    run_together(bodies, sizeof...(functions));
}

// Waits until this holds, which does nothing but look.
template <class Holds>
void await(Holds&& holds) {
    begin_attempt();
    if (!holds()) wait();
}

// Runs the code of a process that dies before one of its first `operations` on atomics, or after them, when all is done.
// There are executions with each of these ends. Returns whether it died before the end.
template <class Code>
bool dies(unsigned operations, Code&& code) {
    die_before(choose(operations + 1, {"a death", 0}));
    bool has_died = false;
    try {
        code();
    } catch (const Death&) {
        has_died = true;
    }
    die_before(0);
    return has_died;
}

// Notes the outcome of this execution, for litmus tests.
void came_to(std::initializer_list<int> values);

struct Test {
    const char* sentence;
    void (*body)();
    const char* outcomes = nullptr;  // all that came_to() may say, if the test knows
    std::uint64_t executions = 0;    // how many there are, if the test knows
};

// A program made for one test says which. The compiler then leaves the others out.
#ifndef CHECK_ONLY
#define CHECK_ONLY ""
#endif

constexpr bool is_wanted(std::string_view sentence) {
    return sentence.find(CHECK_ONLY) != sentence.npos;
}

inline std::vector<Test>& tests() {
    static std::vector<Test> tests;
    return tests;
}

}  // namespace model

#define MODEL_JOIN2(a, b) a##b
#define MODEL_JOIN(a, b) MODEL_JOIN2(a, b)
#define MODEL(...) MODEL_NAMED(MODEL_JOIN(model_at_line_, __LINE__), __VA_ARGS__)
#define MODEL_NAMED(name, sentence, ...)                                                \
    static void name();                                                                 \
    static const bool MODEL_JOIN(name, _registered) = [] {                              \
        if constexpr (model::is_wanted(sentence))                                       \
            model::tests().push_back(model::Test{sentence, name, ##__VA_ARGS__});       \
        return true;                                                                    \
    }();                                                                                \
    static void name()

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) model::fail("not so: " #condition, {__FILE__, __LINE__}); \
    } while (false)
