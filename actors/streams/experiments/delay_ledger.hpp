// What those who work on a run owe to an operator that is to seem faster.
//
// Curtsinger and Berger, "Coz: Finding Code that Counts with Causal Profiling", SOSP 2015, section 3.4: a piece of
// code seems faster if the others are slower while it runs. When the operator has worked for d, all others who were
// at work meanwhile pause for d * weight, and so does the clock: the sum of all d * weight is taken off the time.
// Who is not at work owes nothing, because it waits for somebody who has paid. If n threads run the operator at once,
// each owes for the other n - 1: they take d + (n - 1) * d * weight, and n * d * weight comes off.
//
// Coz samples, and knows who waits for whom from calls that block. Here slices of work have a beginning and an end, so
// a debt is the overlap of two of them. Whichever is told later finds it. A pause is as work in this: a debt
// grows while it is paid.
//
// One lock. Work under it never overlaps, so a thread that has a piece of work on both sides of the target's waited for
// the lock meanwhile, and owes nothing: the whole is as much shorter as the operator is. That holds for the `held` share
// of the target's time, during which it has the lock. In the rest it sleeps, or waits for the lock itself, and whoever
// has the lock meanwhile owes that: so what the target waited for the lock is no gain. Such a debt is paid under the
// lock, or others would make use of it.
//
// No clock and no thread is known here: for tests, and for virtual_speed_up.hpp, which has a mutex around it.
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
    // How work needs the lock. `outside` is for a member that may need it, and has another member for when it does:
    // it owes for the share of the target's time in which that has the lock.
    enum Lock : std::uint8_t { free, locked, outside };

    // A piece of work. `weight` is 0, or the part of it by which the operator is to seem shorter.
    struct Work {
        std::int64_t begin, end;
        Lock lock{free};
        double weight{0.0};
        double held{1.0};  // if locked, the share of its time in which it has the lock
    };

    std::size_t add_member() {
        members_.emplace_back();
        return members_.size() - 1;
    }

    // The member has worked. Its pieces come in their order, and do not overlap.
    void worked(std::size_t member, const Work& work) {
        assert(member < members_.size() && work.begin <= work.end);
        assert(work.lock != outside || work.weight == 0.0);
        assert(work.weight >= 0.0 && work.weight <= 1.0 && work.held >= 0.0 && work.held <= 1.0);
        Member& me = members_[member];
        for (std::size_t i = 0; i < members_.size(); ++i) {
            if (i == member) continue;
            for (auto span = members_[i].targets.rbegin(); span != members_[i].targets.rend(); ++span) {
                if (span->end <= work.begin) break;
                me.owed += due(*span, work);
            }
            if (work.weight == 0.0) continue;
            for (auto span = members_[i].present.rbegin(); span != members_[i].present.rend(); ++span) {
                if (span->end <= work.begin) break;
                members_[i].owed += due(work, *span);
            }
        }
        keep(me.present, {work.begin, work.end, work.lock});
        if (work.weight == 0.0) return;
        keep(me.targets, work);
        inserted_ += work.weight * static_cast<double>(work.end - work.begin);
    }

    // The member has paused for what it owes, or longer: then it has paid in advance.
    void paused(std::size_t member, const Work& pause) {
        members_[member].owed -= static_cast<double>(pause.end - pause.begin);
        worked(member, {pause.begin, pause.end, pause.lock});
    }

    // In nanoseconds: what the member is to pause, and what is to come off the time since clear().
    double owed(std::size_t member) const { return members_[member].owed; }
    double inserted() const { return inserted_; }

    // Members stay.
    void clear() {
        inserted_ = 0.0;
        for (auto& member : members_) member = {};
    }

private:
    static constexpr std::size_t kept = 1024;  // pieces of a member that something longer may still overlap

    struct Member {
        std::deque<Work> present, targets;
        double owed{0.0};
    };

    static double due(const Work& target, const Work& other) {
        const auto both = std::min(target.end, other.end) - std::max(target.begin, other.begin);
        if (both <= 0) return 0.0;
        return target.weight * share_of(target, other.lock) * static_cast<double>(both);
    }

    static double share_of(const Work& target, Lock other) {
        const double held = target.lock == locked ? target.held : 0.0;
        return other == free ? 1.0 : other == locked ? 1.0 - held : held;
    }

    // Pieces that follow one another are one.
    static void keep(std::deque<Work>& spans, const Work& work) {
        if (!spans.empty()) {
            Work& last = spans.back();
            assert(last.end <= work.begin);
            if (last.end == work.begin && last.lock == work.lock && last.weight == work.weight) {
                const auto before = static_cast<double>(last.end - last.begin);
                const auto more = static_cast<double>(work.end - work.begin);
                if (before + more > 0.0) last.held = (last.held * before + work.held * more) / (before + more);
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
