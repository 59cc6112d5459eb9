"""The calling thread's context, for every module of the package.

It lives in this module and in no header, because a variable in a header exists once for each extension
module that includes it.
"""

from callboard.scheduling.cell cimport Context

cdef extern from *:
    """
    #include <pthread.h>

    #include "callboard/scheduling/worker.hpp"

    namespace {

    using callboard::Context, callboard::Surplus;

    // initial-exec: one instruction instead of a call for each access from a shared object.
    thread_local Context* this_context __attribute__((tls_model("initial-exec"))) = nullptr;

    // Not a thread_local object: its destructor would run through the C++ runtime's list, which a
    // forced end of the thread at interpreter exit does not unwind safely.
    pthread_key_t context_key() {
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
    Surplus* surplus_of_process() {
        static auto* const surplus = [] {
            auto* const made = new Surplus(callboard::NodeCache::batch_size);
            pthread_atfork([] { surplus_of_process()->lock(); }, [] { surplus_of_process()->unlock(); },
                           [] { surplus_of_process()->unlock(); });
            return made;
        }();
        return surplus;
    }

    __attribute__((noinline)) Context* make_context() {
        auto* context = new Context;
        context->nodes.surplus = surplus_of_process();
        pthread_setspecific(context_key(), context);
        return this_context = context;
    }

    inline Context* context_of_this_thread() {
        Context* context = this_context;
        return __builtin_expect(context != nullptr, 1) ? context : make_context();
    }

    }  // namespace
    """
    Context* context_of_this_thread() noexcept nogil


cdef Context* current_context() noexcept nogil:
    """Return the calling thread's context, made at the first call; it ends with the thread."""
    return context_of_this_thread()
