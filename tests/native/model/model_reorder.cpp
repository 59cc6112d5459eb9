// The reorder buffer, with room for one value and for two.
#include "callboard/mailbox/ordered/reorder.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

struct Line {
    ReorderBuffer<Plain<int>> buffer;
    Plain<int> left{0};

    explicit Line(std::size_t capacity) : buffer(capacity) {}

    void send(int serial) {
        model::await([&] { return buffer.has_room(serial); });
        const bool fits = buffer.send(serial, Plain<int>(100 + serial), [&](Plain<int>& value) {
            CHECK(value == 100 + left);
            ++left;
        });
        CHECK(fits);
    }

    void end(int all) {
        CHECK(left == all);
        CHECK(buffer.next() == all);
    }
};

void of_two(std::size_t capacity, int each) {
    Line line(capacity);
    together(
        [&] {
            for (int i = 0; i < each; ++i) line.send(2 * i);
        },
        [&] {
            for (int i = 0; i < each; ++i) line.send(2 * i + 1);
        });
    line.end(2 * each);
}

}  // namespace

MODEL("room for one value: two workers, two values each") { of_two(1, 2); }
MODEL("room for two values: two workers, two values each") { of_two(2, 2); }

MODEL("room for one value: two workers, three values each") { of_two(1, 3); }
MODEL("room for two values: two workers, three values each") { of_two(2, 3); }

MODEL("room for two values: three workers, two values each") {
    Line line(2);
    together([&] { line.send(0), line.send(3); }, [&] { line.send(1), line.send(4); },
             [&] { line.send(2), line.send(5); });
    line.end(6);
}

MODEL("room for two values: a worker brings the last two first") {
    Line line(2);
    together([&] { line.send(1), line.send(2); }, [&] { line.send(0), line.send(3); });
    line.end(4);
}

MODEL("a thread that sees that all before a serial number have been sent sees all effects of this") {
    Line line(2);
    together([&] { line.send(0); }, [&] { line.send(1); },
             [&] {
                 model::await([&] { return line.buffer.next() == 2; });
                 CHECK(line.left == 2);
             });
    line.end(2);
}
