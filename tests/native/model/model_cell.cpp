// A cell between messages, system messages, idleness and waits. The thread that has its readiness dispatches it.
#include "callboard/scheduling/cell.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

struct Actor {
    Cell cell{nullptr, nullptr, 0};
    Plain<int> messages{0}, orders{0};
    Plain<int> suspended{0};
    Plain<int> inside{0};

    Node* node(int value) {
        Node* const node = new Node;
        node->first = new Plain<int>(value);
        return node;
    }

    void tell() {
        if (cell.tail.push(node(1))) dispatch();
    }
    void order() {
        if (cell.push_system(node(1))) dispatch();
    }

    void count(Node* node, Plain<int>& handled) {
        auto* const value = static_cast<Plain<int>*>(node->first);
        handled = handled + *value;
        delete value;
    }

    // System messages first, until there are none and the actor may take others. False: it waits, and is nobody's.
    bool handle_system() {
        for (;;) {
            for (Node* node = cell.take_system(); node != nullptr;) {
                Node* const following = node->next.load(relaxed);
                count(node, orders);
                suspended = 0;
                delete node;
                node = following;
            }
            if (suspended == 0) {
                if (!cell.has_system()) return true;
                continue;
            }
            inside = inside - 1;
            if (cell.try_wait()) return false;
            ++inside;
        }
    }

    void dispatch() {
        ++inside;
        CHECK(inside == 1);
        for (;;) {
            model::begin_attempt();
            if ((suspended != 0 || cell.has_system()) && !handle_system()) return;
            Node* spent = nullptr;
            if (Node* const node = cell.head.pop(spent)) {
                count(node, messages);
                delete spent;
                if (suspends) suspended = 1;
                continue;
            }
            inside = inside - 1;
            if (cell.try_idle()) return;
            ++inside;
            model::end_attempt();
        }
    }

    bool suspends = false;  // after each message, until a system message comes
};

}  // namespace

MODEL("a message meets the end of a dispatch") {
    Actor actor;
    together([&] { actor.dispatch(); }, [&] { actor.tell(); });
    CHECK(actor.messages == 1);
    CHECK(actor.cell.tail.is_idle());
}

MODEL("a message and a system message meet the end of a dispatch") {
    Actor actor;
    together([&] { actor.tell(); }, [&] { actor.order(); }, [&] { actor.dispatch(); });
    CHECK(actor.messages == 1);
    CHECK(actor.orders == 1);
    CHECK(actor.cell.tail.is_idle());
}

MODEL("two messages and a system message meet the end of a dispatch") {
    Actor actor;
    together([&] { actor.tell(); }, [&] { actor.order(); }, [&] { actor.tell(); }, [&] { actor.dispatch(); });
    CHECK(actor.messages == 2);
    CHECK(actor.orders == 1);
    CHECK(actor.cell.tail.is_idle());
}

MODEL("two system messages meet an idle actor") {
    Actor actor;
    CHECK(actor.cell.try_idle());
    together([&] { actor.order(); }, [&] { actor.order(); });
    CHECK(actor.orders == 2);
    CHECK(actor.cell.tail.is_idle());
}

MODEL("a system message meets the beginning of a wait, and others' messages do not end it") {
    Actor actor;
    actor.suspends = true;
    CHECK(actor.cell.try_idle());
    together([&] { actor.tell(); }, [&] { actor.order(); });
    CHECK(actor.messages == 1);
    CHECK(actor.orders == 1);
    CHECK(actor.cell.is_waiting() || actor.cell.tail.is_idle());
}

MODEL("two system messages meet the beginning of a wait") {
    Actor actor;
    actor.suspended = 1;
    together([&] { actor.dispatch(); }, [&] { actor.order(); }, [&] { actor.order(); });
    CHECK(actor.orders == 2);
    CHECK(actor.cell.tail.is_idle());
}
