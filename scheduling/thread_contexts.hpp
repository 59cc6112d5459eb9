// Each thread's context: made when the thread first needs it, and freed when the thread ends.
//
// Only context.pyx includes this header, and all modules go through it: the variables of a header exist once for
// each extension module that includes it.
#pragma once

#include <pthread.h>

#include <cassert>

#include "callboard/core/memory/node.hpp"
#include "callboard/scheduling/context.hpp"

namespace callboard {

// initial-exec: one instruction instead of a call for each access from a shared object.
inline thread_local Context* this_context __attribute__((tls_model("initial-exec"))) = nullptr;

// Makes the contexts: a Context, or a type of the layer above that derives from it. Set before the first one is made.
inline Context* (*new_context)() = [] { return new Context; };
inline Atomic<bool> has_contexts{false};

// Not a thread_local object: its destructor would run through the C++ runtime's list, which a
// forced end of the thread at interpreter exit does not unwind safely.
inline pthread_key_t context_key() {
    static const pthread_key_t key = [] {
        pthread_key_t made;
        pthread_key_create(&made, [](void* context) {
            this_context = nullptr;
            delete static_cast<Context*>(context);
        });
        return made;
    }();
    return key;
}

// Never destroyed: threads that outlive the interpreter's end go on using it.
inline Surplus* surplus_of_process() {
    static auto* const surplus = [] {
        auto* const made = new Surplus(NodeCache::batch_size);
        pthread_atfork([] { surplus_of_process()->lock(); }, [] { surplus_of_process()->unlock(); },
                       [] { surplus_of_process()->unlock(); });
        return made;
    }();
    return surplus;
}

__attribute__((noinline)) inline Context* make_context() {
    assert(this_context == nullptr && "a thread has one context");
    has_contexts.store(true, relaxed);
    Context* const context = new_context();
    context->nodes.surplus = surplus_of_process();
    pthread_setspecific(context_key(), context);
    return this_context = context;
}

// The calling thread's context.
inline Context* context_of_this_thread() {
    Context* const context = this_context;
    return __builtin_expect(context != nullptr, 1) ? context : make_context();
}

// Has `make` make the contexts. False: some of another kind exist already.
inline bool make_contexts_with(Context* (*make)()) {
    if (has_contexts.load(relaxed)) return false;
    new_context = make;
    return true;
}

}  // namespace callboard
