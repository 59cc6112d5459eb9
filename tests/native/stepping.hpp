// Processes that are stopped after each of their instructions.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "check.hpp"

namespace stepping {

// Memory that a child shares with its parent.
template <class T>
class Shared {
public:
    Shared()
        : value_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T{}) {}
    ~Shared() { munmap(value_, sizeof(T)); }
    Shared(const Shared&) = delete;

    T* operator->() const { return value_; }

    // Has the bytes of another one.
    void copy(const Shared& other) { std::memcpy(static_cast<void*>(value_), other.value_, sizeof(T)); }

private:
    T* const value_;
};

// A child runs `body`. Calls `look` after each of its instructions: it sees the memory as if the child had died there.
// Returns how often; 0 where processes cannot be traced, as under an emulator.
template <class Body, class Look>
int after_each_instruction(Body body, Look look) {
    const pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(0);
        raise(SIGSTOP);
        body();
        _exit(0);
    }
    int status = 0, looks = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        look();
        ++looks;
        if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) kill(child, SIGKILL);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return looks;
}

}  // namespace stepping
