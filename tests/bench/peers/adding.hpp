// The stream pipeline that native programs run: operators that each add 1, row by row or in batches. A source
// before them gives consecutive numbers. A sink behind them checks that each comes out once, in order, with 1
// added by each operator.
//
// Batches and the work on them are callboard's: an operator reads one chunk and writes another, because others
// might read the first. So the measurement shows only the scheduling.
#pragma once

#include <chrono>
#include <cstdint>

#include "callboard/scheduling/flow/values.hpp"
#include "result.hpp"

using Row = std::int64_t;
using Batch = callboard::Values*;

struct Source {
    std::int64_t rows, batch_size, sent{0};

    bool is_done() const { return sent == rows; }

    void make(Row& row) { row = sent++; }
    void make(Batch& batch) {
        callboard::Output out(static_cast<std::uint64_t>(batch_size));
        for (std::int64_t i = 0; i < batch_size && sent < rows; ++i) out.push_integer(sent++, 0);
        batch = out.take();
    }
};

inline Row add_one(Row row) { return row + 1; }

inline void let_go(Batch batch) {
    if (batch->drop()) batch->free();
}

inline Batch add_one(Batch batch) {
    callboard::Output out(batch->count());
    const callboard::Value* const values = batch->begin();
    for (std::uint64_t i = 0; i < batch->count(); ++i) out.push_integer(values[i].integer + 1, values[i].tag);
    let_go(batch);
    return out.take();
}

struct Sink {
    const std::int64_t operators;
    std::int64_t arrived{0}, in_order{0};

    void take(Row row) { in_order += row == arrived++ + operators; }
    void take(Batch batch) {
        for (std::uint64_t i = 0; i < batch->count(); ++i) take(batch->begin()[i].integer);
        let_go(batch);
    }
};

// The result of a run that began when the first row was made.
class Timed {
public:
    Result result(const Source& source, const Sink& sink) const {
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
        return {source.rows * sink.operators, seconds.count(), sink.in_order, source.rows};
    }

private:
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};
