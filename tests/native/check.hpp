// A test harness in one page: TEST registers a sentence. CHECK and CHECK_EQUAL count failures and
// show values. run_all() runs the registered tests and names those that failed. A program has the
// tests of one source, which CHECK_MAIN ends, or of several (joined.sh), where main.cpp has the main().
//
// A check may run on any thread: the count is atomic, the message one write to stderr.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "callboard/core/atomics.hpp"

namespace check {

struct Test {
    const char* source;
    const char* sentence;
    void (*run)();
};

inline std::vector<Test>& registered() {
    static std::vector<Test> tests;
    return tests;
}

// A program made for one test says which. The compiler then leaves the others out, and all that only they use.
#ifndef CHECK_ONLY
#define CHECK_ONLY ""
#endif

constexpr bool is_wanted(std::string_view sentence) {
    return sentence.find(CHECK_ONLY) != sentence.npos;
}

inline callboard::Atomic<int> failures{0};

inline void fail(const char* file, int line, const std::string& what) {
    failures.fetch_add(1, callboard::relaxed);
    std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

// For a failure that leaves threads behind which will never end.
[[noreturn]] inline void give_up(const char* file, int line, const std::string& what) {
    fail(file, line, what);
    std::_Exit(1);
}

template <class A, class B>
void equal(const A& left, const B& right, const char* text, const char* file, int line) {
    if (left == right) return;
    std::ostringstream what;
    what << text << ": " << left << " against " << right;
    fail(file, line, what.str());
}

// Runs every test whose sentence contains `filter`, or all tests of a source of that name. The exit code of the program.
inline int run_all(const std::string& filter) {
    int ran = 0, failed = 0;
    std::string_view source;
    for (const Test& test : registered()) {
        if (filter + ".cpp" != test.source && std::strstr(test.sentence, filter.c_str()) == nullptr) continue;
        if (source != test.source) std::printf("# %s\n", test.source);
        source = test.source;
        const int before = failures.load(callboard::relaxed);
        test.run();
        const bool good = failures.load(callboard::relaxed) == before;
        std::printf("%s %s\n", good ? "ok  " : "FAIL", test.sentence);
        std::fflush(stdout);
        ++ran;
        failed += !good;
    }
    std::printf("%d run, %d failed\n", ran, failed);
    return failed != 0 || ran == 0;
}

}  // namespace check

#define CHECK_JOIN2(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN2(a, b)
#define TEST(sentence) TEST_NAMED(sentence, CHECK_JOIN(test_at_line_, __LINE__))
#define TEST_NAMED(sentence, name)                                                            \
    static void name();                                                                       \
    static const bool CHECK_JOIN(name, _registered) = [] {                                    \
        if constexpr (check::is_wanted(sentence)) check::registered().push_back({__FILE__, sentence, name}); \
        return true;                                                                          \
    }();                                                                                      \
    static void name()

#define CHECK(condition)                                               \
    do {                                                               \
        if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
    } while (false)
#define CHECK_EQUAL(left, right) \
    check::equal((left), (right), #left " == " #right, __FILE__, __LINE__)

#ifdef CHECK_JOINED
#define CHECK_MAIN
#else
#define CHECK_MAIN                                        \
    int main(int count, char** words) {                   \
        return check::run_all(count > 1 ? words[1] : ""); \
    }
#endif
