// An assertion that a type is used by one thread at a time, for rules that no lock enforces.
//
//     class Queue : OneAtATime<Producer> {
//         void push(int value) {
//             const Alone<Producer> alone(*this);  // until the end of the block
//
// A thread that comes in leaves its name. If another thread is still inside, the program stops. The same thread may
// come in again. The role passes from thread to thread by the memory orders of the type itself; the assertion orders
// nothing.
//
// With NDEBUG there is no check: the type is empty, and takes no room as a base.
#pragma once

#include <cassert>
#include <cstdint>
#include <type_traits>

#ifndef NDEBUG
#include <pthread.h>
#endif

namespace callboard {

// Roles, of which a type may have several.
struct Producer;
struct Consumer;
struct Owner;

#ifdef NDEBUG

template <class Role>
class OneAtATime {
public:
    class ThreadInside {
    public:
        explicit ThreadInside(const OneAtATime&) {}
    };
};
static_assert(std::is_empty_v<OneAtATime<Owner>>);

#else

// Not by the atomics facade, so that a checker behind it does not have to explore what only asserts.
template <class Role>
class OneAtATime {
public:
    class ThreadInside {
    public:
        explicit ThreadInside(const OneAtATime& place)
            : place_(place), before_(__atomic_exchange_n(&place.thread_, this_thread(), __ATOMIC_RELAXED)) {
            assert((before_ == nobody || before_ == this_thread()) && "another thread is inside");
        }
        ~ThreadInside() { __atomic_store_n(&place_.thread_, before_, __ATOMIC_RELAXED); }
        ThreadInside(const ThreadInside&) = delete;

    private:
        const OneAtATime& place_;
        const std::uintptr_t before_;
    };

private:
    static constexpr std::uintptr_t nobody = 0;
    static std::uintptr_t this_thread() { return (std::uintptr_t)pthread_self(); }

    mutable std::uintptr_t thread_{nobody};
};

#endif

// For as long as it lives, its thread is inside.
template <class Role>
using Alone = typename OneAtATime<Role>::ThreadInside;

}  // namespace callboard
