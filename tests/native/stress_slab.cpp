// Lines of slabs that are made, exchanged and freed by threads that begin and end with slabs half used. The uses of a
// line, and the end of its slab, are a data race unless the count orders them.
#include <vector>

#include "callboard/core/memory/slab.hpp"
#include "counted_slabs.hpp"
#include "stress.hpp"

using callboard::Atomic;
using callboard::Slab;
using namespace stress;

namespace {

// What a line holds; plain, so that a second owner shows.
struct Held {
    std::uint64_t left, right;
    static Held* make(std::uint64_t value) { return new (Slab::make_line()) Held{value, ~value}; }
    // Frees it and returns what was wrong with it.
    static int end(Held* held) {
        const int wrong = held->left != ~held->right;
        held->left = held->right = 0;
        Slab::free_line(held);
        return wrong;
    }
};

// Places where threads leave lines for each other.
struct Exchange {
    static constexpr std::uint32_t size = 256;
    Atomic<Held*> places[size]{};

    // Release pairs with acquire, both here: who takes a line comes after who left it.
    Held* swap(std::uint32_t place, Held* held) { return places[place].exchange(held, callboard::acq_rel); }
};

}  // namespace

TEST("lines that threads exchange are in one hand, and their slabs are freed with the last") {
    constexpr int threads = 4, rounds = 50, lines = 1500;
    for (int round = 0; round < rounds; ++round) {
        Exchange exchange;
        Atomic<int> wrong{0};
        together(threads, [&](int index) {
            Random random(static_cast<std::uint64_t>(round * threads + index));
            const int mine = lines + static_cast<int>(random.below(31));  // ends anywhere in a slab
            int found = 0;
            for (int i = 0; i < mine; ++i) {
                Held* const other = exchange.swap(random.below(Exchange::size), Held::make(random.below(1000)));
                if (other != nullptr) found += Held::end(other);
                random.pause();
            }
            wrong.fetch_add(found, callboard::relaxed);
        });
        for (std::uint32_t place = 0; place < Exchange::size; ++place)
            if (Held* held = exchange.swap(place, nullptr)) wrong.fetch_add(Held::end(held), callboard::relaxed);
        CHECK_EQUAL(wrong.load(callboard::relaxed), 0);
        CHECK(made.load(callboard::relaxed) > 0);
        CHECK_EQUAL(made.load(callboard::relaxed), freed.load(callboard::relaxed));
    }
}

TEST("two threads that free the two halves of a slab free it once, after both") {
    constexpr int most = 20000;
    constexpr std::size_t count = 31;
    std::vector<Held*> lines(count);
    Atomic<int> turn{0}, done{0};
    Rounds rounds(most);
    const auto before = made.load(callboard::relaxed) - freed.load(callboard::relaxed);
    together(2, [&](int index) {
        for (int round = 1;; ++round) {
            if (index == 0) {
                await([&] { return done.load(callboard::acquire) == 2 * (round - 1); });
                if (!rounds.go_on(round)) break;
                for (Held*& line : lines) line = Held::make(static_cast<std::uint64_t>(round));
                turn.store(round, callboard::release);
            } else {
                await([&] { return turn.load(callboard::acquire) == round || rounds.over(); });
                if (turn.load(callboard::acquire) != round) break;
            }
            int wrong = 0;
            for (std::size_t i = static_cast<std::size_t>(index); i < count; i += 2) wrong += Held::end(lines[i]);
            CHECK_EQUAL(wrong, 0);
            done.fetch_add(1, callboard::acq_rel);
        }
    });
    CHECK_EQUAL(made.load(callboard::relaxed) - freed.load(callboard::relaxed), before);
}

CHECK_MAIN
