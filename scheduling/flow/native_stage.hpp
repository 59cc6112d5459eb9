// What a stage of a native operator does with lots of values. Nothing here needs the interpreter, but
// for errors, which are Python objects, and rare.
//
// A partitioned operator has an object for each partition, and two stages: the first divides a lot
// (scheduling/flow/parts.hpp), the second does the parts.
#pragma once

#include <cstdint>
#include <vector>

#include "callboard/scheduling/flow/parts.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

struct NativeStage {
    // --- the operator's; the first argument is the object ------------------------------------------
    void (*process)(void*, const Value*, std::uint64_t count, Output*){nullptr};
    void (*finish)(void*, Output*){nullptr};
    std::uint64_t (*key_of)(void*, const Value*){nullptr};
    std::vector<void*> objects;  // one, or one for each partition; borrowed

    // --- the run's ---------------------------------------------------------------------------------
    void* owner{nullptr};
    const Atomic<std::int64_t>* stopped_at{nullptr};  // rounds after this one are dropped
    bool is_sink{false};
    // An error object for a reason, owned; another reference to one; letting one go; the run's end by
    // one, which it takes over.
    void* (*make_error)(void* owner, const char* reason){nullptr};
    void (*retain_error)(void* error){nullptr};
    void (*drop_error)(void* error){nullptr};
    void (*report)(void* owner, std::int64_t serial, void* error){nullptr};

    // --- the stage's functions ---------------------------------------------------------------------

    static Operator whole(NativeStage* self) {
        return {self, process_lot, pick, discard, nullptr, nullptr, nullptr};
    }
    static Operator divider(NativeStage* self) {
        return {self, divide, nullptr, discard, nullptr, nullptr, nullptr};
    }
    static Operator parts(NativeStage* self) {
        return {self, nullptr, pick, discard, split, part, gather};
    }

    void let_go(Values* lot) {
        if (!lot->drop()) return;
        if (lot->error != nullptr) drop_error(lot->error);
        lot->free();
    }

private:
    static NativeStage& of(void* self) { return *static_cast<NativeStage*>(self); }

    bool is_dropped(std::int64_t serial) const { return serial > stopped_at->load(relaxed); }

    void run(void* object, const Value* values, std::uint64_t count, bool last, Output& out) {
        if (count != 0) process(object, values, count, &out);
        if (last && out.failure() == nullptr) finish(object, &out);
    }

    // What `out` holds as the round's output. The lot that it was made of is let go.
    void* output_of(std::int64_t serial, Values* lot, Output& out, const char* failure) {
        void* error = failure != nullptr ? make_error(owner, failure) : lot->error;
        if (failure == nullptr && error != nullptr) retain_error(error);
        const bool final = lot->final && error == nullptr;
        let_go(lot);
        Values* output = out.take();
        if (is_sink) {
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

    static void* process_lot(void* self, std::int64_t serial, void** inputs, Tally& tally) {
        NativeStage& stage = of(self);
        auto* lot = static_cast<Values*>(inputs[0]);
        if (lot == nullptr) return nullptr;
        if (stage.is_dropped(serial)) return stage.let_go(lot), nullptr;
        Output out(lot->count());
        tally.taken += lot->count();
        stage.run(stage.objects[0], lot->begin(), lot->count(), lot->final, out);
        tally.given += out.count();
        return stage.output_of(serial, lot, out, out.failure());
    }

    // Who takes it is the last, or holds another reference.
    static void* pick(void* self, void* output, std::uint32_t edge) {
        NativeStage& stage = of(self);
        auto* lot = static_cast<Values*>(output);
        if (edge == 0) {
            lot->first = stage.passed;
            stage.passed += static_cast<std::int64_t>(lot->count());
        }
        if (edge + 1 != stage.edges) lot->retain();
        return lot;
    }

    static void discard(void* self, void* output) { of(self).let_go(static_cast<Values*>(output)); }

    static void* divide(void* self, std::int64_t serial, void** inputs, Tally& tally) {
        NativeStage& stage = of(self);
        auto* lot = static_cast<Values*>(inputs[0]);
        if (lot == nullptr) return nullptr;
        if (stage.is_dropped(serial)) return stage.let_go(lot), nullptr;
        tally.taken += lot->count();
        tally.given += lot->count();
        return new Parts(lot, static_cast<std::uint32_t>(stage.objects.size()), [&](const Value& value) {
            return stage.key_of(stage.objects[0], &value);
        });
    }

    static std::uint32_t split(void*, void* batch, std::uint32_t* partitions) {
        Parts& parts = *static_cast<Parts*>(batch);
        std::uint32_t count = 0;
        for (auto& part : parts.parts()) partitions[count++] = part.partition;
        parts.begin();
        return count;
    }

    static bool part(void* self, std::uint32_t partition, std::int64_t serial, void* batch,
                     Tally& tally) {
        NativeStage& stage = of(self);
        Parts& parts = *static_cast<Parts*>(batch);
        Parts::Part& part = parts.of(partition);
        if (!stage.is_dropped(serial)) {
            tally.taken += part.values.size();
            stage.run_part(part);
            if (part.outputs != nullptr) tally.given += part.outputs->count();
        }
        part.ends.resize(part.values.size(), part.ends.empty() ? 0 : part.ends.back());
        return parts.end_part();
    }

public:
    // One partition's values, one by one, so that it is known which output comes from which.
    void run_part(Parts::Part& part) {
        void* object = objects[part.partition];
        Output out(part.values.size());
        for (const Value& value : part.values) {
            process(object, &value, 1, &out);
            part.ends.push_back(out.count());
            if (out.failure() != nullptr) break;
            ++part.failed_at;
        }
        if (part.last && out.failure() == nullptr) finish(object, &out);
        part.failure = out.failure();
        part.outputs = out.take();
    }

private:
    static void* gather(void* self, std::int64_t serial, void* batch) {
        NativeStage& stage = of(self);
        auto* parts = static_cast<Parts*>(batch);
        Output out(parts->lot()->count());
        const char* failure = nullptr;
        if (!stage.is_dropped(serial)) failure = parts->gather(out);
        for (auto& part : parts->parts())
            if (part.outputs != nullptr) part.outputs->free();
        Values* lot = parts->lot();
        delete parts;
        return stage.output_of(serial, lot, out, failure);
    }

public:
    std::uint32_t edges{0};
    std::int64_t passed{0};  // of who picks
};

}  // namespace callboard
