// The rows, sources and lanes of bench_lanes.cpp: what both of its ways have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "../../bench/peers/ring_gate.hpp"
#include "../../bench/peers/scale_gate.hpp"
#include "callboard/core/mix.hpp"
#include "callboard/streams/programs/joins/kernel/column_matcher.hpp"
#include "callboard/streams/programs/joins/kernel/join_outputs.hpp"
#include "paper_rows.hpp"

namespace bench::lanes {

using namespace callboard;

using Time = std::int64_t;
constexpr std::size_t lot_rows = 512, add_rows = 64, gate_window = 4096;

struct Pair {
    std::uint64_t row, partner;
};

// Rows as columns, of both sides in one order.
struct Columns {
    std::vector<std::uint8_t> sides;
    std::vector<Time> times;
    std::vector<std::uint64_t> numbers;
    std::vector<std::int32_t> x;
    std::vector<float> y;

    std::size_t rows() const { return sides.size(); }
    void reserve(std::size_t rows) {
        sides.reserve(rows), times.reserve(rows), numbers.reserve(rows), x.reserve(rows), y.reserve(rows);
    }
    void clear() { sides.clear(), times.clear(), numbers.clear(), x.clear(), y.clear(); }
    JoinBatch<Time> batch() const {
        JoinBatch<Time> batch;
        batch.rows = rows();
        batch.sides = sides.data();
        batch.times = times.data();
        batch.numbers = numbers.data();
        batch.values[0] = x.data();
        batch.values[1] = y.data();
        return batch;
    }
};

// A physical stream. What a gate has of a row is its place here.
struct Source {
    std::uint8_t side;
    std::vector<Time> times;
    std::vector<std::int32_t> x;
    std::vector<float> y;
};

// What rows have to be compared with.
struct Predicate {
    const char* name;
    bool by_buckets;
    std::size_t window;  // rows of a side
    std::size_t rows;    // that come
};
constexpr Predicate predicates[] = {
    {"each pair of 64 rows a side", false, 64, 200'000},
    {"by buckets, 10,000 rows a side", true, 10'000, 200'000},
    {"each pair of 20,000 rows a side", false, 20'000, 32'000},
};

struct Case {
    Predicate predicate;
    std::vector<Source> sources;
    Columns before;  // with these windows are full

    Case(const Predicate& wanted, unsigned count) : predicate(wanted), sources(count) {
        const std::size_t full = 2 * wanted.window;
        const auto draw = [&](std::uint64_t seed, std::size_t i, auto& columns) {
            const std::uint64_t random = random_number(seed, i);
            columns.x.push_back(static_cast<std::int32_t>(random % 10000 + 1));
            columns.y.push_back(1 + static_cast<float>(random >> 40) * (9999.0f / 16777216.0f));
        };
        for (std::size_t i = 0; i < full; ++i) {
            before.sides.push_back(i % 2);
            before.times.push_back(static_cast<Time>(i) - static_cast<Time>(full));
            before.numbers.push_back(i);
            draw(99, i, before);
        }
        // Of all sources together about one row comes in a unit of time.
        for (unsigned at = 0; at < count; ++at) {
            Source& source = sources[at];
            source.side = at % 2;
            Time now = 0;
            for (std::size_t i = 0; i < wanted.rows / count; ++i) {
                now += static_cast<Time>(random_number(at, i) % (2 * count));
                source.times.push_back(now);
                draw(100 + at, i, source);
            }
        }
    }

    std::size_t rows() const { return sources.size() * sources[0].times.size(); }
    JoinSettings<Time> settings(std::uint64_t lanes, std::uint64_t lane) const {
        return {bench::paper_predicate(), JoinRule::strict, static_cast<Time>(2 * predicate.window), lanes, lane};
    }
};

// The comparisons of a lane, and nothing else.
class Lane {
public:
    Lane(const Case& of, std::uint64_t lanes, std::uint64_t lane) {
        if (of.predicate.by_buckets) indexed_ = std::make_unique<IndexedJoin<Time>>(of.settings(lanes, lane));
        else full_ = std::make_unique<FullJoin<Time>>(of.settings(lanes, lane));
        std::vector<JoinMatch> matches;
        join(of.before.batch(), matches);
    }
    void join(const JoinBatch<Time>& batch, std::vector<JoinMatch>& matches) {
        if (indexed_ != nullptr) indexed_->join(batch, matches);
        else full_->join(batch, matches);
    }

private:
    std::unique_ptr<IndexedJoin<Time>> indexed_;
    std::unique_ptr<FullJoin<Time>> full_;
};

template <template <class, class> class Gate>
struct Of {
    using Rows = Gate<Time, std::uint32_t>;
    using Pairs = Gate<Time, Pair>;
};
template <class T, class V>
using ListGate = ScaleGate<T, V>;
using Rings = Of<RingGate>;
using Lists = Of<ListGate>;

// What is ready for a reader, as columns. Returns how many rows.
template <class Rows>
__attribute__((noinline)) std::size_t read_lot(const Case& of, Rows& gate, unsigned reader, std::uint64_t first,
                                               typename Rows::Entry* entries, Columns& lot) {
    lot.clear();
    const std::size_t count = gate.next_many(reader, entries, lot_rows);
    for (std::size_t i = 0; i < count; ++i) {
        const Source& source = of.sources[entries[i].source];
        lot.sides.push_back(source.side);
        lot.times.push_back(entries[i].time);
        lot.numbers.push_back(first + i);
        lot.x.push_back(source.x[entries[i].value]);
        lot.y.push_back(source.y[entries[i].value]);
    }
    return count;
}

// The next rows of a source. Returns how many there was room for.
template <class Rows>
std::size_t add_some(const Case& of, Rows& gate, unsigned at, std::size_t begin) {
    const Source& source = of.sources[at];
    typename Rows::Value values[add_rows];
    const std::size_t count = std::min(add_rows, source.times.size() - begin);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = {source.times[begin + i], static_cast<std::uint32_t>(begin + i)};
    return gate.add_many(at, values, count);
}

// What lanes have found of a lot, together. `others` are all but the first's.
__attribute__((noinline)) inline void put_together(std::vector<JoinMatch>& matches, const std::vector<JoinMatch>* others,
                                            unsigned count) {
    for (unsigned i = 0; i < count; ++i) add_matches(matches, others[i]);
}

template <class Rows>
void start_sources(const Case& of, Rows& gate, std::vector<std::thread>& threads) {
    for (unsigned at = 0; at < of.sources.size(); ++at)
        threads.emplace_back([&, at] {
            for (std::size_t begin = 0; begin < of.sources[at].times.size();) {
                const std::size_t added = add_some(of, gate, at, begin);
                begin += added;
                if (added == 0) std::this_thread::yield();
            }
            gate.end(at);
        });
}

// Lanes are made, and windows filled, before the clock starts.
inline std::vector<std::unique_ptr<Lane>> make_lanes(const Case& of, unsigned lanes) {
    std::vector<std::unique_ptr<Lane>> all;
    for (unsigned lane = 0; lane < lanes; ++lane) all.push_back(std::make_unique<Lane>(of, lanes, lane));
    return all;
}

}  // namespace bench::lanes
