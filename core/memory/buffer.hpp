// A buffer: reference-counted memory, of a Python object (NumPy, Arrow, bytes) or from malloc.
//
// It has its own count, not that of the interpreter, because native actors pass buffers on without the
// interpreter. Only a thread with the interpreter may release a Python object. So the last reference to
// an object's memory puts the buffer on a list, and a thread that has the interpreter empties the list.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/stack.hpp"

namespace callboard {

struct Buffer {
    void* data{nullptr};
    std::int64_t size{0};         // bytes
    std::int64_t item_size{1};    // bytes
    char format{'B'};             // of an item, as in Python's struct module; 'A' for Arrow
    bool readonly{true};
    // Arrow's C data interface, if format is 'A': borrowed from the owner.
    void* array{nullptr};                   // struct ArrowArray*
    void* schema{nullptr};                  // struct ArrowSchema*
    void* owner{nullptr};                   // the Python object that the memory belongs to; null: malloc'd
    void (*destroy)(Buffer*){free_memory};  // what the last drop() calls
    Buffer* next{nullptr};                  // among the dead
    Atomic<std::int64_t> references{1};

    void retain() {
        assert(references.load(relaxed) > 0 && "only a holder of a reference retains");
        references.fetch_add(1, relaxed);
    }

    // Any thread. Release and acquire: the memory is released after its last use by any thread.
    void drop() {
        assert(references.load(relaxed) > 0 && "a reference is dropped once");
        if (references.fetch_sub(1, acq_rel) == 1) destroy(this);
    }

    static void free_memory(Buffer* buffer) {
        assert(buffer->owner == nullptr && "an owner's memory is the owner's to free");
        std::free(buffer->data);
        delete buffer;
    }

    // Throws std::bad_alloc, as `new` does.
    static Buffer* allocate(std::int64_t bytes) {
        assert(bytes >= 0);
        auto* buffer = new Buffer;
        buffer->data = std::malloc(static_cast<std::size_t>(bytes));
        if (buffer->data == nullptr && bytes != 0) {
            delete buffer;
            throw std::bad_alloc();
        }
        buffer->size = bytes;
        buffer->readonly = false;
        return buffer;
    }
};

// Buffers whose Python owners can be released. The thread that pushes the first one asks another to
// take them.
using DeadBuffers = Stack<Buffer>;

}  // namespace callboard
