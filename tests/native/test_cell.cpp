// The rules of a cell's state machine, on one thread; stress_cell.cpp has the races.
#include "callboard/scheduling/cell.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

struct TestCell : Cell {
    TestCell() : Cell(nullptr, nullptr, 0) {}

    bool push(int value) {
        Node* node = new Node;
        node->integer = value;
        return tail.push(node);
    }

    bool push_system(int value) {
        Node* node = new Node;
        node->integer = value;
        return Cell::push_system(node);
    }

    // The values of the system messages, as digits of a number.
    std::int64_t take_digits() {
        std::int64_t digits = 0;
        for (Node* node = take_system(); node != nullptr;) {
            Node* following = node->next.load(relaxed);
            digits = digits * 10 + node->integer;
            delete node;
            node = following;
        }
        return digits;
    }

    void pop() {
        Node* spent = nullptr;
        CHECK(head.pop(spent) != nullptr);
        delete spent;
    }
};

}  // namespace

TEST("a new cell belongs to its creator") {
    TestCell cell;
    CHECK(!cell.tail.is_idle());
    CHECK(!cell.push(1));
    CHECK(!cell.push_system(1));
}

TEST("an idle cell is made ready by one message, of either kind") {
    TestCell cell;
    CHECK(cell.try_idle());
    CHECK(cell.push(1));
    CHECK(!cell.push_system(2));
    CHECK_EQUAL(cell.take_digits(), 2);
    cell.pop();
    CHECK(cell.try_idle());
    CHECK(cell.push_system(3));
    CHECK(!cell.push(4));
}

TEST("system messages are taken oldest first") {
    TestCell cell;
    for (int value : {1, 2, 3}) CHECK(!cell.push_system(value));
    CHECK(cell.has_system());
    CHECK_EQUAL(cell.take_digits(), 123);
    CHECK(!cell.has_system());
    CHECK_EQUAL(cell.take_digits(), 0);
}

TEST("a cell with a system message cannot go idle") {
    TestCell cell;
    CHECK(!cell.push_system(1));
    CHECK(!cell.try_idle());
    CHECK_EQUAL(cell.take_digits(), 1);
    CHECK(cell.try_idle());
}

TEST("a cell with a message behind a system message cannot go idle") {
    TestCell cell;
    CHECK(!cell.push_system(1));
    CHECK(!cell.push(2));
    CHECK_EQUAL(cell.take_digits(), 1);
    CHECK(!cell.try_idle());
    cell.pop();
    CHECK(cell.try_idle());
}

TEST("a signal that comes after its message was taken does not keep a cell from going idle") {
    TestCell cell;
    CHECK(!cell.tail.signal());  // the last step of a push_system() whose message is gone already
    CHECK(!cell.has_system());
    CHECK(cell.try_idle());
    CHECK(cell.push(1));
}

TEST("a waiting cell is woken by a system message and not by another") {
    TestCell cell;
    CHECK(cell.try_wait());
    CHECK(cell.is_waiting());
    CHECK(!cell.push(1));
    CHECK(cell.is_waiting());
    CHECK(cell.push_system(2));
    CHECK(!cell.is_waiting());
    CHECK(!cell.push_system(3));
    CHECK_EQUAL(cell.take_digits(), 23);
}

TEST("a cell with a system message cannot wait") {
    TestCell cell;
    CHECK(!cell.push_system(1));
    CHECK(!cell.try_wait());
    CHECK(!cell.is_waiting());
    CHECK_EQUAL(cell.take_digits(), 1);
    CHECK(cell.try_wait());
    CHECK(cell.end_wait());
    CHECK(!cell.end_wait());
}

TEST("a cell frees the messages that still wait in it") {
    TestCell cell;  // LeakSanitizer is the check
    (void)cell.push(1);
    (void)cell.push_system(2);
}

TEST("an idle cell with its first node is small") {
    CHECK(sizeof(Cell) + sizeof(Node) <= 512);
}

CHECK_MAIN
