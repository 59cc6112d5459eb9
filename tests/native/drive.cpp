// The stream structures behind a pipe: one command a line, one answer a line, for tests in Python.
//
//     drive worklist|ring|reorder|flag|locked CAPACITY
//     drive hybrid|partitioned|shared PARTITIONS            (and EACH as the first number)
//
// While a queue's value is visited ("visit PARTITION VALUE"), further commands play other workers, until
// the visit ends with "done".
#include <functional>
#include <iostream>
#include <string>

#include "callboard/mailbox/ordered/hybrid.hpp"
#include "callboard/mailbox/ordered/reorder.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/mailbox/ordered/worklist.hpp"
#include "../bench/peers/partitioned_queue.hpp"
#include "../bench/peers/reorder_locked.hpp"
#include "../bench/peers/shared_queue.hpp"
#include "reorder_flag.hpp"

namespace {

using Value = std::int64_t;

// Calls `command` for each line's first word, until there are no more or it is "done".
void each_line(const std::function<void(const std::string&)>& command) {
    for (std::string word; std::cin >> word && word != "done";) command(word);
}

Value number() {
    Value value = 0;
    std::cin >> value;
    return value;
}

void drive_worklist(std::size_t capacity) {
    callboard::Worklist<Value> list(capacity);
    each_line([&](const std::string& word) {
        Value value = 0;
        if (word == "push") std::cout << list.push(number()) << std::endl;
        else if (word == "pop") std::cout << list.pop(value) << ' ' << value << std::endl;
        else std::cout << list.size() << std::endl;
    });
}

// Answers as a worklist would, serial numbers counted here.
void drive_ring(std::size_t capacity) {
    callboard::Spsc<Value> ring(capacity);
    Value pushed = 0, popped = 0;
    each_line([&](const std::string& word) {
        Value value = 0;
        if (word == "push") std::cout << (ring.try_push(number()) ? pushed++ : -1) << std::endl;
        else if (word == "pop")
            std::cout << (ring.try_pop(value) ? popped++ : -1) << ' ' << value << std::endl;
        else std::cout << ring.size() << std::endl;
    });
}

// "send SERIAL" is answered by 1 or 0, and by the values that left.
template <class Buffer>
void drive_reorder(std::size_t capacity) {
    Buffer buffer(capacity);
    each_line([&](const std::string&) {
        std::string left;
        const Value serial = number();
        const bool fits = buffer.send(serial, Value{serial}, [&](Value& value) {
            left += ' ' + std::to_string(value);
        });
        std::cout << fits << left << std::endl;
    });
}

template <class Queue>
void drive_queue(std::uint32_t partitions) {
    const auto each = static_cast<std::size_t>(number());
    Queue queue(partitions, each);
    const std::function<void(const std::string&)> command = [&](const std::string& word) {
        if (word == "add") {
            const auto partition = static_cast<std::uint32_t>(number());
            std::cout << queue.add(partition, number()) << std::endl;
        } else if (word == "take") {
            const bool took = queue.consume_one([&](std::uint32_t partition, Value value) {
                std::cout << "visit " << partition << ' ' << value << std::endl;
                each_line(command);
            }, number());
            std::cout << (took ? "took" : "nothing") << std::endl;
        } else {
            std::cout << queue.waiting() << std::endl;
        }
    };
    each_line(command);
}

}  // namespace

int main(int count, char** words) {
    if (count < 3) return 2;
    const std::string name = words[1];
    const auto size = static_cast<std::uint32_t>(std::stoul(words[2]));
    if (name == "worklist") drive_worklist(size);
    else if (name == "ring") drive_ring(size);
    else if (name == "reorder") drive_reorder<callboard::ReorderBuffer<Value>>(size);
    else if (name == "flag") drive_reorder<callboard::FlagReorderBuffer<Value>>(size);
    else if (name == "locked") drive_reorder<callboard::LockedReorderBuffer<Value>>(size);
    else if (name == "hybrid") drive_queue<callboard::HybridQueue<Value>>(size);
    else if (name == "partitioned") drive_queue<callboard::PartitionedQueue<Value>>(size);
    else if (name == "shared") drive_queue<callboard::SharedQueue<Value>>(size);
    else return 2;
}
