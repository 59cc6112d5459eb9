// A thread that writes blocks, one that reads them, and others in which they end: in one mapping, where a missing order
// is a data race, and in two mappings of the same memory, as two processes have.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include "callboard/mailbox/shared/blocks.hpp"
#include "rings.hpp"
#include "stress.hpp"

using callboard::RegionReader;
using callboard::BlockRegion;
using callboard::RegionWriter;
using callboard::ReadBlock;
using namespace rings;
using namespace stress;

namespace {

constexpr std::uint64_t pages = 8;

struct Place {
    std::uint64_t first, size;
};

// The byte of a block follows from its number. Of each page one byte in 64 is written and read.
constexpr std::uint64_t stride = 64;

void each_is_whole(std::shared_ptr<RegionReader> reader, RegionWriter& writer, std::uint64_t all) {
    ByteRing ring(256);
    callboard::Atomic<ReadBlock*> handed{nullptr};  // to the thread in which it ends
    callboard::Atomic<bool> is_over{false};
    std::uint64_t wrong = 0;
    together(3, [&](int index) {
        Random random(all + static_cast<std::uint64_t>(index));
        if (index == 0) {
            for (std::uint64_t number = 0; number < all; ++number) {
                const std::uint64_t size = 1 + random.below(3 * BlockRegion::page);
                std::uint64_t first = RegionWriter::none;
                await([&] { return (first = writer.allocate(size)) != RegionWriter::none; });
                for (std::uint64_t i = 0; i < size; i += stride) writer.bytes(first)[i] = byte_of(number, 0);
                const Place place{first, size};
                unsigned char* at = nullptr;
                await([&] { return (at = ring.writer.reserve(sizeof place, 0)) != nullptr; });
                std::memcpy(at, &place, sizeof place);
                ring.writer.publish();
                random.pause();
            }
        } else if (index == 1) {
            std::unique_ptr<ReadBlock> kept;
            for (std::uint64_t number = 0; number < all; ++number) {
                RingReader::Record record;
                await([&] { return ring.reader.next(record); });
                Place place;
                std::memcpy(&place, record.bytes, sizeof place);
                (void)ring.reader.finish();
                auto block = std::make_unique<ReadBlock>(reader, place.first, place.size);
                for (std::uint64_t i = 0; i < place.size; i += stride)
                    wrong += block->bytes()[i] != byte_of(number, 0);
                random.pause();
                if (random.below(2) == 0 && handed.load(callboard::acquire) == nullptr)  // pairs with the store below
                    handed.store(block.release(), callboard::release);                   // pairs with the load below
            }
            is_over.store(true, callboard::release);  // pairs with the load below
        } else {
            await([&] {
                const bool was_over = is_over.load(callboard::acquire);         // pairs with the store above
                ReadBlock* const block = handed.load(callboard::acquire);       // pairs with the store above
                if (block == nullptr) return was_over;
                handed.store(nullptr, callboard::release);  // pairs with the load above
                random.pause();
                delete block;
                return false;
            });
        }
    });
    CHECK_EQUAL(wrong, 0u);
    CHECK_EQUAL(writer.allocate(pages * BlockRegion::page), 0u);  // all were returned
}

}  // namespace

TEST("blocks in one mapping are whole until they are returned, in any thread") {
    std::vector<unsigned char> memory(BlockRegion::memory_of(pages));
    const BlockRegion region = BlockRegion::at(memory.data(), pages);
    RegionWriter writer(region);
    each_is_whole(std::make_shared<RegionReader>(region), writer, 20'000);
}

TEST("blocks in two mappings are whole until they are returned, in any thread") {
    const int file = static_cast<int>(syscall(SYS_memfd_create, "blocks", 0));
    CHECK(file >= 0 && ftruncate(file, static_cast<off_t>(BlockRegion::memory_of(pages))) == 0);
    const std::unique_ptr<RegionWriter> writer(RegionWriter::open(file, pages));
    auto reader = RegionReader::open(file, pages);
    close(file);
    CHECK(writer != nullptr && reader != nullptr);
    each_is_whole(std::move(reader), *writer, 20'000);
}

CHECK_MAIN
