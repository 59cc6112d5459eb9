// The work of a native operator on chunks of values. Only errors need the interpreter: they are Python
// objects, and rare.
//
// A partitioned operator has an object for each partition, and two stages: the first divides chunks,
// the second processes the sub-batches. A sequential run calls both, one after the other.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "callboard/scheduling/flow/stage.hpp"
#include "callboard/scheduling/flow/values.hpp"

namespace callboard {

struct NativeWork {
    // --- from the operator; the first argument is the object ---------------------------------------
    void (*process)(void*, const Value*, std::uint64_t count, Output*){nullptr};
    void (*finish)(void*, Output*){nullptr};
    std::uint64_t (*key_of)(void*, const Value*){nullptr};
    std::vector<void*> objects;  // one, or one for each partition; borrowed

    // --- from the run ------------------------------------------------------------------------------
    void* owner{nullptr};
    const Atomic<std::int64_t>* stopped_at{nullptr};  // rounds after this one are dropped
    std::uint32_t edges{0};                           // 0 for a sink
    // Makes an error object for a reason, owned; takes another reference to one; drops one; ends the run by one, whose
    // reference it takes over.
    void* (*make_error)(void* owner, const char* reason){nullptr};
    void (*retain_error)(void* error){nullptr};
    void (*drop_error)(void* error){nullptr};
    void (*report)(void* owner, std::int64_t serial, void* error){nullptr};

    // --- the work of its stages --------------------------------------------------------------------

    Work whole() { return {this, process_chunk, pick, discard, nullptr, nullptr}; }
    // The whole work of a keyed operator.
    Work undivided() { return {this, process_divided, pick, discard, nullptr, nullptr}; }
    Work divider() { return {this, divide, nullptr, discard, nullptr, nullptr}; }
    Work partition_work() { return {this, nullptr, pick, discard, do_sub_batch, gather}; }

    // The same on the calling thread: the output of a round's chunk, or null.
    Values* alone(Values* chunk, bool divided) {
        RowTotals counts;
        void* input = chunk;
        return static_cast<Values*>((divided ? process_divided : process_chunk)(this, 0, &input, counts));
    }

    void let_go(Values* chunk) {
        assert(chunk != nullptr);
        if (!chunk->drop()) return;
        if (chunk->error != nullptr) drop_error(chunk->error);
        chunk->free();
    }

private:
    // The outputs of a sub-batch, and the place where it failed, if it did: one of its values, or the stream's
    // end.
    struct SubBatchResult {
        Values* outputs{nullptr};
        const char* failure{nullptr};
        std::size_t failed_at{0};
    };
    struct DividedChunk : Division {
        Values* chunk;
        std::vector<SubBatchResult> results;
    };

    static NativeWork& of(void* self) { return *static_cast<NativeWork*>(self); }

    bool is_dropped(std::int64_t serial) const { return serial > stopped_at->load(relaxed); }

    // Takes the contents of `out` as the round's output, and releases the chunk that they were made
    // from.
    void* output_of(std::int64_t serial, Values* chunk, Output& out, const char* failure) {
        void* error = failure != nullptr ? make_error(owner, failure) : chunk->error;
        if (failure == nullptr && error != nullptr) retain_error(error);
        const bool final = chunk->final && error == nullptr;
        let_go(chunk);
        Values* output = out.take();
        if (edges == 0) {
            if (output != nullptr) output->free();
            if (error != nullptr) report(owner, serial, error);
            return nullptr;
        }
        if (output == nullptr && (final || error != nullptr)) output = Values::make(0);
        if (output != nullptr) {
            output->final = final;
            output->error = error;
        }
        return output;
    }

    static void* process_chunk(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        NativeWork& work = of(self);
        auto* chunk = static_cast<Values*>(inputs[0]);
        if (chunk == nullptr) return nullptr;
        if (work.is_dropped(serial)) return work.let_go(chunk), nullptr;
        Output out(chunk->count());
        counts.taken += chunk->count();
        if (chunk->count() != 0) work.process(work.objects[0], chunk->begin(), chunk->count(), &out);
        if (chunk->final && out.failure() == nullptr) work.finish(work.objects[0], &out);
        counts.given += out.count();
        return work.output_of(serial, chunk, out, out.failure());
    }

    static void* process_divided(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        RowTotals divided;
        auto* division = static_cast<Division*>(divide(self, serial, inputs, divided));
        if (division == nullptr) return nullptr;
        division->serial = serial;
        for (std::uint32_t i = 0; i < division->count(); ++i) do_sub_batch(self, *division, i, counts);
        return gather(self, *division);
    }

    // The caller takes it last, or holds another reference.
    static void* pick(void* self, void* output, std::uint32_t edge) {
        NativeWork& work = of(self);
        auto* chunk = static_cast<Values*>(output);
        assert(edge < work.edges && chunk != nullptr);
        if (edge == 0) {
            chunk->first = work.passed_;
            work.passed_ += static_cast<std::int64_t>(chunk->count());
        }
        if (edge + 1 != work.edges) chunk->retain();
        return chunk;
    }

    static void discard(void* self, void* output) { of(self).let_go(static_cast<Values*>(output)); }

    static void* divide(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        NativeWork& work = of(self);
        auto* chunk = static_cast<Values*>(inputs[0]);
        if (chunk == nullptr) return nullptr;
        if (work.is_dropped(serial)) return work.let_go(chunk), nullptr;
        counts.taken += chunk->count();
        counts.given += chunk->count();
        auto* divided = new DividedChunk;
        divided->chunk = chunk;
        divided->divide_among(static_cast<std::uint32_t>(work.objects.size()), chunk->count());
        if (chunk->final) divided->concern_all();
        const Value* const values = chunk->begin();
        for (std::uint64_t i = 0; i < chunk->count(); ++i)
            divided->add(work.key_of(work.objects[0], &values[i]));
        divided->results.resize(divided->count());
        return static_cast<Division*>(divided);
    }

    // Value by value, so that it is known which output comes from which.
    static void do_sub_batch(void* self, Division& division, std::uint32_t number, RowTotals& counts) {
        NativeWork& work = of(self);
        auto& divided = static_cast<DividedChunk&>(division);
        Division::SubBatch& sub_batch = division.sub_batch(number);
        assert(number < divided.results.size() && sub_batch.partition < work.objects.size());
        SubBatchResult& result = divided.results[number];
        if (!work.is_dropped(division.serial)) {
            counts.taken += sub_batch.rows.size();
            void* object = work.objects[sub_batch.partition];
            const Value* const values = divided.chunk->begin();
            Output out(sub_batch.rows.size());
            sub_batch.ends.reserve(sub_batch.rows.size());
            for (const auto row : sub_batch.rows) {
                work.process(object, &values[row], 1, &out);
                sub_batch.ends.push_back(out.count());
                if (out.failure() != nullptr) break;
                ++result.failed_at;
            }
            if (divided.chunk->final && out.failure() == nullptr) work.finish(object, &out);
            result.failure = out.failure();
            counts.given += out.count();
            result.outputs = out.take();
        }
        sub_batch.ends.resize(sub_batch.rows.size(), Division::after_rows(sub_batch));
    }

    // All outputs in the order of the values, up to the first failure. The outputs at the stream's end
    // are in the order of partitions.
    static void* gather(void* self, Division& division) {
        NativeWork& work = of(self);
        auto* divided = static_cast<DividedChunk*>(&division);
        Output out(divided->chunk->count());
        const char* failure = nullptr;
        if (!work.is_dropped(division.serial)) failure = put_together(*divided, out);
        for (auto& result : divided->results)
            if (result.outputs != nullptr) result.outputs->free();
        const auto serial = division.serial;
        Values* chunk = divided->chunk;
        delete divided;
        return work.output_of(serial, chunk, out, failure);
    }

    static const char* put_together(DividedChunk& divided, Output& out) {
        for (std::size_t row = 0; row < divided.rows(); ++row) {
            assert(divided.owner(row) != Division::everybody && "a key's row is in one sub-batch");
            Division::SubBatch& sub_batch = divided.sub_batch(divided.owner(row));
            const SubBatchResult& result = divided.results[divided.owner(row)];
            const auto here = sub_batch.gathered;
            const auto outputs = Division::next(sub_batch);
            push(out, result, outputs.begin, outputs.end);
            if (result.failure != nullptr && result.failed_at == here) return result.failure;
        }
        for (std::uint32_t i = 0; i < divided.count(); ++i) {
            const SubBatchResult& result = divided.results[i];
            if (result.outputs != nullptr)
                push(out, result, Division::after_rows(divided.sub_batch(i)), result.outputs->count());
            if (result.failure != nullptr) return result.failure;
        }
        return nullptr;
    }

    static void push(Output& out, const SubBatchResult& result, std::uint64_t begin, std::uint64_t end) {
        assert(begin <= end && (begin == end || end <= result.outputs->count()));
        for (auto i = begin; i < end; ++i) out.push(result.outputs->begin()[i]);
    }

    std::int64_t passed_{0};  // written by the thread that picks
};

}  // namespace callboard
