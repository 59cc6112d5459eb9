// The rings: one producer and one consumer, many consumers, many of both; with room for one value and for two.
#include "callboard/mailbox/ordered/spmc.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/mailbox/ordered/worklist.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

void one_to_one(std::size_t capacity) {
    Spsc<Plain<int>> ring(capacity);
    together(
        [&] {
            for (int i = 0; i < 5; ++i) model::await([&] { return ring.try_push(100 + i); });
        },
        [&] {
            for (int i = 0; i < 5; ++i) {
                Plain<int> value;
                model::await([&] { return ring.try_pop(value); });
                CHECK(value == 100 + i);
            }
        });
    CHECK(ring.size() == 0);
}

// The producer writes a plain field before each value, and the consumer of the value reads it.
void one_to_many(std::size_t capacity) {
    Spmc<int> ring(capacity);
    Plain<int> brought[3] = {0, 0, 0};
    Plain<int> pushed{0};
    Atomic<int> popped{0};
    const auto consume = [&] {
        int value;
        if (!ring.try_pop(value)) return;
        CHECK(brought[value] == 7);
        popped.fetch_add(1 << 4 * value, relaxed);
    };
    together(
        [&] {
            for (int i = 0; i < 3; ++i) {
                brought[i] = 7;
                if (ring.try_push(i)) pushed = pushed + (1 << 4 * i);
            }
        },
        [&] { consume(), consume(); }, consume);
    for (int value; ring.try_pop(value);) popped.fetch_add(1 << 4 * value, relaxed);
    CHECK(popped.load(relaxed) == pushed);
}

// Some serial numbers have no value, and are nobody's.
void one_to_many_skipping(std::size_t capacity) {
    Spmc<int> ring(capacity);
    Plain<int> brought[2] = {0, 0};
    Plain<int> pushed{0};
    Atomic<int> popped{0};
    const auto bring = [&](int i) {
        brought[i] = 7;
        if (ring.try_push(i)) pushed = pushed + (1 << 4 * i);
    };
    const auto consume = [&] {
        int value;
        if (!ring.try_pop(value)) return;
        CHECK(brought[value] == 7);
        popped.fetch_add(1 << 4 * value, relaxed);
    };
    together([&] { bring(0), (void)ring.try_skip(), bring(1); }, [&] { consume(), consume(); }, consume);
    for (int value; ring.try_pop(value);) popped.fetch_add(1 << 4 * value, relaxed);
    CHECK(popped.load(relaxed) == pushed);
    CHECK(ring.size() == 0);
}

void many_to_many(std::size_t capacity) {
    Worklist<Plain<int>> list(capacity);
    Atomic<int> pushed{0}, popped{0};
    const auto produce = [&](int value) {
        if (list.push(value) != list.none) pushed.fetch_add(value, relaxed);
    };
    const auto consume = [&] {
        Plain<int> value{0};
        if (list.pop(value) != list.none) popped.fetch_add(value, relaxed);
    };
    together([&] { produce(1), produce(16); }, [&] { produce(256), consume(); }, consume);
    for (Plain<int> value; list.pop(value) != list.none;) popped.fetch_add(value, relaxed);
    CHECK(pushed.load(relaxed) == popped.load(relaxed));
}

// A thread says that it sleeps, and then looks for work. A producer brings work, and then looks for sleepers. One of
// them sees the other.
template <class Bring, class Size>
void goes_to_sleep(Bring&& bring, Size&& size) {
    Atomic<int> sleeps{0};
    Plain<int> stays{0}, is_called{0};
    together(
        [&] {
            bring();
            is_called = sleeps.load(seq_cst);
        },
        [&] {
            sleeps.store(1, seq_cst);
            stays = size() != 0;
        });
    CHECK(stays != 0 || is_called != 0);
}

}  // namespace

MODEL("one to one, room for one value: each arrives once, and in order") { one_to_one(1); }
MODEL("one to one, room for two values: each arrives once, and in order") { one_to_one(2); }
MODEL("one to many, room for one value: each arrives once") { one_to_many(1); }
MODEL("one to many, room for two values: each arrives once") { one_to_many(2); }
MODEL("one to many, room for one value: each arrives once beside skipped numbers") { one_to_many_skipping(1); }
MODEL("one to many, room for two values: each arrives once beside skipped numbers") { one_to_many_skipping(2); }
MODEL("many to many, room for one value: each arrives once") { many_to_many(1); }
MODEL("many to many, room for two values: each arrives once") { many_to_many(2); }

MODEL("one to many: a consumer that goes to sleep sees a value, or its producer sees a sleeper") {
    Spmc<int> ring(1);
    goes_to_sleep([&] { CHECK(ring.try_push(1)); }, [&] { return ring.size(); });
}

MODEL("many to many: a consumer that goes to sleep sees a value, or its producer sees a sleeper") {
    Worklist<Plain<int>> list(1);
    goes_to_sleep([&] { CHECK(list.push(1) == 0); }, [&] { return list.size(); });
}
