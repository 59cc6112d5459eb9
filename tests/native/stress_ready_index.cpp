// Places that enter a ready index at the moment when another leaves it, and clears the bits above that they share.
#include <vector>

#include "callboard/scheduling/flow/ready_index.hpp"
#include "stress.hpp"

using callboard::ReadyIndex;
using namespace stress;

namespace {

// From the first place on, where none of the tests is: a search that begins in a word does not ask those above.
bool finds(const ReadyIndex& index, std::uint32_t place) {
    for (auto found = index.first(); found != ReadyIndex::none; found = index.first(found + 1))
        if (found == place) return true;
    return false;
}

// A thread clears the first place while each of the others sets its own and looks for it.
void leave_and_come(const std::vector<std::uint32_t>& places, std::uint32_t size) {
    ReadyIndex index;
    index.make_room(size);
    const int setters = static_cast<int>(places.size()) - 1;
    Rounds rounds(50'000);
    callboard::Atomic<int> round{0}, ready{0}, missing{0};
    together(setters + 1, [&](int thread) {
        Random random(static_cast<std::uint64_t>(thread));
        const std::uint32_t own = places[static_cast<std::size_t>(thread)];
        for (int here = 1;; ++here) {
            if (thread != 0) {
                await([&] { return round.load(callboard::acquire) >= here || rounds.over(); });  // pairs with release
                if (rounds.over()) return;
                (void)finds(index, own);  // has the words in its cache, as who searches has
                index.set(own);
                if (!finds(index, own)) missing.fetch_add(1, callboard::relaxed);
                ready.fetch_add(1, callboard::release);
                continue;
            }
            if (!rounds.go_on(here)) return;
            index.set(own);
            round.store(here, callboard::release);
            for (auto loops = random.below(64); loops != 0; --loops) callboard::relax();  // to meet the others
            const bool hid_others = index.clear(own);
            await([&] { return ready.load(callboard::acquire) == here * setters; });  // pairs with release
            const bool hidden = missing.exchange(0, callboard::relaxed) != 0;
            if (hidden && !hid_others) check::give_up(__FILE__, __LINE__, "a hidden place, and nobody is told");
            for (const auto place : places) {
                if (finds(index, place) != (place != own)) check::give_up(__FILE__, __LINE__, "a lost place");
                if (place != own) (void)index.clear(place);
            }
        }
    });
}

}  // namespace

TEST("a place that comes while its word becomes empty is found, or its hider says so") {
    leave_and_come({64, 65}, 128);
}

TEST("a place that comes while a word above its own becomes empty is found, or its hider says so") {
    leave_and_come({4096, 4160}, 8192);
    leave_and_come({4096, 4097, 4160, 4161}, 8192);
}

CHECK_MAIN
