// (a stand-in until the structures land) 
#pragma once
#include <mutex>
#include <deque>
#include <vector>
#include <memory>
#include "callboard/core/atomics.hpp"
namespace callboard {
template <class T>
class HybridQueue {
public:
    HybridQueue(std::size_t partitions, std::size_t) : queues_(partitions), count_(partitions) {}
    void add(std::uint32_t partition, T value) {
        { std::lock_guard<std::mutex> lock(mutex_);
        queues_[partition].push_back(std::move(value));
        master_.push_back(partition); }
        waiting_.fetch_add(1, seq_cst);
    }
    template <class Visit> bool consume_one(Visit visit) {
        std::uint32_t p;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (master_.empty()) return false;
            p = master_.front(); master_.pop_front();
            waiting_.fetch_sub(1, seq_cst);
            if (count_[p]++ != 0) return true;
        }
        for (;;) {
            T value;
            { std::lock_guard<std::mutex> lock(mutex_); value = queues_[p].front(); queues_[p].pop_front(); }
            visit(p, value);
            std::lock_guard<std::mutex> lock(mutex_);
            if (--count_[p] == 0) return true;
        }
    }
    std::int64_t waiting() const { return waiting_.load(seq_cst); }
private:
    std::mutex mutex_;
    std::vector<std::deque<T>> queues_;
    std::vector<int> count_;
    std::deque<std::uint32_t> master_;
    Atomic<std::int64_t> waiting_{0};
};
}
