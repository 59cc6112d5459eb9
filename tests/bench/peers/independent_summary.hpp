// A summary for each stream; a query merges them: Das et al. 2009, section 3.1.
//
// Streams share nothing, and each has `capacity` counters. With fewer it would miss keys that are frequent in all
// streams together (lemma 3.1). A query copies every stream's counters and merges the copies (merge.hpp), so it
// costs more, the more streams there are.
//
// A stream has a lock of its own, which only queries want, too. It releases the lock after each batch. It would have
// the lock again before a query that slept is awake. So it looks first whether there is a query, and lets it in.
//
// An answer has each stream as it was at one moment. It includes all that was counted before the query began.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/frequency/counting/counters.hpp"
#include "callboard/frequency/designs/summary.hpp"
#include "merged_answers.hpp"
#include "sleeping_lock.hpp"

namespace callboard {

template <class Keys>
class Independent final : public Summary<Keys> {
public:
    using typename Summary<Keys>::Probe;
    using typename Summary<Keys>::Row;
    using typename Summary<Keys>::Answer;
    using typename Summary<Keys>::Estimate;

    Independent(std::uint32_t capacity, std::uint64_t seed, unsigned streams) : capacity_(capacity), seed_(seed) {
        for (unsigned i = 0; i < streams; ++i) streams_.push_back(std::make_unique<Stream>(capacity, seed));
    }

    void add(unsigned stream, const Probe* keys, const std::uint64_t* weights, std::size_t count) override {
        constexpr std::size_t batch = 512;  // about ten microseconds
        Stream& own = *streams_[stream];
        for (std::size_t done = 0; done < count; done += batch) {
            const std::size_t end = std::min(done + batch, count);
            if (own.asking.load(relaxed) != 0) {
                own.gate.lock();
                own.gate.unlock();
            }
            const std::lock_guard<Lock> guard(own.lock);
            if (weights == nullptr) own.counters.add_array(keys + done, end - done);
            else for (std::size_t i = done; i < end; ++i) own.counters.add(keys[i], weights[i]);
        }
    }

    Answer ask(std::size_t most, double support) override {
        Answer answer = merged();
        const std::uint64_t bar = part_of(support, answer.total);
        auto& rows = answer.rows;
        const auto is_low = [&](const Row& row) { return row.count <= bar; };
        rows.erase(std::remove_if(rows.begin(), rows.end(), is_low), rows.end());
        keep_greatest(rows, most);
        return answer;
    }

    // At least as exact as the key's row in an answer, for nothing is dropped on the way.
    Estimate estimate(const Probe& key) override {
        Estimate sum{0, 0, false};
        const std::uint64_t hash = Keys::hash(seed_, key);
        for (auto& stream : streams_) {
            visit(*stream, [&](Counters<Keys>& counters) {
                const std::uint32_t slot = counters.find(key, hash);
                const bool has_counter = slot != SlotIndex::none;
                sum.count += has_counter ? counters.count_of(slot) : counters.unseen();
                sum.error += has_counter ? counters.error_of(slot) : counters.unseen();
                sum.has_counter |= has_counter;
            });
        }
        return sum;
    }

    std::uint64_t total() override {
        std::uint64_t total = 0;
        for (auto& stream : streams_) visit(*stream, [&](Counters<Keys>& counters) { total += counters.total(); });
        return total;
    }

    // The counters of a merged answer.
    std::uint32_t size() override {
        bool is_full = false;
        for (auto& stream : streams_)
            visit(*stream, [&](Counters<Keys>& counters) { is_full |= counters.size() == capacity_; });
        return is_full ? capacity_ : static_cast<std::uint32_t>(merged().rows.size());
    }

    // Into the first stream.
    void load(const Answer& state) override {
        Counters<Keys>& counters = streams_.front()->counters;
        for (const Row& row : state.rows) {
            const Probe key = Keys::probe_of(row.key);
            counters.put(key, counters.hash(key), row.count, row.error);
        }
        counters.set_total(state.total);
        counters.set_unseen(state.unseen);
    }

private:
    using Lock = SleepingLock<16>;
    struct alignas(cache_line) Stream {
        Stream(std::uint32_t capacity, std::uint64_t seed) : counters(capacity, seed) {}
        Lock lock;
        Counters<Keys> counters;
        alignas(cache_line) Atomic<int> asking{0};  // a hint: a count goes on a batch too early, or waits in vain
        Lock gate;
    };

    template <class Visit>
    static void visit(Stream& stream, const Visit& visit) {
        stream.asking.fetch_add(1, relaxed);
        std::unique_lock<Lock> gate(stream.gate);
        const std::lock_guard<Lock> guard(stream.lock);
        gate.unlock();
        stream.asking.fetch_sub(1, relaxed);
        visit(stream.counters);
    }

    Answer merged() {
        std::vector<Answer> answers(streams_.size());
        for (std::size_t i = 0; i < answers.size(); ++i) {
            visit(*streams_[i], [&](Counters<Keys>& counters) {
                auto& [rows, total, unseen] = answers[i];
                rows.reserve(counters.size());
                for (std::uint32_t slot = 0; slot < counters.size(); ++slot) {
                    auto key = Keys::copy(counters.key_of(slot));
                    rows.push_back({std::move(key), counters.count_of(slot), counters.error_of(slot)});
                }
                total = counters.total();
                unseen = counters.unseen();
            });
        }
        return merge_all<Keys>(std::move(answers), capacity_, seed_);
    }

    const std::uint32_t capacity_;
    const std::uint64_t seed_;
    std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace callboard
