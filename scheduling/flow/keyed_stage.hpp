// A stage with a state for each key: a hybrid queue, one lane to a partition, and a reorder buffer.
//
// Its input comes divided. That is the work of a shared stage before it, so that several lanes divide.
//
// Benchmarks make it with another queue (tests/bench/peers/partitioned_queue.hpp, shared_queue.hpp), or buffer.
#pragma once

#include <cassert>

#include "callboard/mailbox/ordered/hybrid.hpp"
#include "callboard/mailbox/ordered/reorder.hpp"
#include "callboard/scheduling/flow/rounds_in_order.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

template <template <class> class Queue = HybridQueue, template <class> class Buffer = ReorderBuffer>
class KeyedStage final : public Stage {
public:
    KeyedStage(const Site& site, const Work& work, Stage& divider, std::uint32_t partitions, std::uint32_t window)
        : Stage(site, work), divider_(divider), queue_(partitions, window), in_order_(window) {
        divider.connect(*this, 0);
    }

    Stage& entrance() override { return divider_; }

    std::int64_t waiting() const override { return queue_.waiting(); }

    // A batch is a Division.
    void put(std::uint32_t, std::int64_t serial, void* batch) override {
        if (batch == nullptr) {
            send(serial, nullptr);
        } else {
            Division& division = *static_cast<Division*>(batch);
            division.serial = serial;
            hand_out(division);
        }
        announce();
    }

    std::int64_t work(RowCounts& counts, double rows) override {
        std::int64_t shares = 0;
        const auto serve = [&](std::uint32_t, Piece& piece) { work_on(piece, counts), ++shares; };
        while (is_less(shares, counts, rows) && queue_.consume_one(serve)) {}
        return shares;
    }

private:
    struct Piece {
        Division* division{nullptr};
        std::uint32_t share{0};
    };

    // Once the last share is in the queue, the division may be gathered, and gone.
    void hand_out(Division& division) {
        const auto count = division.count();
        division.begin();
        if (count == 0) gather(division);
        for (std::uint32_t i = 0; i < count; ++i) {
            [[maybe_unused]] const bool fits = queue_.add(division.share(i).partition, Piece{&division, i});
            assert(fits);
        }
    }

    void work_on(const Piece& piece, RowCounts& counts) {
        assert(piece.division != nullptr && piece.share < piece.division->count());
        note_beginning(piece.division->serial);
        work_.share(work_.self, *piece.division, piece.share, counts);
        if (piece.division->end_share()) gather(*piece.division);
    }

    void gather(Division& division) {
        const auto serial = division.serial;
        send(serial, work_.gather(work_.self, division));
    }

    void send(std::int64_t serial, void* output) {
        in_order_.send(serial, output, [this](void* ready) { deliver(ready); });
    }

    Stage& divider_;
    Queue<Piece> queue_;
    RoundsInOrder<Buffer> in_order_;
};

}  // namespace callboard
