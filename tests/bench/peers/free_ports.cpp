// The scheduler of IBM Streams 4.2 (free_ports.hpp) at a pipeline of operators that each add 1.
//
// The source's thread becomes a scheduler thread when all is sent, and is counted as one: with one worker it is
// alone, and whatever moves before the end of the rows moves because rings are full.
//
// Usage: free_ports adding ROWS WORKERS OPERATORS BATCH [RING]; a batch of 0 is row by row, without a chunk around
// it. A port's ring holds what was fastest: 8 batches (of 2 to 64), or 256 rows (of 16 to 1,024). Prints one line
// of JSON.

#include "free_ports.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "adding.hpp"

using free_ports::Port;
using free_ports::Scheduler;

template <class Tuple>
struct Operator {
    Operator(Scheduler<Tuple>*& scheduler, std::size_t ring) : port(execute, this, ring), scheduler(scheduler) {}

    static void execute(void* self, Tuple tuple) {
        auto& here = *static_cast<Operator*>(self);
        here.scheduler->push(*here.next, add_one(tuple));
    }

    Port<Tuple> port;
    Scheduler<Tuple>*& scheduler;
    Port<Tuple>* next{nullptr};
};

template <class Tuple>
struct End {
    static void execute(void* self, Tuple tuple) {
        auto& here = *static_cast<End*>(self);
        here.sink.take(tuple);
        if (here.sink.arrived == here.rows) here.scheduler->close_ports();
    }

    Sink sink;
    const std::int64_t rows;
    Scheduler<Tuple>*& scheduler;
};

template <class Tuple>
Result pipeline(Source source, std::size_t workers, std::int64_t operators, std::size_t ring) {
    Scheduler<Tuple>* scheduler = nullptr;
    std::vector<std::unique_ptr<Operator<Tuple>>> line;
    End<Tuple> end{{operators}, source.rows, scheduler};
    Port<Tuple> last(End<Tuple>::execute, &end, ring);
    std::vector<Port<Tuple>*> ports;
    for (std::int64_t i = 0; i < operators; ++i) {
        line.push_back(std::make_unique<Operator<Tuple>>(scheduler, ring));
        ports.push_back(&line.back()->port);
    }
    ports.push_back(&last);
    for (std::size_t i = 0; i < line.size(); ++i) line[i]->next = ports[i + 1];
    Scheduler<Tuple> own(ports);
    scheduler = &own;
    own.start(workers - 1, true);
    const Timed time;
    while (!source.is_done()) {
        Tuple tuple;
        source.make(tuple);
        own.push(*ports[0], tuple);
    }
    own.schedule();
    const Result result = time.result(source, end.sink);
    own.shut_down();
    return result;
}

int main(int argc, char** argv) {
    if (argc < 6 || std::string(argv[1]) != "adding")
        return std::fprintf(stderr, "usage: free_ports adding ROWS WORKERS OPERATORS BATCH [RING]\n"), 2;
    const std::int64_t batch = std::atoll(argv[5]);
    const Source source{std::atoll(argv[2]), batch};
    const auto workers = static_cast<std::size_t>(std::atoi(argv[3]));
    const auto ring = static_cast<std::size_t>(argc > 6 ? std::atoi(argv[6]) : batch == 0 ? 256 : 8);
    return print(batch == 0 ? pipeline<Row>(source, workers, std::atoll(argv[4]), ring)
                            : pipeline<Batch>(source, workers, std::atoll(argv[4]), ring));
}
