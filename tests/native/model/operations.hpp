// The operations of a test's threads. Each is an event of the execution that runs. run.hpp is behind them.
#pragma once

#include <atomic>
#include <cstdint>

namespace model {

inline constexpr int most_threads = 6;  // with thread 0, which sets up, and looks at the end

// An event's name, the same in each graph that has it: the how-manyth of which thread.
struct Id {
    std::uint16_t thread = 0xffff, index = 0xffff;
    bool operator==(Id other) const { return thread == other.thread && index == other.index; }
    bool operator!=(Id other) const { return !(*this == other); }
};
inline constexpr Id none{};

enum class Kind : std::uint8_t {
    make,         // of a location, with its first value
    read, write,  // an update is a read and the write after it
    light_fence,  // orders its thread against heavy fences only: the compiler does not move anything across
    heavy_fence,  // membarrier: as if all threads had passed a seq_cst fence
    choice,       // of the world outside: a timeout, say
    fork, join,   // thread 0's only
};

enum class Does : std::uint8_t { load, exchange, add, set_bits, keep_bits, compare };

// Where the source says it.
struct Site {
    const char* file = "";
    int line = 0;
};

// A load, or an update.
struct Access {
    Id location;
    Does does = Does::load;
    std::memory_order success = std::memory_order_relaxed, failure = std::memory_order_relaxed;
    std::uint64_t operand = 0, expected = 0, mask = ~std::uint64_t{0};
    Site site;
};

struct Found {
    std::uint64_t value;
    bool updated;
};

Id make_location(std::uint64_t value, Site site);
void end_location(Id location, Site site);
Found access(const Access& what);
void store(Id location, std::uint64_t value, std::memory_order order, Site site);
void fence(Kind kind, Site site);

// One of so many things that may happen. There are executions with each of them.
unsigned choose(unsigned count, Site site);

// A pause in a loop that looks again: what it repeats sees the same.
void pause();

// Waits until a location has another value that was read since the attempt began, or since the last change. This
// execution ends here; if there is such a value, another one has the thread read it. If there is none, it is a
// deadlock, unless the wait `may_end` otherwise.
[[noreturn]] void wait(bool may_end = false);

// A loop that looks for work begins each attempt by the one, and ends it by the other if it found none. It
// waits then, unless the attempt changed something.
void begin_attempt();
void end_attempt();

// Thrown by the operation of a thread that dies before it. The thread goes on as what comes after its death.
struct Death {};
void die_before(unsigned operation);

// A moment in a thread's plain code: so many of its events came before.
struct Moment {
    int thread = -1;
    std::uint32_t events = 0;
};
Moment now();
bool is_before_now(Moment moment);
std::int64_t& thread_clock();  // nanoseconds

[[noreturn]] void fail(const char* what, Site site = {});

// The function that a thread runs. The test keeps what it is called with.
struct Body {
    void (*call)(void*) = nullptr;
    void* with = nullptr;
};
void run_together(const Body* bodies, int count);

}  // namespace model
