// System messages: they travel in a cell's system stack, and overtake users' messages.
#pragma once

#include <cstdint>

namespace callboard {

// The content of a node of that stack, in the place of its Kind. `first` and `second` are owned references.
enum class SystemKind : std::uint8_t {
    stop,
    watch,    // watcher or the future of its end, None
    unwatch,  // watcher, None
    resume,   // what a suspended actor waited for, None
    failed,   // child, exception: a child escalates
    restart,  // exception that caused it, None
    ended,    // child that ended, None
    wake,     // None, None: look at your state again
    ready,    // the future of its start, None
    cancel,   // the future of an ask that its asker has cancelled, None
    fence,    // the future of a fence before which nothing waits any more, None
};

}  // namespace callboard
