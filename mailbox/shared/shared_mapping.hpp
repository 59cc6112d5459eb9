// A mapping of memory that two processes share, until its end.
//
// Forks do not get it: what they would write there, the other process would take for this one's. Nor do they unmap it,
// since something else may be at its address by then.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>

#include "callboard/mailbox/shared/forks.hpp"

namespace callboard {

class SharedMapping {
public:
    // `size` bytes of a file from an offset on, a multiple of a page. The file must not shrink: see memfd_create(2) on
    // seals. Null: it is smaller, or cannot be mapped.
    static std::unique_ptr<SharedMapping> open(int memory, std::uint64_t size, std::uint64_t offset = 0) {
        struct stat found;  // what lies beyond the end of a file cannot be read
        if (fstat(memory, &found) != 0 || static_cast<std::uint64_t>(found.st_size) < offset + size) return nullptr;
        void* const mapped =
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, static_cast<off_t>(offset));
        if (mapped == MAP_FAILED) return nullptr;
        madvise(mapped, size, MADV_DONTFORK);
        return std::unique_ptr<SharedMapping>(new SharedMapping(static_cast<unsigned char*>(mapped), size));
    }
    ~SharedMapping() {
        if (is_usable()) munmap(bytes_, size_);
    }
    SharedMapping(const SharedMapping&) = delete;

    unsigned char* bytes() const { return bytes_; }

    // False in a fork of the process.
    bool is_usable() const { return Forks::passed() == passed_; }

    // Forbids writing from an offset on, a multiple of a page. False: it cannot be forbidden.
    bool forbid_writing(std::uint64_t from) { return mprotect(bytes_ + from, size_ - from, PROT_READ) == 0; }
    void keep_in_forks() { madvise(bytes_, size_, MADV_DOFORK); }

private:
    SharedMapping(unsigned char* bytes, std::uint64_t size) : bytes_(bytes), size_(size) {}

    unsigned char* const bytes_;
    const std::uint64_t size_;
    const std::uint64_t passed_ = Forks::passed();
};

}  // namespace callboard
