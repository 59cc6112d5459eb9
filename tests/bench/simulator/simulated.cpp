// The graphs of shapes.hpp on a simulated machine. Reads the parameters, lines of `NAME VALUE...`, and prints one line
// of JSON.
//
// `cost FLOPS ROWS NS...` is a histogram of measured times of an operator's batch, as quantiles. `hot=1`: for which
// lines cores waited, by their places in pools and stages.
#include <cmath>
#include <iostream>
#include <sstream>

#include "shapes.hpp"

using namespace shapes;

namespace {

struct Costs {
    std::uint32_t rows;
    std::vector<double> quantiles;
};

simulated::Parameters parameters;
std::map<int, std::vector<Costs>> costs_of;  // by floating-point operations; 0: the source

simulated::Thread* sender = nullptr;
std::int64_t wanted = INT64_MAX, warm, last;
double began, ended;
double work_ns = 0;  // of operators, while it is measured
Graph* graph_of_run;
std::vector<simulated::Thread*> lane_threads;

// Looks at the stages without simulated time.
template <class Look>
void each_stage(Look look) {
    auto* const machine = std::exchange(simulated::machine, nullptr);
    for (auto& stage : graph_of_run->flow.stages()) look(*stage);
    simulated::machine = machine;
}

// What was done until now.
struct Done {
    double ns{0}, busy{0}, sent{0};
    std::uint64_t operations{0}, cold{0};

    static Done now() {
        auto& machine = *simulated::machine;
        Done done{machine.now(), 0, machine.busy_of(*sender), machine.operations, machine.cold};
        for (const auto* lane : lane_threads) done.busy += machine.busy_of(*lane);
        return done;
    }
} before;

void read_parameters() {
    const std::map<std::string, double simulated::Parameters::*> names{
        {"instructions_ns", &simulated::Parameters::instructions_ns}, {"update_ns", &simulated::Parameters::update_ns},
        {"second_cache_ns", &simulated::Parameters::second_cache_ns}, {"near_ns", &simulated::Parameters::near_ns},
        {"exposed", &simulated::Parameters::exposed},
        {"far_ns", &simulated::Parameters::far_ns},                   {"kept_ns", &simulated::Parameters::kept_ns},
        {"row_line_ns", &simulated::Parameters::row_line_ns},
        {"clock_ns", &simulated::Parameters::clock_ns},               {"wake_ns", &simulated::Parameters::wake_ns},
        {"woken_ns", &simulated::Parameters::woken_ns},               {"switch_ns", &simulated::Parameters::switch_ns},
        {"time_slice_ns", &simulated::Parameters::time_slice_ns}};
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        if (name == "cost") {
            int flops;
            Costs costs;
            words >> flops >> costs.rows;
            for (double ns; words >> ns;) costs.quantiles.push_back(ns);
            costs_of[flops].push_back(costs);
        } else if (const auto found = names.find(name); found != names.end()) {
            words >> parameters.*found->second;
        } else {
            Options::fail("no parameter: " + line);
        }
    }
}

// A measured time of a batch with as many rows, or one with the next number of rows, in proportion.
double draw(int flops, std::uint32_t rows) {
    const auto& all = costs_of[flops];
    if (all.empty()) Options::fail("no cost was measured of " + std::to_string(flops) + " operations");
    const Costs* best = &all[0];
    for (const Costs& costs : all)
        if (std::abs(std::log2(double(costs.rows) / rows)) < std::abs(std::log2(double(best->rows) / rows))) best = &costs;
    const auto place = simulated::machine->random() % best->quantiles.size();
    return best->quantiles[place] * rows / best->rows;
}

}  // namespace

void shapes::perform(Operator& op, Batch& batch) {
    auto& machine = *simulated::machine;
    const double ns = draw(op.flops, batch.rows);
    machine.read_rows(batch.written_on, batch.rows / 8.0 + 1);
    machine.spend(ns);
    machine.pass();
    if (began != 0) work_ns += ns;
}

void shapes::came_to_sink(std::int64_t serial, Batch&) {
    auto& machine = *simulated::machine;
    if (serial == warm) {
        before = Done::now();
        began = before.ns;
    }
    if (serial == last) ended = machine.now(), machine.stop();
    if (serial == wanted) machine.wake(*sender);
}

// Where a line lies: in a pool, or at which place of a stage of which class; or in what a stage has allocated.
std::string place_of(std::uintptr_t line, const std::map<std::uintptr_t, std::pair<std::string, std::size_t>>& objects) {
    auto found = objects.upper_bound(line + 63);
    if (found == objects.begin()) return "elsewhere";
    --found;
    const auto offset = static_cast<std::int64_t>(line - found->first);
    if (offset >= static_cast<std::int64_t>(found->second.second)) return "elsewhere";
    return found->second.first + " + " + std::to_string(offset);
}

std::map<std::string, double> hot_places() {
    std::map<std::uintptr_t, std::pair<std::string, std::size_t>> objects;
    const auto add = [&](const void* at, const char* name, std::size_t size) {
        objects[reinterpret_cast<std::uintptr_t>(at)] = {name, size};
    };
    each_stage([&](Stage& stage) {
        if (dynamic_cast<SharedStage<>*>(&stage)) add(&stage, "SharedStage", sizeof(SharedStage<>));
        else if (dynamic_cast<OrderedStage*>(&stage)) add(&stage, "OrderedStage", sizeof(OrderedStage));
    });
    for (Pool* pool : graph_of_run->pools()) add(pool, "Pool", sizeof(Pool));
    add(&graph_of_run->flow, "Flow", sizeof(Flow));
    std::map<std::string, double> waited;
    simulated::machine->each_line([&](std::uintptr_t line, double ns) { waited[place_of(line, objects)] += ns; });
    return waited;
}

int main(int count, char** words) {
    const Options options(count, words);
    read_parameters();
    parameters.cores = options.count("cores", parameters.cores);
    parameters.of_socket = options.count("of_socket", parameters.of_socket);
    Graph graph(options);
    graph_of_run = &graph;
    warm = graph.warm, last = graph.last();
    simulated::Machine machine(parameters, static_cast<std::uint64_t>(options.number("seed", 1)));
    simulated::machine = &machine;
    std::vector<void*> selves;
    for (std::size_t i = 0; i < graph.pools().size(); ++i) selves.push_back(new simulated::Thread*);
    const auto wake = [](void* self) { simulated::machine->wake(**static_cast<simulated::Thread**>(self)); };
    const auto lanes = graph.add_lanes(+wake, selves);
    for (std::size_t i = 0; i < lanes.size(); ++i)
        lane_threads.push_back(&machine.start([&machine, lane = lanes[i]] {
            for (;;)
                if (lane.pool->run(lane.number).reason == Pool::Rest::idle) machine.park();
        }));
    for (std::size_t i = 0; i < lanes.size(); ++i) *static_cast<simulated::Thread**>(selves[i]) = lane_threads[i];
    const auto window = static_cast<std::int64_t>(graph.flow.settings.window);
    sender = &machine.start([&] {
        for (;;) {
            while (!graph.flow.has_room()) {
                wanted = graph.flow.admitted() - window / 2;
                if (graph.flow.done() <= wanted) machine.park();
            }
            graph.admit();
        }
    });
    if (!machine.run()) Options::fail("all simulated threads wait");
    const double ns = ended - began;
    const Done done = Done::now();
    const double busy = done.busy - before.busy, sender_ns = done.sent - before.sent;
    std::printf("{\"seconds\": %.9f, \"cpu\": %.9f, \"rounds\": %lld, \"rows\": %u, \"operators\": %zu, \"busy\": %.6f, "
                "\"work\": %.6f, \"sender\": %.6f, \"operations\": %llu, \"cold\": %llu, \"moved\": %llu, \"wakes\": %llu, \"switches\": %llu",
                ns / 1e9, (busy + sender_ns) / 1e9,
                static_cast<long long>(graph.rounds), graph.rows, graph.operators(), busy / ns, work_ns / ns,
                sender_ns / ns, static_cast<unsigned long long>(done.operations - before.operations),
                static_cast<unsigned long long>(done.cold - before.cold),
                static_cast<unsigned long long>(machine.moved), static_cast<unsigned long long>(machine.wakes),
                static_cast<unsigned long long>(machine.switches));
    if (options.count("hot", 0) != 0) {
        const char* comma = "";
        std::printf(", \"hot\": {");
        for (const auto& [place, waited] : hot_places())
            std::printf("%s\"%s\": %.0f", std::exchange(comma, ", "), place.c_str(), waited);
        std::printf("}");
    }
    std::printf("}\n");
    std::fflush(stdout);
    std::_Exit(0);  // fibers are in the middle of the graph
}
