// The work of a native operator on lots of values. Only errors need the interpreter: they are Python
// objects, and rare.
//
// A partitioned operator has an object for each partition, and two stages: the first divides lots,
// the second does the shares. A sequential run does the same, one after the other.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "callboard/scheduling/flow/stage.hpp"
#include "callboard/scheduling/flow/values.hpp"

namespace callboard {

struct NativeWork {
    // --- the operator's; the first argument is the object ------------------------------------------
    void (*process)(void*, const Value*, std::uint64_t count, Output*){nullptr};
    void (*finish)(void*, Output*){nullptr};
    std::uint64_t (*key_of)(void*, const Value*){nullptr};
    std::vector<void*> objects;  // one, or one for each partition; borrowed

    // --- the run's ---------------------------------------------------------------------------------
    void* owner{nullptr};
    const Atomic<std::int64_t>* stopped_at{nullptr};  // rounds after this one are dropped
    std::uint32_t edges{0};                           // that lead on; none of a sink
    // An error object for a reason, owned; another reference to one; letting one go; the run's end by
    // one, which it takes over.
    void* (*make_error)(void* owner, const char* reason){nullptr};
    void (*retain_error)(void* error){nullptr};
    void (*drop_error)(void* error){nullptr};
    void (*report)(void* owner, std::int64_t serial, void* error){nullptr};

    // --- as its stages do it -----------------------------------------------------------------------

    Work whole() { return {this, process_lot, pick, discard, nullptr, nullptr}; }
    // The whole of one that is keyed.
    Work undivided() { return {this, process_divided, pick, discard, nullptr, nullptr}; }
    Work divider() { return {this, divide, nullptr, discard, nullptr, nullptr}; }
    Work shares() { return {this, nullptr, pick, discard, do_share, gather}; }

    // The same on the calling thread: the output of a round's lot, or null.
    Values* alone(Values* lot, bool divided) {
        RowTotals counts;
        void* input = lot;
        return static_cast<Values*>((divided ? process_divided : process_lot)(this, 0, &input, counts));
    }

    void let_go(Values* lot) {
        assert(lot != nullptr);
        if (!lot->drop()) return;
        if (lot->error != nullptr) drop_error(lot->error);
        lot->free();
    }

private:
    // The outputs of a share, and where it failed, if it did: at which of its values, or at the stream's
    // end.
    struct ShareResult {
        Values* outputs{nullptr};
        const char* failure{nullptr};
        std::size_t failed_at{0};
    };
    struct DividedLot : Division {
        Values* lot;
        std::vector<ShareResult> results;
    };

    static NativeWork& of(void* self) { return *static_cast<NativeWork*>(self); }

    bool is_dropped(std::int64_t serial) const { return serial > stopped_at->load(relaxed); }

    // Takes the contents of `out` as the round's output, and releases the lot that they were made
    // of.
    void* output_of(std::int64_t serial, Values* lot, Output& out, const char* failure) {
        void* error = failure != nullptr ? make_error(owner, failure) : lot->error;
        if (failure == nullptr && error != nullptr) retain_error(error);
        const bool final = lot->final && error == nullptr;
        let_go(lot);
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

    static void* process_lot(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        NativeWork& work = of(self);
        auto* lot = static_cast<Values*>(inputs[0]);
        if (lot == nullptr) return nullptr;
        if (work.is_dropped(serial)) return work.let_go(lot), nullptr;
        Output out(lot->count());
        counts.taken += lot->count();
        if (lot->count() != 0) work.process(work.objects[0], lot->begin(), lot->count(), &out);
        if (lot->final && out.failure() == nullptr) work.finish(work.objects[0], &out);
        counts.given += out.count();
        return work.output_of(serial, lot, out, out.failure());
    }

    static void* process_divided(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        RowTotals divided;
        auto* division = static_cast<Division*>(divide(self, serial, inputs, divided));
        if (division == nullptr) return nullptr;
        division->serial = serial;
        for (std::uint32_t i = 0; i < division->count(); ++i) do_share(self, *division, i, counts);
        return gather(self, *division);
    }

    // The caller takes it last, or holds another reference.
    static void* pick(void* self, void* output, std::uint32_t edge) {
        NativeWork& work = of(self);
        auto* lot = static_cast<Values*>(output);
        assert(edge < work.edges && lot != nullptr);
        if (edge == 0) {
            lot->first = work.passed_;
            work.passed_ += static_cast<std::int64_t>(lot->count());
        }
        if (edge + 1 != work.edges) lot->retain();
        return lot;
    }

    static void discard(void* self, void* output) { of(self).let_go(static_cast<Values*>(output)); }

    static void* divide(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        NativeWork& work = of(self);
        auto* lot = static_cast<Values*>(inputs[0]);
        if (lot == nullptr) return nullptr;
        if (work.is_dropped(serial)) return work.let_go(lot), nullptr;
        counts.taken += lot->count();
        counts.given += lot->count();
        auto* divided = new DividedLot;
        divided->lot = lot;
        divided->divide_among(static_cast<std::uint32_t>(work.objects.size()), lot->count());
        if (lot->final) divided->concern_all();
        const Value* const values = lot->begin();
        for (std::uint64_t i = 0; i < lot->count(); ++i)
            divided->add(work.key_of(work.objects[0], &values[i]));
        divided->results.resize(divided->count());
        return static_cast<Division*>(divided);
    }

    // Value by value, so that it is known which output comes from which.
    static void do_share(void* self, Division& division, std::uint32_t number, RowTotals& counts) {
        NativeWork& work = of(self);
        auto& divided = static_cast<DividedLot&>(division);
        Division::Share& share = division.share(number);
        assert(number < divided.results.size() && share.partition < work.objects.size());
        ShareResult& result = divided.results[number];
        if (!work.is_dropped(division.serial)) {
            counts.taken += share.rows.size();
            void* object = work.objects[share.partition];
            const Value* const values = divided.lot->begin();
            Output out(share.rows.size());
            share.ends.reserve(share.rows.size());
            for (const auto row : share.rows) {
                work.process(object, &values[row], 1, &out);
                share.ends.push_back(out.count());
                if (out.failure() != nullptr) break;
                ++result.failed_at;
            }
            if (divided.lot->final && out.failure() == nullptr) work.finish(object, &out);
            result.failure = out.failure();
            counts.given += out.count();
            result.outputs = out.take();
        }
        share.ends.resize(share.rows.size(), Division::after_rows(share));
    }

    // All outputs in the order of the values, up to the first failure. The outputs at the stream's end
    // are in the order of partitions.
    static void* gather(void* self, Division& division) {
        NativeWork& work = of(self);
        auto* divided = static_cast<DividedLot*>(&division);
        Output out(divided->lot->count());
        const char* failure = nullptr;
        if (!work.is_dropped(division.serial)) failure = put_together(*divided, out);
        for (auto& result : divided->results)
            if (result.outputs != nullptr) result.outputs->free();
        const auto serial = division.serial;
        Values* lot = divided->lot;
        delete divided;
        return work.output_of(serial, lot, out, failure);
    }

    static const char* put_together(DividedLot& divided, Output& out) {
        for (std::size_t row = 0; row < divided.rows(); ++row) {
            assert(divided.owner(row) != Division::everybody && "a key's row is in one share");
            Division::Share& share = divided.share(divided.owner(row));
            const ShareResult& result = divided.results[divided.owner(row)];
            const auto here = share.gathered;
            const auto outputs = Division::next(share);
            push(out, result, outputs.begin, outputs.end);
            if (result.failure != nullptr && result.failed_at == here) return result.failure;
        }
        for (std::uint32_t i = 0; i < divided.count(); ++i) {
            const ShareResult& result = divided.results[i];
            if (result.outputs != nullptr)
                push(out, result, Division::after_rows(divided.share(i)), result.outputs->count());
            if (result.failure != nullptr) return result.failure;
        }
        return nullptr;
    }

    static void push(Output& out, const ShareResult& result, std::uint64_t begin, std::uint64_t end) {
        assert(begin <= end && (begin == end || end <= result.outputs->count()));
        for (auto i = begin; i < end; ++i) out.push(result.outputs->begin()[i]);
    }

    std::int64_t passed_{0};  // written by the thread that picks
};

}  // namespace callboard
