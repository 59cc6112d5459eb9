// A batch divided among partitions. Any lanes work on its shares, and the outputs are put together again
// in the order of its rows. The operator knows the rows and their outputs; here are only their numbers.
//
// One thread divides. Then one thread at a time works on a share, and the thread that ends the last share
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
    struct Share {
        std::uint32_t partition{0};
        std::vector<std::uint32_t> rows{};  // their places in the batch, in order
        std::vector<std::uint64_t> ends{};  // after each of them, how many outputs there were
        std::size_t gathered{0};            // of these
    };
    struct Range {
        std::uint64_t begin, end;
    };
    static constexpr std::uint32_t everybody = ~std::uint32_t{0};

    void* batch{nullptr};    // the divided batch; the operator's
    std::int64_t serial{0};  // of its round; the stage's
    bool is_timed{false};    // its shares are; the stage's

    // --- dividing ----------------------------------------------------------------------------------

    void divide_among(std::uint32_t partitions, std::size_t rows) {
        share_of_.assign(partitions, everybody);
        owners_.reserve(rows);
    }

    // The next row, by its key. Returns its share's number.
    std::uint32_t add(std::uint64_t key) { return add_to(partition_of(key)); }

    // The next row, to a partition of the caller's choice.
    std::uint32_t add_to(std::uint32_t partition) {
        assert(partition < share_of_.size());
        const auto share = share_in(partition);
        shares_[share].rows.push_back(static_cast<std::uint32_t>(owners_.size()));
        owners_.push_back(share);
        return share;
    }

    // The next row is every partition's.
    void add_to_all() {
        concern_all();
        for (auto& share : shares_) share.rows.push_back(static_cast<std::uint32_t>(owners_.size()));
        owners_.push_back(everybody);
    }

    // The next row has no partition.
    void add_to_none() { owners_.push_back(everybody); }

    // Every partition gets a share, if only for the stream's end.
    void concern_all() {
        for (std::uint32_t partition = 0; partition < share_of_.size(); ++partition) share_in(partition);
    }

    // Keys are often neighbours, or multiples of something, and so are the hashes of Python's integers:
    // unmixed, multiples of the number of partitions would all be in one.
    static std::uint32_t partition_of(std::uint64_t key, std::uint32_t partitions) {
        assert(partitions != 0);
        return static_cast<std::uint32_t>(mix(key) % partitions);
    }

    // --- doing -------------------------------------------------------------------------------------

    std::uint32_t count() const { return static_cast<std::uint32_t>(shares_.size()); }
    Share& share(std::uint32_t number) {
        assert(number < count());
        return shares_[number];
    }

    // Before the shares are handed out, and after each. True: it was the last one.
    void begin() { pending_.store(count(), relaxed); }
    [[nodiscard]] bool end_share() {
        assert(pending_.load(relaxed) != 0 && "a share ends once");
        return pending_.fetch_sub(1, acq_rel) == 1;
    }

    // --- gathering ---------------------------------------------------------------------------------

    std::size_t rows() const { return owners_.size(); }

    // The share that a row is in; everybody: it is in all, or in none.
    std::uint32_t owner(std::size_t row) const {
        assert(row < rows());
        return owners_[row];
    }

    // The range of outputs of a share's next row; after_rows(): where its outputs after the last row begin.
    static Range next(Share& share) {
        const auto row = share.gathered++;
        assert(row < share.ends.size() && (row == 0 || share.ends[row - 1] <= share.ends[row]));
        return {row == 0 ? 0 : share.ends[row - 1], share.ends[row]};
    }
    static std::uint64_t after_rows(const Share& share) { return share.ends.empty() ? 0 : share.ends.back(); }

private:
    std::uint32_t partition_of(std::uint64_t key) const {
        return partition_of(key, static_cast<std::uint32_t>(share_of_.size()));
    }

    std::uint32_t share_in(std::uint32_t partition) {
        auto& share = share_of_[partition];
        if (share == everybody) {
            share = count();
            shares_.emplace_back();
            shares_.back().partition = partition;
        }
        return share;
    }

    std::vector<std::uint32_t> share_of_;  // each partition's; everybody: it has none
    std::vector<std::uint32_t> owners_;    // each row's share
    std::vector<Share> shares_;
    Atomic<std::uint32_t> pending_{0};
};

}  // namespace callboard
