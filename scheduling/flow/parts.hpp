// A lot of values divided among partitions, and put together again in the order of the values.
#pragma once

#include <cstdint>
#include <vector>

#include "callboard/core/mix.hpp"
#include "callboard/scheduling/flow/values.hpp"

namespace callboard {

class Parts {
public:
    struct Part {
        std::uint32_t partition;
        std::vector<Value> values;        // in order; borrowed from the lot
        std::vector<std::uint64_t> ends;  // after each value, how many outputs there were
        Values* outputs{nullptr};
        bool last{false};                 // the lot ends the stream
        const char* failure{nullptr};
        std::size_t failed_at{0};         // if it did: at which of its values, or at the stream's end
    };

    // Takes the lot over. `key_of` answers a value's key. The last lot concerns every partition.
    template <class KeyOf>
    Parts(Values* lot, std::uint32_t partitions, KeyOf key_of) : lot_(lot), part_of_(partitions, -1) {
        const auto add = [&](std::uint32_t partition) {
            part_of_[partition] = static_cast<std::int32_t>(parts_.size());
            parts_.push_back({partition, {}, {}, nullptr, lot->final, nullptr});
        };
        if (lot->final)
            for (std::uint32_t i = 0; i < partitions; ++i) add(i);
        for (std::uint64_t i = 0; i < lot->count(); ++i) {
            const auto partition = partition_of(key_of(lot->begin()[i]), partitions);
            if (part_of_[partition] < 0) add(partition);
            const auto part = static_cast<std::uint32_t>(part_of_[partition]);
            which_.push_back(part);
            parts_[part].values.push_back(lot->begin()[i]);
        }
    }

    // Keys are often neighbours, or multiples of something, and so are the hashes of Python's integers:
    // unmixed, multiples of the number of partitions would all be in one.
    static std::uint32_t partition_of(std::uint64_t key, std::uint32_t partitions) {
        return static_cast<std::uint32_t>(mix(key) % partitions);
    }

    Values* lot() { return lot_; }
    std::vector<Part>& parts() { return parts_; }

    // One that the lot concerns.
    Part& of(std::uint32_t partition) { return parts_[static_cast<std::size_t>(part_of_[partition])]; }

    // Before the parts are handed out, and after each. True: it was the last one.
    void begin() { pending_.store(static_cast<std::int64_t>(parts_.size()), relaxed); }
    [[nodiscard]] bool end_part() { return pending_.fetch_sub(1, acq_rel) == 1; }

    // All outputs in the order of the values, up to the first failure, which is answered; what comes at
    // the stream's end by partition. The lots of the parts are the caller's still.
    const char* gather(Output& out) const {
        std::vector<std::size_t> next(parts_.size(), 0);
        for (const auto which : which_) {
            const Part& part = parts_[which];
            const auto i = next[which]++;
            push(out, part, i == 0 ? 0 : part.ends[i - 1], part.ends[i]);
            if (part.failure != nullptr && part.failed_at == i) return part.failure;
        }
        for (const auto& part : parts_) {
            if (part.outputs != nullptr)
                push(out, part, part.ends.empty() ? 0 : part.ends.back(), part.outputs->count());
            if (part.failure != nullptr) return part.failure;
        }
        return nullptr;
    }

private:
    static void push(Output& out, const Part& part, std::uint64_t begin, std::uint64_t end) {
        for (auto i = begin; i < end; ++i) out.push(part.outputs->begin()[i]);
    }

    Values* const lot_;
    std::vector<std::int32_t> part_of_;  // of each partition; -1: the lot does not concern it
    std::vector<Part> parts_;
    std::vector<std::uint32_t> which_;  // of each value
    Atomic<std::int64_t> pending_{0};
};

}  // namespace callboard
