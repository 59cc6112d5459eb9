// The graphs of shapes.hpp on a simulated machine. Reads the parameters, lines of `NAME VALUE...`, and prints one line
// of JSON.
//
// `cost FLOPS ROWS NS...` is a histogram of measured times of an operator's batch, as quantiles. `lock=1`: operators
// need the interpreter's lock, which is first come, first served. `sample=NS`: how many lanes are at each stage, and
// how many rounds have left, once in so many. `hot=1`: for which lines cores waited, by their places in pools and stages.
//
// `period=NS`: the level of lanes changes. After each period a line of JSON says what was done in it. The next line that
// is read is the level from then on; the end of the input is the end of the run. The parameters end with `end` then.
#include <cmath>
#include <iostream>
#include <sstream>

#include "shapes.hpp"

using namespace shapes;

namespace {

using LaneSet = WideLanes;  // pool.hpp's words, widened

struct Costs {
    std::uint32_t rows;
    std::vector<double> quantiles;
};

simulated::Parameters parameters;
std::map<int, std::vector<Costs>> costs_of;  // by floating-point operations; 0: the source

// What a mutex does to simulated threads, without its own time.
struct Lock {
    bool held{false};
    std::deque<simulated::Thread*> waiting;

    void acquire() {
        auto& machine = *simulated::machine;
        if (held) {
            waiting.push_back(machine.current());
            machine.park();
        }
        held = true;
    }
    void release() {
        if (waiting.empty()) return void(held = false);
        auto* first = waiting.front();
        waiting.pop_front();
        simulated::machine->wake(*first);
    }
};

bool locked = false;
Lock interpreter;
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
    std::vector<std::uint64_t> taken{};  // by each stage

    static Done now() {
        auto& machine = *simulated::machine;
        Done done{machine.now(), 0, machine.busy_of(*sender), machine.operations, machine.cold};
        for (const auto* lane : lane_threads) done.busy += machine.busy_of(*lane);
        each_stage([&](Stage& stage) { done.taken.push_back(stage.taken()); });
        return done;
    }
} before;

// Of each: rows, ns of a row, the most lanes, rounds that wait.
void print_stages() {
    std::size_t i = 0;
    std::printf("\"stages\": [");
    each_stage([&](Stage& stage) {
        std::printf("%s[%llu, %.3f, %u, %lld]", i == 0 ? "" : ", ",
                    static_cast<unsigned long long>(stage.taken() - before.taken[i]), stage.cost_ns(), stage.most_lanes,
                    static_cast<long long>(stage.waiting()));
        ++i;
    });
    std::printf("]");
}

// The thread that changes the level. It takes `call_ns`, and looks each microsecond whether all others rest.
void follow_levels(double period, double call_ns) {
    auto& machine = *simulated::machine;
    double rest = 0;
    before = Done::now();
    for (std::uint32_t level; ;) {
        machine.sleep(std::max(0.0, before.ns + period - machine.now()));
        const Done done = Done::now();
        std::printf("{\"seconds\": %.9f, \"busy\": %.6f, \"sender\": %.6f, \"rest\": %.9f, ", (done.ns - before.ns) / 1e9,
                    (done.busy - before.busy) / (done.ns - before.ns),
                    (done.sent - before.sent) / (done.ns - before.ns), rest / 1e9);
        print_stages();
        std::printf("}\n");
        std::fflush(stdout);
        before = done;
        if (!(std::cin >> level)) return machine.stop();
        machine.spend(call_ns);
        LaneSet active = 0;
        for (std::uint32_t lane = 0; lane < level; ++lane) active |= LaneSet(1) << lane;
        graph_of_run->pools().front()->set_active(active);
        const auto rests = [&] {
            for (std::size_t lane = level; lane < lane_threads.size(); ++lane)
                if (!lane_threads[lane]->parked) return false;
            return true;
        };
        while (!rests()) machine.sleep(1'000);
        rest = machine.now() - done.ns;
    }
}

void read_parameters() {
    const std::map<std::string, double simulated::Parameters::*> names{
        {"instructions_ns", &simulated::Parameters::instructions_ns}, {"update_ns", &simulated::Parameters::update_ns},
        {"second_cache_ns", &simulated::Parameters::second_cache_ns}, {"near_ns", &simulated::Parameters::near_ns},
        {"exposed", &simulated::Parameters::exposed},
        {"far_ns", &simulated::Parameters::far_ns},                   {"kept_ns", &simulated::Parameters::kept_ns},
        {"row_line_ns", &simulated::Parameters::row_line_ns},
        {"clock_ns", &simulated::Parameters::clock_ns},               {"wake_ns", &simulated::Parameters::wake_ns},
        {"woken_ns", &simulated::Parameters::woken_ns},               {"switch_ns", &simulated::Parameters::switch_ns},
        {"slice_ns", &simulated::Parameters::slice_ns}};
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        if (name == "end") return;
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
    double ns;
    if (op.round_ns != 0) {
        ns = op.round_ns * (0.9 + 0.2 * static_cast<double>(machine.random() >> 11) / 9007199254740992.0);
        if (op.start_ns != 0 && op.started.insert(machine.current()).second) ns += op.start_ns;
    } else {
        ns = draw(op.flops, batch.rows);
        machine.read_rows(batch.written_on, batch.rows / 8.0 + 1);
    }
    if (locked) interpreter.acquire();
    machine.spend(ns);
    machine.pass();
    if (locked) interpreter.release();
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
    locked = options.count("lock", 0) != 0;
    Graph graph(options);
    graph_of_run = &graph;
    const double period = options.number("period", 0);
    warm = period == 0 ? graph.warm : -1, last = period == 0 ? graph.last() : -1;
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
    if (period != 0) machine.start([&] { follow_levels(period, options.number("call", 0)); });
    std::string samples;
    if (const double every = options.number("sample", 0); every > 0)
        machine.start([&, every] {
            for (;;) {
                samples += (samples.empty() ? "[" : ", [") + std::to_string(machine.now() / 1e9);
                each_stage([&](Stage& stage) { samples += ", " + std::to_string(stage.lanes()); });
                samples += ", " + std::to_string(graph.came()) + "]";
                machine.sleep(every);
            }
        });
    if (!machine.run()) Options::fail("all simulated threads wait");
    if (period != 0) std::_Exit(0);
    const double ns = ended - began;
    const Done done = Done::now();
    const double busy = done.busy - before.busy, sender_ns = done.sent - before.sent;
    std::printf("{\"seconds\": %.9f, \"cpu\": %.9f, \"rounds\": %lld, \"rows\": %u, \"operators\": %zu, \"busy\": %.6f, "
                "\"work\": %.6f, \"sender\": %.6f, \"operations\": %llu, \"cold\": %llu, \"moved\": %llu, \"wakes\": %llu, \"switches\": %llu, ",
                ns / 1e9, (busy + sender_ns) / 1e9,
                static_cast<long long>(graph.rounds), graph.rows, graph.operators(), busy / ns, work_ns / ns,
                sender_ns / ns, static_cast<unsigned long long>(done.operations - before.operations),
                static_cast<unsigned long long>(done.cold - before.cold),
                static_cast<unsigned long long>(machine.moved), static_cast<unsigned long long>(machine.wakes),
                static_cast<unsigned long long>(machine.switches));
    print_stages();
    std::printf(", \"samples\": [%s]", samples.c_str());
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
