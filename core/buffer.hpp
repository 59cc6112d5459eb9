// A buffer: memory of a Python object (NumPy, Arrow, bytes) or of our own, shared by counted reference.
//
// The count is ours and not the interpreter's, because native actors pass buffers on without the
// interpreter. The last reference to an object's memory cannot let the object go without the
// interpreter either: it puts the buffer on a list, which a thread that has the interpreter empties.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "callboard/core/atomics.hpp"

namespace callboard {

struct Buffer {
    void* data{nullptr};
    std::int64_t size{0};         // bytes
    std::int64_t item_size{1};    // bytes
    char format{'B'};             // of an item, as in Python's struct module; 'A' for Arrow
    bool readonly{true};
    // Arrow's C data interface, if format is 'A': borrowed from the owner.
    void* array{nullptr};         // struct ArrowArray*
    void* schema{nullptr};        // struct ArrowSchema*
    void* owner{nullptr};         // the Python object that the memory belongs to; null: malloc'd
    void (*bury)(Buffer*){free_memory};  // what the last drop() calls
    Buffer* next{nullptr};        // among the dead
    Atomic<std::int64_t> references{1};

    void retain() { references.fetch_add(1, relaxed); }

    // Any thread. Release and acquire: the memory is let go after everybody's last use of it.
    void drop() {
        if (references.fetch_sub(1, acq_rel) == 1) bury(this);
    }

    static void free_memory(Buffer* buffer) {
        std::free(buffer->data);
        delete buffer;
    }

    static Buffer* allocate(std::int64_t bytes) {
        auto* buffer = new Buffer;
        buffer->data = std::malloc(static_cast<std::size_t>(bytes));
        buffer->size = bytes;
        buffer->readonly = false;
        return buffer;
    }
};

// Buffers whose Python owners can be let go.
class DeadBuffers {
public:
    // True: the list was empty, so somebody must be asked to empty it.
    bool push(Buffer* buffer) {
        Buffer* top = top_.load(relaxed);
        do {
            buffer->next = top;
        } while (!top_.compare_exchange_weak(top, buffer, release, relaxed));
        return top == nullptr;
    }
    Buffer* take_all() { return top_.exchange(nullptr, acquire); }

private:
    Atomic<Buffer*> top_{nullptr};
};

}  // namespace callboard
