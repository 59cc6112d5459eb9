// The delays that the threads of a run still have to make, so that one operator seems faster.
//
// Curtsinger and Berger, "Coz: Finding Code that Counts with Causal Profiling", SOSP 2015, section 3.4: a piece of
// code seems faster if all others are slower while it runs. When the operator has worked for d, each thread that was
// at work at the time pauses for d * weight, and so does the clock: the sum of all d * weight is subtracted. An idle
// thread has no debt, because it waits for one that has paid. If n threads run the operator at once, each owes for
// the other n - 1: they take d + (n - 1) * d * weight, and n * d * weight is subtracted.
//
// Coz samples, and learns from blocking calls which thread waits for which. Here slices of work have a beginning and
// an end, so a debt is the overlap of two of them; the one that is reported later finds it. A pause counts as work: a
// debt grows while it is paid.
//
// One lock. Work under it never overlaps, so a thread with work on both sides of the target's slice was waiting for
// the lock, and owes nothing: the whole is as much shorter as the operator is. That holds for the `lock_share` of the
// target's time, in which it has the lock. In the rest it sleeps, or waits for the lock itself, and the thread that
// has the lock owes that: the target's wait for the lock is no gain. Such a debt is paid under the lock, or others
// would make use of it.
//
// This file has no clock and no threads: it is for tests, and for virtual_speed_up.hpp, which has a mutex around it.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace callboard {

class DelayLedger {
public:
    // The way in which work needs the lock. `outside` is for a member that has another member for work under the lock:
    // it owes for the part of the target's time in which that has the lock.
    enum Lock : std::uint8_t { free, locked, outside };

    // A piece of work. `weight` is 0, or the fraction by which the operator has to seem shorter.
    struct WorkSlice {
        std::int64_t begin, end;
        Lock lock{free};
        double weight{0.0};
        double lock_share{1.0};  // if locked, the part of its time in which it has the lock
    };

    std::size_t add_member() {
        members_.emplace_back();
        return members_.size() - 1;
    }

    // The member has worked. Its pieces come in their order, and do not overlap.
    void worked(std::size_t member, const WorkSlice& work) {
        assert(member < members_.size() && work.begin <= work.end);
        assert(work.lock != outside || work.weight == 0.0);
        assert(work.weight >= 0.0 && work.weight <= 1.0 && work.lock_share >= 0.0 && work.lock_share <= 1.0);
        Member& me = members_[member];
        for (std::size_t i = 0; i < members_.size(); ++i) {
            if (i == member) continue;
            for (auto span = members_[i].targets.rbegin(); span != members_[i].targets.rend(); ++span) {
                if (span->end <= work.begin) break;
                me.debt += due(*span, work);
            }
            if (work.weight == 0.0) continue;
            for (auto span = members_[i].present.rbegin(); span != members_[i].present.rend(); ++span) {
                if (span->end <= work.begin) break;
                members_[i].debt += due(work, *span);
            }
        }
        keep(me.present, {work.begin, work.end, work.lock});
        if (work.weight == 0.0) return;
        keep(me.targets, work);
        inserted_ += work.weight * static_cast<double>(work.end - work.begin);
    }

    // The member has paused for what it owes, or longer: then it has paid in advance.
    void paused(std::size_t member, const WorkSlice& pause) {
        members_[member].debt -= static_cast<double>(pause.end - pause.begin);
        worked(member, {pause.begin, pause.end, pause.lock});
    }

    // In nanoseconds: the pause of the member, and the part of the time since clear() that is subtracted.
    double debt(std::size_t member) const { return members_[member].debt; }
    double inserted() const { return inserted_; }

    // Members stay.
    void clear() {
        inserted_ = 0.0;
        for (auto& member : members_) member = {};
    }

private:
    static constexpr std::size_t kept = 1024;  // pieces of a member that something longer may still overlap

    struct Member {
        std::deque<WorkSlice> present, targets;
        double debt{0.0};
    };

    static double due(const WorkSlice& target, const WorkSlice& other) {
        const auto both = std::min(target.end, other.end) - std::max(target.begin, other.begin);
        if (both <= 0) return 0.0;
        return target.weight * share_of(target, other.lock) * static_cast<double>(both);
    }

    static double share_of(const WorkSlice& target, Lock other) {
        const double lock_share = target.lock == locked ? target.lock_share : 0.0;
        return other == free ? 1.0 : other == locked ? 1.0 - lock_share : lock_share;
    }

    // Pieces that follow one another are one.
    static void keep(std::deque<WorkSlice>& spans, const WorkSlice& work) {
        if (!spans.empty()) {
            WorkSlice& last = spans.back();
            assert(last.end <= work.begin);
            if (last.end == work.begin && last.lock == work.lock && last.weight == work.weight) {
                const auto before = static_cast<double>(last.end - last.begin);
                const auto more = static_cast<double>(work.end - work.begin);
                if (before + more > 0.0) {
                    last.lock_share = (last.lock_share * before + work.lock_share * more) / (before + more);
                }
                last.end = work.end;
                return;
            }
        }
        spans.push_back(work);
        if (spans.size() > kept) spans.pop_front();
    }

    std::vector<Member> members_;
    double inserted_{0.0};
};

}  // namespace callboard
