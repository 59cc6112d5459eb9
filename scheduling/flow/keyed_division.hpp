// A batch divided among partitions. Any lanes work on its sub-batches, and the outputs are put together again
// in the order of its rows. Only numbers are kept here; the operator knows the rows and their outputs.
//
// One thread divides. Then one thread at a time works on a sub-batch, and the thread that ends the last sub-batch
// gathers.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/core/mix.hpp"

namespace callboard {

class Division {
public:
    // The part of one partition.
    struct SubBatch {
        std::uint32_t partition{0};
        std::vector<std::uint32_t> rows{};  // their places in the batch, in order
        std::vector<std::uint64_t> ends{};  // the number of outputs after each of them
        std::size_t gathered{0};            // of these
    };
    struct Range {
        std::uint64_t begin, end;
    };
    static constexpr std::uint32_t everybody = ~std::uint32_t{0};

    void* batch{nullptr};    // the divided batch; the operator's
    std::int64_t serial{0};  // of its round; the stage's
    bool is_timed{false};    // so are its sub-batches; set by the stage

    // --- dividing ----------------------------------------------------------------------------------

    void divide_among(std::uint32_t partitions, std::size_t rows) {
        sub_batch_of_.assign(partitions, everybody);
        owners_.reserve(rows);
    }

    // The next row, by its key. Returns its sub-batch's number.
    std::uint32_t add(std::uint64_t key) { return add_to(partition_of(key)); }

    // The next row, to a partition of the caller's choice.
    std::uint32_t add_to(std::uint32_t partition) {
        assert(partition < sub_batch_of_.size());
        const auto sub_batch = sub_batch_in(partition);
        sub_batches_[sub_batch].rows.push_back(static_cast<std::uint32_t>(owners_.size()));
        owners_.push_back(sub_batch);
        return sub_batch;
    }

    // The next row goes to every partition.
    void add_to_all() {
        concern_all();
        for (auto& sub_batch : sub_batches_) sub_batch.rows.push_back(static_cast<std::uint32_t>(owners_.size()));
        owners_.push_back(everybody);
    }

    // The next row goes to no partition.
    void add_to_none() { owners_.push_back(everybody); }

    // Every partition gets a sub-batch, if only for the stream's end.
    void concern_all() {
        for (std::uint32_t partition = 0; partition < sub_batch_of_.size(); ++partition) sub_batch_in(partition);
    }

    // Keys are often neighbours, or multiples of something, and so are the hashes of Python's integers:
    // unmixed, multiples of the number of partitions would all be in one.
    static std::uint32_t partition_of(std::uint64_t key, std::uint32_t partitions) {
        assert(partitions != 0);
        return static_cast<std::uint32_t>(mix(key) % partitions);
    }

    // --- work --------------------------------------------------------------------------------------

    std::uint32_t count() const { return static_cast<std::uint32_t>(sub_batches_.size()); }
    SubBatch& sub_batch(std::uint32_t number) {
        assert(number < count());
        return sub_batches_[number];
    }

    // Before the sub-batches are handed out, and after each. True: it was the last one.
    void begin() { pending_.store(count(), relaxed); }
    [[nodiscard]] bool end_sub_batch() {
        assert(pending_.load(relaxed) != 0 && "a sub-batch ends once");
        return pending_.fetch_sub(1, acq_rel) == 1;
    }

    // --- gathering ---------------------------------------------------------------------------------

    std::size_t rows() const { return owners_.size(); }

    // The sub-batch that a row is in; everybody: it is in all, or in none.
    std::uint32_t owner(std::size_t row) const {
        assert(row < rows());
        return owners_[row];
    }

    // The range of outputs of a sub-batch's next row; after_rows(): where its outputs after the last row begin.
    static Range next(SubBatch& sub_batch) {
        const auto row = sub_batch.gathered++;
        assert(row < sub_batch.ends.size() && (row == 0 || sub_batch.ends[row - 1] <= sub_batch.ends[row]));
        return {row == 0 ? 0 : sub_batch.ends[row - 1], sub_batch.ends[row]};
    }
    static std::uint64_t after_rows(const SubBatch& done) { return done.ends.empty() ? 0 : done.ends.back(); }

private:
    std::uint32_t partition_of(std::uint64_t key) const {
        return partition_of(key, static_cast<std::uint32_t>(sub_batch_of_.size()));
    }

    std::uint32_t sub_batch_in(std::uint32_t partition) {
        auto& sub_batch = sub_batch_of_[partition];
        if (sub_batch == everybody) {
            sub_batch = count();
            sub_batches_.emplace_back();
            sub_batches_.back().partition = partition;
        }
        return sub_batch;
    }

    std::vector<std::uint32_t> sub_batch_of_;  // each partition's; everybody: it has none
    std::vector<std::uint32_t> owners_;        // each row's sub-batch
    std::vector<SubBatch> sub_batches_;
    Atomic<std::uint32_t> pending_{0};
};

}  // namespace callboard
