// The contract of blocks: their places, their return, readers that write nonsense, and forks. stress_blocks.cpp has the
// two threads.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "callboard/core/mix.hpp"
#include "callboard/mailbox/shared/blocks.hpp"
#include "check.hpp"

using callboard::Atomic;
using callboard::RegionReader;
using callboard::BlockRegion;
using callboard::RegionWriter;
using callboard::ReadBlock;

namespace {

constexpr std::uint64_t page = BlockRegion::page;

static_assert(sizeof(Atomic<unsigned char>) == 1 && Atomic<unsigned char>::is_always_lock_free);

// A region in a file without a name, with both ends.
class Region {
public:
    explicit Region(std::uint64_t pages) : pages_(pages) {
        CHECK(file_ >= 0 && ftruncate(file_, static_cast<off_t>(BlockRegion::memory_of(pages))) == 0);
        writer.reset(RegionWriter::open(file_, pages));
        reader = RegionReader::open(file_, pages);
        CHECK(writer != nullptr && reader != nullptr);
    }
    ~Region() { close(file_); }

    // A block full of a byte, as the reader sees it.
    std::unique_ptr<ReadBlock> write(std::uint64_t size, unsigned char byte) {
        const std::uint64_t first = writer->allocate(size);
        if (first == RegionWriter::none) return nullptr;
        CHECK(reader->has(first, size));
        std::memset(writer->bytes(first), byte, size);
        return std::make_unique<ReadBlock>(reader, first, size);
    }

    // Pages of the file that have memory.
    std::uint64_t used() const {
        struct stat found;
        CHECK(fstat(file_, &found) == 0);
        return static_cast<std::uint64_t>(found.st_blocks) * 512 / page;
    }

    // The flags, as a process without rules writes them.
    unsigned char* flags() {
        void* const mapped = mmap(nullptr, pages_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        CHECK(mapped != MAP_FAILED);
        return static_cast<unsigned char*>(mapped);
    }

    std::unique_ptr<RegionWriter> writer;
    std::shared_ptr<RegionReader> reader;

private:
    const int file_ = static_cast<int>(syscall(SYS_memfd_create, "blocks", 0));
    const std::uint64_t pages_;
};

bool is_full_of(const ReadBlock& block, unsigned char byte) {
    for (std::uint64_t i = 0; i < block.size(); ++i)
        if (block.bytes()[i] != byte) return false;
    return true;
}

// Runs `body` in a fork. True: it returned true.
template <class Body>
bool in_fork(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body() ? 0 : 1);
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST("a block has the bytes that were written, until its end") {
    Region region(4);
    const auto first = region.write(page + 1, 'a'), second = region.write(1, 'b');
    CHECK(first != nullptr && second != nullptr);
    CHECK(is_full_of(*first, 'a') && is_full_of(*second, 'b'));
    CHECK_EQUAL(first->size(), page + 1);
}

TEST("a full region has no room until a block is returned, and then the first that is large enough") {
    Region region(4);
    auto first = region.write(2 * page, 'a'), second = region.write(2 * page, 'b');
    CHECK(first != nullptr && second != nullptr);
    CHECK(region.write(1, 'c') == nullptr);
    first.reset();
    CHECK(region.write(3 * page, 'c') == nullptr);
    const auto third = region.write(page, 'c'), fourth = region.write(page, 'd');
    CHECK(third != nullptr && fourth != nullptr && is_full_of(*second, 'b') && is_full_of(*third, 'c'));
    CHECK(region.write(1, 'e') == nullptr);
}

TEST("a block that is larger than the region has no room") {
    Region region(4);
    CHECK_EQUAL(region.writer->allocate(4 * page + 1), RegionWriter::none);
    CHECK_EQUAL(region.writer->allocate(4 * page), 0u);
}

TEST("blocks of random sizes and lives never overlap, and all room comes back") {
    std::uint64_t taken = 0;
    const auto random = [&](std::uint64_t below) { return callboard::random_number(7, taken++) % below; };
    Region region(64);
    std::vector<std::pair<std::unique_ptr<ReadBlock>, unsigned char>> held;
    int written = 0;
    for (int i = 0; i < 20'000; ++i) {
        if (auto block = region.write(1 + random(9 * page), static_cast<unsigned char>(i))) {
            held.emplace_back(std::move(block), static_cast<unsigned char>(i));
            ++written;
        }
        while (!held.empty() && random(2) == 0) {
            std::swap(held[random(held.size())], held.back());
            CHECK(is_full_of(*held.back().first, held.back().second));
            held.pop_back();
        }
    }
    CHECK(written > 10'000);
    held.clear();
    CHECK(region.write(64 * page, 'z') != nullptr);
}

TEST("a place that is not in the region is none of a block") {
    Region region(4);
    const std::uint64_t largest = ~std::uint64_t{0};
    CHECK(region.reader->has(0, 4 * page) && region.reader->has(3, page) && region.reader->has(1, 1));
    for (const auto& [first, size] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
             {0, 0}, {0, 4 * page + 1}, {3, page + 1}, {4, 1}, {largest, 1}, {1, largest}, {largest, largest}})
        CHECK(!region.reader->has(first, size));
}

TEST("whatever the reader writes to the flags, blocks lie in the region, and are returned or apart") {
    std::uint64_t taken = 0;
    const auto random = [&](std::uint64_t below) { return callboard::random_number(11, taken++) % below; };
    Region region(16);
    unsigned char* const flags = region.flags();
    std::map<std::uint64_t, std::uint64_t> lent;  // first page -> the end
    for (int i = 0; i < 20'000; ++i) {
        flags[random(16)] = static_cast<unsigned char>(random(3) == 0 ? random(256) : 0);
        for (auto it = lent.begin(); it != lent.end();) it = flags[it->first] != 0 ? lent.erase(it) : std::next(it);
        const std::uint64_t pages = 1 + random(5), first = region.writer->allocate(pages * page);
        CHECK_EQUAL(region.writer->lent(), lent.size() + (first != RegionWriter::none));
        if (first == RegionWriter::none) continue;
        CHECK(first + pages <= 16);
        const auto next = lent.lower_bound(first);
        CHECK(next == lent.end() || first + pages <= next->first);
        CHECK(next == lent.begin() || std::prev(next)->second <= first);
        lent[first] = first + pages;
    }
    munmap(flags, 16);
}

TEST("a block can be read after both ends are gone") {
    std::unique_ptr<ReadBlock> block;
    {
        Region region(4);
        block = region.write(2 * page, 'a');
    }
    CHECK(is_full_of(*block, 'a'));
}

TEST("the reader is crowded by blocks of more than half of the region") {
    Region region(8);
    CHECK(!region.reader->is_crowded(4 * page));
    CHECK(region.reader->is_crowded(4 * page + 1));
    auto block = region.write(3 * page, 'a');
    CHECK(!region.reader->is_crowded(page));
    CHECK(region.reader->is_crowded(page + 1));
    block.reset();
    CHECK(!region.reader->is_crowded(4 * page));
}

TEST("trim() gives the memory of what is not lent back") {
    Region region(256);
    auto first = region.write(64 * page, 'a');
    const auto second = region.write(64 * page, 'b');
    CHECK(region.write(64 * page, 'c') != nullptr);
    CHECK(region.used() >= 192);
    first.reset();
    region.writer->trim();
    CHECK(region.used() >= 64 && region.used() < 96);
    CHECK(is_full_of(*second, 'b'));
    CHECK(is_full_of(*region.write(64 * page, 'd'), 'd'));
}

TEST("after a peak the memory that is not needed any more is given back") {
    Region region(256);
    CHECK(region.write(200 * page, 'a') != nullptr);
    for (std::uint32_t i = 0; i < 2 * RegionWriter::period; ++i) CHECK(region.write(page, 'b') != nullptr);
    CHECK(region.used() < 32);
}

TEST("a block that is read while the process forks stays in the fork, and is not returned") {
    Region region(8);
    auto block = region.write(4 * page, 'a');
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    const pid_t child = fork();
    if (child == 0) {
        char go;
        const bool went = read(pipes[0], &go, 1) == 1;
        const bool good = went && is_full_of(*block, 'a');
        block.reset();
        _exit(good ? 0 : 1);
    }
    block.reset();
    for (int i = 0; i < 10; ++i) {
        const auto next = region.write(4 * page, 'b');
        CHECK(next != nullptr && is_full_of(*next, 'b'));
    }
    CHECK(write(pipes[1], "g", 1) == 1);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQUAL(status, 0);
    CHECK(region.write(5 * page, 'c') == nullptr);
    close(pipes[0]), close(pipes[1]);
}

TEST("a fork neither has the writer's memory nor unmaps what took its place") {
    Region region(16);
    unsigned char* const start = region.writer->bytes(0);
    CHECK(region.writer->is_usable());
    CHECK(in_fork([&] {
        if (region.writer->is_usable()) return false;
        void* const wanted = start;
        void* const mapped = mmap(wanted, 16 * page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (mapped != wanted) return false;  // it was taken
        start[0] = 'x';
        region.writer.reset();
        return start[0] == 'x';
    }));
    CHECK(region.writer->is_usable() && region.write(page, 'a') != nullptr);
}

TEST("memory that is too small is not opened") {
    const int file = static_cast<int>(syscall(SYS_memfd_create, "small", 0));
    CHECK(ftruncate(file, static_cast<off_t>(BlockRegion::memory_of(4)) - 1) == 0);
    CHECK(RegionWriter::open(file, 4) == nullptr && RegionReader::open(file, 4) == nullptr);
    CHECK(RegionWriter::open(-1, 4) == nullptr);
    close(file);
}

CHECK_MAIN
