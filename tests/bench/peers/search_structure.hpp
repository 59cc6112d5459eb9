// The map of keys to elements: a chained hash table that is read without locks.
//
// Das et al. 2009, section 4.3.1. A chain is a line of slots, and further lines when it is full; it never gets
// shorter. A slot has an element, with six bits of its hash in those of the address that are zero, or nothing.
//   - Invariant 4.3: a slot is empty or has a valid element. Elements are not used again while somebody may still
//     read them (epochs.hpp), so all here except the constructor is called from inside an epoch.
//   - Invariant 4.4: a key is deleted when its element's pending count is closed. From then on who finds the
//     element is refused. The slot is emptied after that, lazily, by the first thread that comes, and used again
//     by an insertion.
//   - Invariant 4.5, unique keys: insertions into a chain exclude each other by its lock, and each looks the key up
//     once it has the lock. It inserts only if all elements of the key that it finds are closed.
// The lock is held for a look at one chain, and only by a thread that owns no element and no bucket.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <thread>

#include "callboard/core/atomics.hpp"
#include "counted_elements.hpp"

namespace callboard {

template <class Keys>
class SearchStructure {
    struct Line;

public:
    using Probe = typename Keys::Probe;
    using Element = CountedElement<Keys>;

    // For about so many elements.
    explicit SearchStructure(std::uint64_t elements) {
        while ((std::uint64_t{3} << bits_) < elements && bits_ < 40) ++bits_;
        lines_.reset(new Line[std::size_t{1} << bits_]);
    }
    SearchStructure(const SearchStructure&) = delete;
    ~SearchStructure() {
        for (std::size_t i = 0; i < std::size_t{1} << bits_; ++i)
            for (Line* line = lines_[i].more.load(relaxed); line != nullptr;) {
                Line* const following = line->more.load(relaxed);
                delete line;
                line = following;
            }
    }

    // A find() with this hash will come; and then what it will find.
    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&line_of(hash)); }
    void prefetch_element(std::uint64_t hash) const {
        for (const auto& slot : line_of(hash).slots) {
            const std::uintptr_t held = slot.load(relaxed);
            if ((held & tags) != (hash & tags) || held < cache_line) continue;
            __builtin_prefetch(untagged(held));
            __builtin_prefetch(reinterpret_cast<const char*>(untagged(held)) + cache_line);
            return;
        }
    }

    // Null if the key has none. The element may be closed.
    Element* find(const Probe& key, std::uint64_t hash) const {
        for (const Line* line = &line_of(hash); line != nullptr; line = line->more.load(acquire))
            for (const auto& slot : line->slots)
                if (Element* const element = match(slot, key, hash)) return element;
        return nullptr;
    }

    // An element with its key and hash, owned by the caller, which nobody else has seen. Returns it, or the one that
    // the key has already. Throws std::bad_alloc, and then it is as before.
    Element* insert(Element* element, const Probe& key) {
        assert((reinterpret_cast<std::uintptr_t>(element) & tags) == 0);
        Line& first = line_of(element->hash);
        const Lock lock(first);
        typename Element::Slot* free = nullptr;
        for (Line* line = &first;;) {
            for (auto& slot : line->slots) {
                if (Element* const other = match(slot, key, element->hash)) {
                    if (!other->pending.is_closed()) return other;
                    erase(other);
                }
                if (free == nullptr && slot.load(relaxed) == 0) free = &slot;
            }
            Line* const more = line->more.load(relaxed);  // written under the lock
            if (more == nullptr && free == nullptr) {
                auto* const fresh = new Line();
                free = &fresh->slots[0];
                fill(*free, element);
                line->more.store(fresh, release);  // pairs with find()
                return element;
            }
            if (more == nullptr) break;
            line = more;
        }
        fill(*free, element);
        return element;
    }

    // Removes a closed element: the first caller empties its slot. Release and acquire pair with each other and
    // with find(): a thread that misses the element for that reason sees its closer's work.
    void erase(Element* element) {
        assert(element->slot != nullptr && element->pending.is_closed() && "only what is closed is erased");
        std::uintptr_t held = tagged(element);
        element->slot->compare_exchange_strong(held, 0, acq_rel, acquire);
    }

    // All elements, in any order. Each that is there from the beginning to the end is seen, once.
    template <class See>
    void each(const See& see) const {
        for (std::size_t i = 0; i < std::size_t{1} << bits_; ++i)
            for (const Line* line = &lines_[i]; line != nullptr; line = line->more.load(acquire))
                for (const auto& slot : line->slots)
                    if (Element* const element = untagged(slot.load(acquire))) see(element);  // pairs with fill()
    }

private:
    static constexpr std::uintptr_t tags = cache_line - 1;

    struct alignas(cache_line) Line {
        typename Element::Slot slots[6]{};
        Atomic<Line*> more{nullptr};
        Atomic<bool> is_locked{false};  // the first line's, for the chain
    };

    class Lock {
    public:
        explicit Lock(Line& line) : line_(line) {
            // Acquire pairs with the last holder's release.
            for (int tries = 1; line.is_locked.load(relaxed) || line.is_locked.exchange(true, acquire); ++tries) {
                if (tries % 64 == 0) std::this_thread::yield();
                else relax();
            }
        }
        ~Lock() { line_.is_locked.store(false, release); }

    private:
        Line& line_;
    };

    static Element* untagged(std::uintptr_t held) { return reinterpret_cast<Element*>(held & ~tags); }
    static std::uintptr_t tagged(const Element* element) {
        return reinterpret_cast<std::uintptr_t>(element) | (element->hash & tags);
    }

    Line& line_of(std::uint64_t hash) const { return lines_[hash >> 8 & ((std::uint64_t{1} << bits_) - 1)]; }

    static Element* match(const typename Element::Slot& slot, const Probe& key, std::uint64_t hash) {
        const std::uintptr_t held = slot.load(acquire);  // pairs with fill()
        if ((held & tags) != (hash & tags)) return nullptr;
        Element* const element = untagged(held);
        return element != nullptr && element->hash == hash && Keys::equal(element->key, key) ? element : nullptr;
    }

    // Release pairs with who finds it.
    static void fill(typename Element::Slot& slot, Element* element) {
        assert(slot.load(relaxed) == 0 && "a slot has one element");
        element->slot = &slot;
        slot.store(tagged(element), release);
    }

    std::unique_ptr<Line[]> lines_;
    unsigned bits_{2};
};

}  // namespace callboard
