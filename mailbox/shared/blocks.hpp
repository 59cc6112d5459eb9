// Blocks: large values in shared memory, which one process writes once and the other one reads in place.
//
// A region of pages has one writer and one reader, in different processes. The writer alone divides it. It fills a block
// of whole pages, and sends the block's place by other means: see byte_channel.hpp. The reader makes the block readable
// until the last user of its bytes is gone, and returns it by one store to the flag of its first page. The writer looks
// at the flags before it takes pages.
//
// Why it is right. The flag is the only state in shared memory. The writer clears it before the block's place is sent,
// so the reader's store comes later. The store has release, and the writer's look acquire: all reads of the block come
// before the writes of the next one. A flag has no wrong values, so nothing that the reader writes can harm the
// writer: a block that is returned too early is overwritten for that reader alone. The reader checks that a place lies
// in the region. Its bytes may still change while they are used, so their decoder has to be safe for any bytes.
//
// If a process ends, at whatever instruction, nothing is to be put right: a region belongs to one pair of processes, and
// ends with the last mapping of it. A block keeps the mapping of its reader, so its bytes can be read after the writer,
// and all else that had to do with the channel, have ended.
//
// Nobody waits for pages. If there are none, the value travels another way, and memory is no reason for a deadlock.
// Blocks that are kept for long would use up the region. So the reader has to copy blocks while `is_crowded()`: half of
// the region stays for those that pass.
//
// Forks. The writer's fork does not have the region. The reader's has it, because blocks that were being read are still
// used there. Such a block is never returned, neither by the fork, for which it is not its own, nor by the reader, which
// does not know how long the fork needs it.
//
// The writer takes the first gap that is large enough. So the same pages are used again, which are in its cache and in
// both page tables: fresh pages cost as much as two copies. There is no list of gaps, as lent blocks in their order show
// them. After each period the pages that were not needed in it are given back to the operating system.
//
// Rejected: counts of users in shared memory, which a killed process leaves wrong. Returning blocks by messages: the
// last user may be gone in any thread, even one that is just sending, and the writer would have to read its messages
// before it knows what is free. Private mappings of the reader, in which it could write to values: the pages that it has
// copied must be dropped before each next value, and that costs more than the copy of a value that is to be changed.
//
// Progress: allocate() passes once over the lent blocks; all else is wait-free.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/core/one_at_a_time.hpp"
#include "callboard/mailbox/shared/shared_mapping.hpp"

namespace callboard {

// Which parts of a region's memory are flags, and which pages. Zeros are a valid state.
struct BlockRegion {
    static constexpr std::uint64_t page = 4096;
    static constexpr std::uint64_t largest_page = 65536;  // of an operating system

    Atomic<unsigned char>* returned;  // one for each page
    unsigned char* bytes;
    std::uint64_t pages;

    static BlockRegion at(unsigned char* memory, std::uint64_t pages) {
        return {reinterpret_cast<Atomic<unsigned char>*>(memory), memory + room_of_flags(pages), pages};
    }
    static std::uint64_t room_of_flags(std::uint64_t pages) {
        return (pages + largest_page - 1) / largest_page * largest_page;
    }
    static std::uint64_t memory_of(std::uint64_t pages) { return room_of_flags(pages) + pages * page; }
    static std::uint64_t pages_of(std::uint64_t size) { return (size + page - 1) / page; }
};

class RegionWriter : OneAtATime<Producer> {
public:
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    static constexpr std::uint32_t period = 256;  // blocks

    explicit RegionWriter(const BlockRegion& region) : region_(region) {}

    // Memory of the process in which blocks are written; null: it cannot be mapped, or is too small.
    static RegionWriter* open(int memory, std::uint64_t pages) {
        auto mapping = SharedMapping::open(memory, BlockRegion::memory_of(pages));
        if (mapping == nullptr) return nullptr;
        auto* const writer = new RegionWriter(BlockRegion::at(mapping->bytes(), pages));
        writer->mapping_ = std::move(mapping);
        return writer;
    }

    // The first page of a new block of `size` bytes, which are not zero; `none`: there is no room for it now.
    [[nodiscard]] std::uint64_t allocate(std::uint64_t size) {
        const Alone<Producer> alone(*this);
        const std::uint64_t pages = BlockRegion::pages_of(size);
        assert(pages != 0);
        take_back();
        std::uint64_t first = 0;  // behind the blocks before the gap
        auto next = lent_.begin();
        while (next != lent_.end() && next->first - first < pages) first = (next++)->end;
        if (region_.pages - first < pages) return none;
        lent_.insert(next, {first, first + pages});
        region_.returned[first].store(0, relaxed);
        note_needed(first + pages);
        return first;
    }

    unsigned char* bytes(std::uint64_t first) const { return region_.bytes + first * BlockRegion::page; }

    // Gives all memory that is not lent back to the operating system.
    void trim() {
        const Alone<Producer> alone(*this);
        take_back();
        std::uint64_t end = 0;
        for (const Lent& block : lent_) give_back(end, block.first), end = block.end;
        give_back(end, used_);
        used_ = needed_ = end;
        allocated_ = 0;
    }

    std::uint64_t lent() const { return lent_.size(); }

    // A fork of the process does not have the memory.
    bool is_usable() const { return mapping_->is_usable(); }

private:
    struct Lent {
        std::uint64_t first, end;
    };

    void take_back() {
        const auto is_returned = [this](const Lent& block) {
            return region_.returned[block.first].load(acquire) != 0;  // pairs with ~ReadBlock()
        };
        lent_.erase(std::remove_if(lent_.begin(), lent_.end(), is_returned), lent_.end());
    }

    void note_needed(std::uint64_t end) {
        used_ = std::max(used_, end);
        needed_ = std::max(needed_, end);
        if (++allocated_ < period) return;
        give_back(needed_, used_);
        used_ = needed_;
        needed_ = lent_.back().end;
        allocated_ = 0;
    }

    void give_back(std::uint64_t first, std::uint64_t end) {
        static const auto unit = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
        const std::uint64_t begin = (first * BlockRegion::page + unit - 1) / unit * unit;
        const std::uint64_t stop = end * BlockRegion::page / unit * unit;
        if (begin < stop) madvise(region_.bytes + begin, stop - begin, MADV_REMOVE);  // it is read as zeros then
    }

    const BlockRegion region_;
    std::unique_ptr<SharedMapping> mapping_;
    std::vector<Lent> lent_;  // in the order of places
    // Ends of pages: of those that have memory, and of those that were needed in this period.
    std::uint64_t used_{0}, needed_{0};
    std::uint32_t allocated_{0};  // in this period
};

// Blocks share it, from any thread.
class RegionReader {
public:
    explicit RegionReader(const BlockRegion& region) : region_(region) {}

    // Memory of the process in which blocks are read; null: it cannot be mapped, or is too small.
    static std::shared_ptr<RegionReader> open(int memory, std::uint64_t pages) {
        auto mapping = SharedMapping::open(memory, BlockRegion::memory_of(pages));
        if (mapping == nullptr || !mapping->forbid_writing(BlockRegion::room_of_flags(pages))) return nullptr;
        mapping->keep_in_forks();
        auto reader = std::make_shared<RegionReader>(BlockRegion::at(mapping->bytes(), pages));
        reader->mapping_ = std::move(mapping);
        return reader;
    }

    // Whether a place that the other process has sent lies in the region.
    bool has(std::uint64_t first, std::uint64_t size) const {
        return size != 0 && first < region_.pages && size <= (region_.pages - first) * BlockRegion::page;
    }

    // Whether a block should be copied, because with it more than half of the region would be used by those that are
    // read.
    bool is_crowded(std::uint64_t size) const {
        return (used_.load(relaxed) + BlockRegion::pages_of(size)) * 2 > region_.pages;
    }

private:
    friend class ReadBlock;

    const BlockRegion region_;
    std::unique_ptr<SharedMapping> mapping_;
    Atomic<std::uint64_t> used_{0};  // pages of blocks that are not returned
};

// A block that can be read until its end, which returns it.
class ReadBlock {
public:
    // The reader has the place.
    ReadBlock(std::shared_ptr<RegionReader> reader, std::uint64_t first, std::uint64_t size)
        : reader_(std::move(reader)), first_(first), size_(size) {
        assert(reader_->has(first, size));
        reader_->used_.fetch_add(BlockRegion::pages_of(size), relaxed);
    }
    ~ReadBlock() {
        if (Forks::begun() != forks_) return;
        reader_->used_.fetch_sub(BlockRegion::pages_of(size_), relaxed);
        reader_->region_.returned[first_].store(1, release);  // pairs with take_back()
    }
    ReadBlock(const ReadBlock&) = delete;

    const unsigned char* bytes() const { return reader_->region_.bytes + first_ * BlockRegion::page; }
    std::uint64_t size() const { return size_; }

private:
    const std::shared_ptr<RegionReader> reader_;
    const std::uint64_t first_, size_;
    const std::uint64_t forks_ = Forks::begun();
};

}  // namespace callboard
