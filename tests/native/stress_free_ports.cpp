// The scheduler of Streams 4.2 under contention: small rings, several threads, and operators that pass
// on what they get. What operators hold is plain memory: one that two threads are in at a time, or in turn
// without order, is a data race.
#include "../bench/peers/free_ports.hpp"

#include "stress.hpp"

using callboard::Atomic;
using free_ports::Port;
using free_ports::Scheduler;
using namespace stress;

namespace {

struct Operator {
    Operator(int sources, std::size_t capacity) : port(execute, this, capacity), ledger(sources) {}

    static void execute(void* self, std::int64_t stamped) {
        auto& here = *static_cast<Operator*>(self);
        here.ledger.receive(stamped);
        if (here.next != nullptr) here.scheduler->push(*here.next, stamped);
        else if (here.ledger.received() == here.all) here.scheduler->close_ports();
    }

    Port<std::int64_t> port;
    Ledger ledger;
    Scheduler<std::int64_t>* scheduler{nullptr};
    Port<std::int64_t>* next{nullptr};
    std::int64_t all{0};
};

// `sources` threads push into a line of operators, beside `threads` scheduler threads of which one is
// suspended and resumed all the time. Every operator sees every tuple once, each source's in order.
void everything_arrives(int sources, int threads, int operators, std::size_t capacity, int each) {
    std::vector<std::unique_ptr<Operator>> line;
    std::vector<Port<std::int64_t>*> ports;
    for (int i = 0; i < operators; ++i) {
        line.push_back(std::make_unique<Operator>(sources, capacity));
        ports.push_back(&line.back()->port);
    }
    Scheduler<std::int64_t> scheduler(ports);
    for (int i = 0; i < operators; ++i) {
        line[i]->scheduler = &scheduler;
        line[i]->next = i + 1 < operators ? ports[i + 1] : nullptr;
        line[i]->all = std::int64_t{sources} * each;
    }
    scheduler.start(static_cast<std::size_t>(threads), true);
    Atomic<bool> over{false};
    std::vector<std::thread> pushing;
    for (int source = 0; source < sources; ++source)
        pushing.emplace_back([&, source] {
            Random random(static_cast<std::uint64_t>(source));
            for (int number = 0; number < each; ++number) {
                scheduler.push(*ports[0], stamp(source, number));
                random.pause();
            }
        });
    std::thread elastic([&] {
        while (!over.load(callboard::relaxed)) {
            scheduler.suspend(0);
            std::this_thread::yield();
            scheduler.resume(0);
            std::this_thread::yield();
        }
    });
    scheduler.schedule();  // this thread is one more, and ends with the last tuple
    over.store(true, callboard::relaxed);
    elastic.join();
    for (std::thread& thread : pushing) thread.join();
    scheduler.shut_down();
    for (auto& here : line) {
        CHECK_EQUAL(here->ledger.received(), here->all);
        CHECK_EQUAL(here->ledger.wrong(), 0);
    }
}

}  // namespace

TEST("every operator sees every tuple once, each source's in order") {
    everything_arrives(1, 1, 5, 1, 5000);
    everything_arrives(1, 2, 20, 2, 2000);
    everything_arrives(2, 2, 5, 4, 5000);
    everything_arrives(3, 4, 10, 4, 2000);
}

CHECK_MAIN
