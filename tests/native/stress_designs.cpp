// Streams that count while other threads query. Answers are consistent, and afterwards nothing is lost.
#include "designs.hpp"

#include "stress.hpp"

using namespace designs;
using callboard::Atomic;

namespace {

// How often each key was given to a summary, and how often it has certainly been counted.
class Handed {
public:
    explicit Handed(std::uint64_t alphabet) : before_(alphabet), after_(alphabet) {}

    void before(std::uint64_t number, std::uint64_t weight) {
        total_.fetch_add(weight, callboard::relaxed);
        before_[number].fetch_add(weight, callboard::relaxed);
    }
    // Release pairs with the acquire in counted(): who asks after that comes after the counting.
    void after(std::uint64_t number, std::uint64_t weight) { after_[number].fetch_add(weight, callboard::release); }

    std::uint64_t alphabet() const { return before_.size(); }
    std::uint64_t counted(std::uint64_t number) const { return after_[number].load(callboard::acquire); }
    // Of all that somebody could see counted: who counted it has said so before, in whatever order that is.
    std::uint64_t given(std::uint64_t number) const { return before_[number].load(callboard::relaxed); }
    std::uint64_t total() const { return total_.load(callboard::relaxed); }

private:
    Atomic<std::uint64_t> total_{0};
    std::vector<Atomic<std::uint64_t>> before_, after_;
};

template <class Sort, class Of>
void check_answer(const Of&, Summary<typename Sort::Keys>& summary, const Handed& handed,
                  bool is_current = Of::is_current) {
    std::vector<std::uint64_t> counted(handed.alphabet());
    for (std::uint64_t i = 0; i < counted.size(); ++i) counted[i] = handed.counted(i);
    const Answer<Sort> answer = summary.ask(all, 0);
    CHECK(answer.total <= handed.total());
    std::uint64_t sum = 0;
    const auto rows = by_key<Sort>(answer);
    for (auto& [key, row] : rows) {
        const std::uint64_t number = Sort::number_of(key);
        CHECK(number < counted.size() && key == Sort::key(number));
        CHECK(row.error <= row.count);
        CHECK(row.count - row.error <= handed.given(number));
        sum += row.count;
    }
    CHECK(Of::is_divided || sum <= answer.total);
    if (!is_current) return;
    for (std::uint64_t i = 0; i < counted.size(); ++i) {
        const auto row = rows.find(Sort::key(i));
        CHECK(counted[i] <= (row == rows.end() ? answer.unseen : row->second.count));
    }
}

template <class Sort, class Of>
void ask_and_check(const Of& design, Summary<typename Sort::Keys>& summary, const Handed& handed,
                   stress::Random& random) {
    const std::uint64_t number = random.below(static_cast<std::uint32_t>(handed.alphabet()));
    const std::uint64_t counted = handed.counted(number);
    const auto key = Sort::key(number);
    const auto estimate = summary.estimate(Sort::probe(key));
    CHECK(!Of::is_current || counted <= estimate.count);
    CHECK(estimate.count - estimate.error <= handed.given(number));
    const std::uint64_t bar = callboard::part_of(0.01, summary.total());
    const Answer<Sort> best = summary.ask(3, 0.01);
    CHECK(best.rows.size() <= 3);
    by_key<Sort>(best);
    for (auto& row : best.rows) CHECK(row.count > bar);
    const std::uint64_t total = summary.total();
    CHECK(total >= best.total && total <= handed.total());
    check_answer<Sort>(design, summary, handed);
}

// Four threads count, which is more than there are cores in small machines, and two ask as long as those are at it.
template <class Sort, class Of>
void count_and_ask(const Of& design, std::uint32_t capacity, std::uint64_t alphabet, int skew, std::uint64_t heaviest,
                   std::size_t length = 2000) {
    constexpr unsigned streams = 4;
    constexpr int askers = 2;
    constexpr std::size_t batch = 25;
    const auto summary = design.template make<typename Sort::Keys>(capacity, streams);
    std::vector<Stream<Sort>> sources;
    Exact<Sort> exact;
    for (unsigned i = 0; i < streams; ++i) sources.emplace_back(i + capacity, length, alphabet, skew, heaviest);
    for (auto& source : sources) source.tell(exact);
    Handed handed(alphabet);
    Atomic<unsigned> at_work{streams};
    stress::together(streams + askers, [&](int index) {
        const auto stream = static_cast<unsigned>(index);
        stress::Random random(stream);
        if (stream >= streams) {
            do ask_and_check<Sort>(design, *summary, handed, random);
            while (at_work.load(callboard::relaxed) != 0);
            return;
        }
        const Stream<Sort>& own = sources[stream];
        for (std::size_t at = 0; at < length; at += batch) {
            for (std::size_t i = at; i < at + batch; ++i) handed.before(Sort::number_of(own.keys[i]), own.weights[i]);
            own.add_to(*summary, stream, at, batch);
            for (std::size_t i = at; i < at + batch; ++i) handed.after(Sort::number_of(own.keys[i]), own.weights[i]);
            random.pause();
        }
        at_work.fetch_sub(1, callboard::relaxed);
    });
    hold_to_promises<Sort>(design, *summary, exact, capacity);
    check_answer<Sort>(design, *summary, handed, true);
}

}  // namespace

TEST("hot keys: many wait for the same counters") {
    each_design_with_streams([](auto design) { count_and_ask<Integers>(design, 30, 60, 6, 1); });
}

TEST("cold keys: nearly every element overwrites a counter") {
    each_design_with_streams([](auto design) { count_and_ask<Integers>(design, 40, 800, 0, 1); });
}

TEST("hardly a counter: all of the least are busy") {
    each_design_with_streams([](auto design) {
        for (const std::uint32_t capacity : {1u, 2u, 5u}) count_and_ask<Integers>(design, capacity, 20, 1, 1);
    });
}

TEST("weights: counters pass many others") {
    each_design_with_streams([](auto design) {
        count_and_ask<Integers>(design, 25, 50, 1, 40);
        count_and_ask<Integers>(design, 500, 300, 1, 1000);
    });
}

TEST("beginnings: everything is made just now") {
    each_design_with_streams([](auto design) {
        for (std::uint64_t i = 0; i < 30; ++i) count_and_ask<Integers>(design, 120, 100, 0, 3 + i, 100);
    });
}

TEST("bytes: nobody reads a key that another thread replaces") {
    each_design_with_streams([](auto design) {
        count_and_ask<Texts>(design, 20, 200, 1, 1);
        count_and_ask<Texts>(design, 4, 30, 3, 7);
    });
}

CHECK_MAIN
