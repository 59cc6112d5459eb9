// The lines of a worker's log: one for each record, as the thesis has them (Prokesch 2011, section 5.4.3).
//
//     248954687985216 tid 191 /net/merge disp 3 st Z et 7473 creat 248954684456346 [246,w,C,2,-!*;245,r,C,2,--*;]
//     248954687997369 *** worker 0 waited (18) for 0.000056292
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "callboard/core/records.hpp"

namespace callboard {

class LogText {
public:
    // `path` is the actor's. `uses` are those of the records before this one.
    void add_dispatch(const DispatchRecord& record, const std::vector<DispatchRecord>& uses, std::string_view path) {
        field(record.time, " tid ");
        field(record.actor, " ");
        text_.append(path).append(" disp ");
        field(record.dispatch, " st ");
        const char kind = record.kind;
        if (kind != state_ended && kind != state_ready) text_.push_back('B');
        text_.push_back(kind);
        text_.append(" et ");
        field(record.spent, "");
        if (kind == state_ended) {
            text_.append(" creat ");
            field(record.created, "");
        }
        if (record.messages != 0 || record.queue > 0) {
            text_.append(" msgs ");
            field(record.messages, "");
            if (record.queue >= 0) {
                text_.append(" queue ");
                field(record.queue, "");
            }
        }
        if (record.uses != 0) add_uses(record.uses, uses);
        text_.push_back('\n');
    }

    void add_wait(const DispatchRecord& record, std::uint32_t worker) {
        field(record.time, " *** worker ");
        field(worker, " waited (");
        field(record.dispatch, ") for ");
        add_seconds(record.spent);
    }

    void add_exit(const DispatchRecord& record, std::uint32_t worker) {
        field(record.time, " *** worker ");
        field(worker, " exited wait_cnt ");
        field(record.dispatch, " wait_time ");
        add_seconds(record.spent);
    }

    const std::string& text() const { return text_; }

private:
    template <class Number>
    void field(Number number, std::string_view following) {
        char digits[24];
        text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr).append(following);
    }

    void add_uses(std::uint64_t count, const std::vector<DispatchRecord>& uses) {
        text_.append(" [");
        for (const DispatchRecord& record : uses) {
            const ChannelUse use = ChannelUse::of(record);
            field(use.channel, ",");
            const char words[] = {use.mode, ',', use.state, ','};
            text_.append(words, sizeof words);
            field(use.moved, ",");
            const char flags[] = {use.has_blocked ? '?' : '-', use.has_woken ? '!' : '-', use.has_moved ? '*' : '-', ';'};
            text_.append(flags, sizeof flags);
        }
        text_.append(count > uses.size() ? "...]" : "]");
    }

    void add_seconds(std::int64_t nanoseconds) {
        char text[40];
        const int length = std::snprintf(text, sizeof text, "%lld.%09lld\n", static_cast<long long>(nanoseconds / 1000000000),
                                         static_cast<long long>(nanoseconds % 1000000000));
        text_.append(text, static_cast<std::size_t>(length));
    }

    std::string text_;
};

}  // namespace callboard
