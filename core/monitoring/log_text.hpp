// The lines of a worker's log: one for each record, as the thesis has them (Prokesch 2011, section 5.4.3).
//
//     248954687985216 tid 191 /net/merge disp 3 st Z et 7473 creat 248954684456346 [246,w,C,2,-!*;245,r,C,2,--*;]
//     248954687997369 *** worker 0 waited (18) for 0.000056292
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "callboard/core/monitoring/records.hpp"

namespace callboard {

class LogText {
public:
    void add_dispatch(const DispatchRecord& record, const std::vector<DispatchRecord>& uses, std::string_view path) {
        make_room(path.size() + 512 + uses.size() * 64);
        number(record.time, " tid ");
        number(record.actor, " ");
        words(path);
        words(" disp ");
        number(record.dispatch, " st ");
        const char kind = record.kind;
        if (kind != state_ended && kind != state_ready) words("B");
        words({&kind, 1});
        number(record.spent, " et ", "");
        if (kind == state_ended) number(record.created, " creat ", "");
        if (record.messages != 0 || record.queue > 0) {
            number(record.messages, " msgs ", "");
            if (record.queue >= 0) number(record.queue, " queue ", "");
        }
        if (record.uses != 0) add_uses(record.uses, uses);
        words("\n");
    }

    void add_wait(const DispatchRecord& record, std::uint32_t worker) {
        add_of_worker(record, worker, " waited (", ") for ");
    }

    void add_suspension(const DispatchRecord& record, std::uint32_t worker) {
        add_of_worker(record, worker, " was suspended (", ") for ");
    }

    void add_exit(const DispatchRecord& record, std::uint32_t worker) {
        add_of_worker(record, worker, " exited wait_cnt ", " wait_time ");
    }

    void clear() { length_ = 0; }
    const char* data() const { return text_.data(); }
    std::size_t size() const { return length_; }

private:
    // All that writes goes on at length_, in room that was made before.
    void make_room(std::size_t size) {
        if (text_.size() < length_ + size) text_.resize(2 * (length_ + size));
    }

    void words(std::string_view words) {
        std::memcpy(text_.data() + length_, words.data(), words.size());
        length_ += words.size();
    }

    template <class Number>
    void number(Number number, std::string_view following) {
        char* const here = text_.data() + length_;
        length_ += static_cast<std::size_t>(std::to_chars(here, here + 24, number).ptr - here);
        words(following);
    }

    template <class Number>
    void number(Number value, std::string_view before, std::string_view following) {
        words(before);
        number(value, following);
    }

    void add_uses(std::uint64_t count, const std::vector<DispatchRecord>& uses) {
        words(" [");
        for (const DispatchRecord& record : uses) {
            const ChannelUse use = ChannelUse::of(record);
            number(use.channel, ",");
            const char what[] = {use.mode, ',', use.state, ','};
            words({what, sizeof what});
            number(use.moved, ",");
            const char flags[] = {use.has_blocked ? '?' : '-', use.has_woken ? '!' : '-', use.has_moved ? '*' : '-', ';'};
            words({flags, sizeof flags});
        }
        words(count > uses.size() ? "...]" : "]");
    }

    void add_of_worker(
        const DispatchRecord& record, std::uint32_t worker, std::string_view before_count, std::string_view before_time) {
        make_room(512);
        number(record.time, " *** worker ");
        number(worker, before_count);
        number(record.dispatch, before_time);
        add_seconds(record.spent);
    }

    void add_seconds(std::int64_t nanoseconds) {
        number(nanoseconds / 1'000'000'000, ".");
        char digits[9];
        std::int64_t rest = nanoseconds % 1'000'000'000;
        for (int at = 8; at >= 0; --at, rest /= 10) digits[at] = static_cast<char>('0' + rest % 10);
        words({digits, sizeof digits});
        words("\n");
    }

    std::vector<char> text_;
    std::size_t length_{0};
};

}  // namespace callboard
