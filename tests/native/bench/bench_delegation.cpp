// Delegation against two locks: threads that use one resource. Every run checks that each use took
// place once, in the resource's own plain counters.
#include <mutex>
#include <thread>

#include "callboard/mailbox/delegation.hpp"
#include "work.hpp"

using callboard::Atomic;
using callboard::monotonic_ns;
using bench::work;

namespace {

constexpr int round_count = 11;
constexpr double run_ns = 20e6;  // about how long a run's work in the resource takes

// What everybody wants: plain fields that only an owner may touch.
struct Resource {
    int turns = 0;
    std::int64_t used = 0, sum = 0;
    std::uint64_t state = 1;
    void use(std::int64_t amount) {
        state = work(state, turns);
        ++used;
        sum += amount;
    }
};

struct Mutex {
    static constexpr const char* name = "std::mutex";
    std::mutex mutex;
    Resource resource;
    struct Client {
        void use(Mutex& shared, std::int64_t amount) {
            std::lock_guard<std::mutex> guard(shared.mutex);
            shared.resource.use(amount);
        }
        void finish() {}
    };
};

// Test and test-and-set; yields when it waits long, for there may be more threads than cores.
struct Spin {
    static constexpr const char* name = "spin lock";
    alignas(callboard::cache_line) Atomic<bool> locked{false};
    alignas(callboard::cache_line) Resource resource;
    struct Client {
        void use(Spin& shared, std::int64_t amount) {
            for (int tries = 0; shared.locked.exchange(true, callboard::acquire);) {
                while (shared.locked.load(callboard::relaxed)) {
                    if (++tries % 512 == 0) std::this_thread::yield();
                    else callboard::relax();
                }
            }
            shared.resource.use(amount);
            shared.locked.store(false, callboard::release);
        }
        void finish() {}
    };
};

struct Delegated {
    static constexpr const char* name = "delegation";
    struct Request {
        std::int64_t amount = 0;
        Request* next = nullptr;
        Atomic<bool> served{true};
    };
    alignas(callboard::cache_line) callboard::Delegation<Request> door;
    alignas(callboard::cache_line) Resource resource;

    void serve(Request* request) {
        resource.use(request->amount);
        request->served.store(true, callboard::release);  // the sender may use the request again
    }

    // A sender has at most this many requests under way, and waits for the oldest.
    static constexpr std::size_t under_way = 64;
    struct Client {
        Request requests[under_way];
        std::size_t at = 0;

        static void await(const Request& request) {
            for (int tries = 0; !request.served.load(callboard::acquire);) {
                if (++tries % 512 == 0) std::this_thread::yield();
                else callboard::relax();
            }
        }

        void use(Delegated& shared, std::int64_t amount) {
            Request& request = requests[at++ % under_way];
            await(request);
            request.amount = amount;
            request.served.store(false, callboard::relaxed);
            if (!shared.door.own_or_delegate(&request)) return;
            shared.serve(&request);
            while (!shared.door.try_release()) {
                for (Request* other = shared.door.take(); other != nullptr;) {
                    Request* following = other->next;
                    shared.serve(other);
                    other = following;
                }
            }
        }

        void finish() {
            for (Request& request : requests) await(request);
        }
    };
};

// Nanoseconds per use, all threads together. Between two uses a thread works `outside` for itself.
template <class Way>
double use_it(int threads, double inside_ns, double outside_ns, double speed) {
    const double expected = std::max(30.0, inside_ns + outside_ns / threads);
    const auto each = static_cast<std::int64_t>(run_ns / expected / threads) + 1;
    const int outside = static_cast<int>(outside_ns * speed);
    Way way;
    way.resource.turns = static_cast<int>(inside_ns * speed);
    Atomic<int> waiting{threads};
    Atomic<std::int64_t> begin{0};
    Atomic<std::uint64_t> kept{0};
    std::vector<std::thread> all;
    for (int index = 0; index < threads; ++index) {
        all.emplace_back([&, index] {
            bench::pin(index);
            typename Way::Client client;
            std::uint64_t own = static_cast<std::uint64_t>(index);
            if (waiting.fetch_sub(1, callboard::acq_rel) == 1)
                begin.store(monotonic_ns(), callboard::relaxed);
            while (waiting.load(callboard::acquire) != 0) std::this_thread::yield();
            for (std::int64_t i = 1; i <= each; ++i) {
                own = work(own, outside);
                client.use(way, i);
            }
            client.finish();
            kept.fetch_add(own, callboard::relaxed);  // or the outside work could be left out
        });
    }
    for (std::thread& thread : all) thread.join();
    const std::int64_t end = monotonic_ns();
    bench::require(way.resource.used == threads * each, "a use was lost or doubled");
    bench::require(way.resource.sum == threads * each * (each + 1) / 2, "an amount is wrong");
    return static_cast<double>(end - begin.load(callboard::relaxed)) /
           static_cast<double>(threads * each);
}

template <class... Ways>
void table(double outside_ns, double speed) {
    std::printf("Between two uses a thread works %.0f ns for itself.\n\n", outside_ns);
    bench::head("ns per use: median (least to most)", {Ways::name...});
    for (const double inside_ns : {0.0, 100.0, 1000.0}) {
        for (const int threads : {1, 2, 4}) {
            char name[80];
            std::snprintf(name, sizeof name, "%.0f ns in the resource, %d thread%s", inside_ns, threads,
                          threads == 1 ? "" : "s");
            bench::row(name, bench::rounds(round_count, {{Ways::name, [=] {
                return use_it<Ways>(threads, inside_ns, outside_ns, speed);
            }}...}));
        }
    }
    bench::foot();
}

}  // namespace

int main() {
    const double speed = bench::turns_per_ns();
    table<Delegated, Mutex, Spin>(0, speed);
    table<Delegated, Mutex, Spin>(500, speed);
}
