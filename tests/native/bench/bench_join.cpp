// A lane of a join against the bare comparison, with the rows of the paper (paper_rows.hpp), in windows of 5, 10 and
// 15 minutes with a given number of rows of each side per second.
//
// The bare comparison is one flat array of each column, which each row walks through with the same two intervals, and
// nothing else: no blocks, no time, nothing stored. Every run of every candidate has the same rows, and checks
// that all find the same.
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench.hpp"
#include "callboard/streams/programs/joins/kernel/full_join.hpp"
#include "callboard/streams/programs/joins/kernel/indexed_join.hpp"
#include "paper_rows.hpp"

using namespace callboard;
using bench::Answer;
using bench::paper_predicate;
using bench::Rows;

namespace {

constexpr std::size_t batch_rows = 512, batches = 32;

// --- the bare comparison ---------------------------------------------------------------------------------------

using Bare = void (*)(const std::int32_t* x, const float* y, std::size_t rows, std::int32_t low_x, std::int32_t high_x,
                      float low_y, float high_y, std::uint64_t row, Answer& answer);

void bare_scalar(const std::int32_t* x, const float* y, std::size_t rows, std::int32_t low_x, std::int32_t high_x,
                 float low_y, float high_y, std::uint64_t row, Answer& answer) {
    for (std::size_t i = 0; i < rows; ++i)
        if ((x[i] >= low_x) & (x[i] <= high_x) & (y[i] >= low_y) & (y[i] <= high_y)) answer.add(row, i);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void bare_avx2(const std::int32_t* x, const float* y, std::size_t rows,
                                               std::int32_t low_x, std::int32_t high_x, float low_y, float high_y,
                                               std::uint64_t row, Answer& answer) {
    const __m256i below = _mm256_set1_epi32(low_x - 1), above = _mm256_set1_epi32(high_x + 1);
    const __m256 low = _mm256_set1_ps(low_y), high = _mm256_set1_ps(high_y);
    for (std::size_t i = 0; i < rows; i += 8) {
        const __m256i xs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
        const __m256 ys = _mm256_loadu_ps(y + i);
        const __m256i in_x = _mm256_and_si256(_mm256_cmpgt_epi32(xs, below), _mm256_cmpgt_epi32(above, xs));
        const __m256 in_y = _mm256_and_ps(_mm256_cmp_ps(ys, low, _CMP_GE_OQ), _mm256_cmp_ps(ys, high, _CMP_LE_OQ));
        auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_and_ps(_mm256_castsi256_ps(in_x), in_y)));
        for (; mask != 0; mask &= mask - 1) answer.add(row, i + static_cast<unsigned>(__builtin_ctz(mask)));
    }
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void bare_avx512(
    const std::int32_t* x, const float* y, std::size_t rows, std::int32_t low_x, std::int32_t high_x, float low_y,
    float high_y, std::uint64_t row, Answer& answer) {
    const __m512i lowest = _mm512_set1_epi32(low_x), highest = _mm512_set1_epi32(high_x);
    const __m512 low = _mm512_set1_ps(low_y), high = _mm512_set1_ps(high_y);
    for (std::size_t i = 0; i < rows; i += 16) {
        const __m512i xs = _mm512_loadu_si512(x + i);
        const __m512 ys = _mm512_loadu_ps(y + i);
        __mmask16 in = _mm512_cmpge_epi32_mask(xs, lowest);
        in = _mm512_mask_cmple_epi32_mask(in, xs, highest);
        in = _mm512_mask_cmp_ps_mask(in, ys, low, _CMP_GE_OQ);
        in = _mm512_mask_cmp_ps_mask(in, ys, high, _CMP_LE_OQ);
        for (unsigned mask = in; mask != 0; mask &= mask - 1)
            answer.add(row, i + static_cast<unsigned>(__builtin_ctz(mask)));
    }
}
#endif

struct Path {
    const char* name;
    VectorPath path;
    Bare bare;
};

std::vector<Path> paths() {
    std::vector<Path> all{{"scalar", VectorPath::scalar, bare_scalar}};
#if defined(__x86_64__)
    if (has_path(VectorPath::avx2)) all.push_back({"AVX2", VectorPath::avx2, bare_avx2});
    if (has_path(VectorPath::avx512)) all.push_back({"AVX-512", VectorPath::avx512, bare_avx512});
#endif
    return all;
}

double ns_since(std::int64_t begin, std::size_t rows) {
    return static_cast<double>(callboard::monotonic_ns() - begin) / static_cast<double>(rows);
}

// --- comparing everything ----------------------------------------------------------------------------------------

// One side's window is full; rows of the other side come, in batches. Returns ns for a row.
class Probing {
public:
    Probing(VectorPath path, const Rows& window, const Rows& probes, std::int64_t within)
        : join_({paper_predicate(), JoinRule::three_step, within, 1, 0}, path), probes_(probes) {
        join_.join(window.batch(0, window.sides.size()), matches_);
    }

    double run(std::size_t size) {
        const std::size_t begin = calls_++ % batches * batch_rows;
        if (begin == 0 && calls_ != 1) probes_.move_on(probes_.sides.size(), probes_.times.back() - probes_.times[0]);
        const std::int64_t start = callboard::monotonic_ns();
        for (std::size_t at = begin; at < begin + batch_rows; at += size) {
            join_.join(probes_.batch(at, size), matches_);
            for (const JoinMatch& match : matches_) answer.add(match.row + at, match.partner);
        }
        return ns_since(start, batch_rows);
    }

    Answer answer{};

private:
    FullJoin<std::int64_t> join_;
    Rows probes_;
    std::vector<JoinMatch> matches_;
    std::size_t calls_{0};
};

// The same by the bare comparison.
class BareProbing {
public:
    BareProbing(Bare bare, const Rows& window, const Rows& probes) : bare_(bare), window_(window), probes_(probes) {
        while (window_.x.size() % 16 != 0) {
            window_.x.push_back(-1000);
            window_.y.push_back(-1000);
        }
    }

    double run() {
        const std::size_t begin = calls_++ % batches * batch_rows;
        const std::int64_t start = callboard::monotonic_ns();
        const JoinTerm x = paper_predicate().terms[0], y = paper_predicate().terms[1];
        for (std::size_t row = begin; row < begin + batch_rows; ++row) {
            std::int32_t low_x = 0, high_x = 0;
            float low_y = 0, high_y = 0;
            bench::require(find_interval(x, probes_.x[row], low_x, high_x) &&
                               find_interval(y, probes_.y[row], low_y, high_y),
                           "an interval");
            bare_(window_.x.data(), window_.y.data(), window_.x.size(), low_x, high_x, low_y, high_y, row, answer);
        }
        return ns_since(start, batch_rows);
    }

    Answer answer{};

private:
    const Bare bare_;
    Rows window_;
    const Rows& probes_;
    std::size_t calls_{0};
};

// Both sides' windows are full, and rows of both come in turn. Returns ns for a row.
template <class Join>
class Streaming {
public:
    Streaming(std::size_t window_rows, std::int64_t per_second, int range = 10000)
        : join_({paper_predicate(), JoinRule::strict, static_cast<std::int64_t>(window_rows) * 1000 / per_second, 1,
                 0}),
          rows_(11, 2 * window_rows, 0, 0, per_second, -1, range),
          period_(static_cast<std::int64_t>(window_rows) * 1000 / per_second + 1) {
        for (std::size_t at = 0; at < rows_.sides.size(); at += batch_rows) step();
    }

    // So many rows, at least.
    double run(std::size_t rows = 64 * batch_rows) {
        const std::int64_t start = callboard::monotonic_ns();
        std::size_t done = 0;
        while (done < rows) done += step();
        return ns_since(start, done);
    }

    const Join& join() const { return join_; }

    std::uint64_t matches{0};

private:
    std::size_t step() {
        const std::size_t count = std::min(batch_rows, rows_.sides.size() - at_);
        join_.join(rows_.batch(at_, count), matches_);
        matches += matches_.size();
        at_ += count;
        if (at_ == rows_.sides.size()) {
            at_ = 0;
            rows_.move_on(rows_.sides.size(), period_);
        }
        return count;
    }

    Join join_;
    Rows rows_;
    const std::int64_t period_;
    std::vector<JoinMatch> matches_;
    std::size_t at_{0};
};

void compare_windows() {
    std::printf("Comparisons, in 10**9 a second, and rows a second; batches of %zu rows\n\n", batch_rows);
    bench::head("window", {"path", "bare, 10**9/s", "full join, 10**9/s", "full / bare", "full join, rows/s",
                           "index, rows/s", "index / full"});
    for (const auto& [seconds, per_second] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{300, 1000}, {600, 1000}, {900, 1000}, {300, 4500}}) {
        const auto window_rows = static_cast<std::size_t>(seconds * per_second);
        const Rows window(1, window_rows, 0, 0, per_second, 1);
        const Rows probes(2, batches * batch_rows, window_rows, seconds * 1000, per_second, 0);
        std::vector<std::unique_ptr<BareProbing>> bare;
        std::vector<std::unique_ptr<Probing>> full;
        Streaming<IndexedJoin<std::int64_t>> indexed(window_rows, per_second);
        std::vector<bench::Candidate> candidates;
        for (const Path& path : paths()) {
            bare.push_back(std::make_unique<BareProbing>(path.bare, window, probes));
            full.push_back(std::make_unique<Probing>(path.path, window, probes, seconds * 1000));
            candidates.push_back({"bare", [&one = *bare.back()] { return one.run(); }});
            candidates.push_back({"full", [&one = *full.back()] { return one.run(batch_rows); }});
        }
        candidates.push_back({"index", [&] { return indexed.run(); }});
        const auto samples = bench::rounds(9, candidates);
        for (std::size_t i = 0; i < full.size(); ++i) {
            bench::require(bare[i]->answer == bare[0]->answer, "a bare comparison");
            bench::require(full[i]->answer == bare[0]->answer && bare[0]->answer.matches != 0, "a join");
            const double bare_ns = samples[2 * i].median, full_ns = samples[2 * i + 1].median;
            const double rows = static_cast<double>(window_rows), index_ns = samples.back().median;
            std::printf("| %lld s of %lld/s | %s | %.2f | %.2f | %.2f | %.0f | %.0f | %.0f |\n",
                        static_cast<long long>(seconds), static_cast<long long>(per_second), paths()[i].name,
                        rows / bare_ns, rows / full_ns, bare_ns / full_ns, 1e9 / full_ns, 1e9 / index_ns,
                        full_ns / index_ns);
            std::fflush(stdout);
        }
    }
    bench::foot();
}

// How much of it is the batch: rows that meet a block while it is in the first cache.
void compare_batches() {
    std::printf("Comparisons, in 10**9 a second, by the rows of a batch; a window of 300,000 rows\n\n");
    bench::head("rows", {"best path, 10**9/s"});
    const Rows window(1, 300000, 0, 0, 1000, 1);
    const Rows probes(2, batches * batch_rows, 300000, 300000, 1000, 0);
    for (std::size_t size : {1u, 4u, 16u, 64u, 256u, 512u}) {
        Probing full(best_path(), window, probes, 300000);
        const auto samples = bench::rounds(5, {{"full", [&] { return full.run(size); }}});
        std::printf("| %zu | %.2f |\n", size, 300000 / samples[0].median);
    }
    bench::foot();
}

// From which size on the index is worth it, and how far down that goes where values crowd in few buckets.
void compare_choice() {
    std::printf("Which join: ns for a row, where both sides' windows are full\n\n");
    bench::head("rows of each side's window",
                {"values", "full join", "index", "rows that the index compares a row with"});
    for (int range : {10000, 200})
        for (std::size_t window_rows : {300u, 1000u, 3000u, 10000u, 30000u}) {
            Streaming<FullJoin<std::int64_t>> full(window_rows, 1000, range);
            Streaming<IndexedJoin<std::int64_t>> indexed(window_rows, 1000, range);
            const auto samples = bench::rounds(7, {{"full", [&] { return full.run(4 * batch_rows); }},
                                                   {"index", [&] { return indexed.run(4 * batch_rows); }}});
            bench::require(full.matches == indexed.matches && (full.matches != 0 || window_rows < 3000), "a join");
            std::printf("| %zu | 1 to %d | %.0f | %.0f | %.1f |\n", window_rows, range, samples[0].median,
                        samples[1].median,
                        static_cast<double>(indexed.join().compared()) / static_cast<double>(indexed.join().rows()));
            std::fflush(stdout);
        }
    bench::foot();
}

// --- the same keys -------------------------------------------------------------------------------------------------

void compare_keys() {
    std::printf("Rows with the same 64-bit key, of a million keys: rows a second by the index\n\n");
    bench::head("rows of each side's window", {"10**6 rows/s", "matches for a row"});
    for (std::size_t window_rows : {10000u, 100000u, 300000u, 1000000u}) {
        JoinPredicate predicate;
        predicate.add(JoinTerm::equal(NumberType::int64));
        IndexedJoin<std::int64_t> join({predicate, JoinRule::strict, static_cast<std::int64_t>(window_rows), 1, 0});
        std::uint64_t rows = 0, matches = 0, expected = 0;
        std::vector<std::uint8_t> sides(batch_rows);
        std::vector<std::int64_t> times(batch_rows), keys(batch_rows);
        std::vector<std::uint64_t> numbers(batch_rows);
        std::vector<JoinMatch> found;
        const auto key_of = [](std::uint64_t row) {
            return static_cast<std::int64_t>(mix(random_number(3, row) % 1000000));
        };
        const auto step = [&] {
            for (std::size_t i = 0; i < batch_rows; ++i, ++rows) {
                sides[i] = rows % 2;
                times[i] = static_cast<std::int64_t>(rows / 2);
                numbers[i] = rows;
                keys[i] = key_of(rows);
            }
            JoinBatch<std::int64_t> batch;
            batch.rows = batch_rows;
            batch.sides = sides.data();
            batch.times = times.data();
            batch.numbers = numbers.data();
            batch.values[0] = keys.data();
            const std::int64_t start = callboard::monotonic_ns();
            join.join(batch, found);
            const std::int64_t took = callboard::monotonic_ns() - start;
            matches += found.size();
            for (const JoinMatch& match : found) expected += key_of(match.partner) == keys[match.row];
            return took;
        };
        while (rows < 2 * window_rows) step();
        matches = expected = 0;
        const std::uint64_t before = rows;
        const auto samples = bench::rounds(9, {{"index", [&] {
                                                    std::int64_t took = 0;
                                                    for (int i = 0; i < 400; ++i) took += step();
                                                    return static_cast<double>(took) / (400 * batch_rows);
                                                }}});
        bench::require(matches == expected, "a pair of keys");
        const double each = static_cast<double>(matches) / static_cast<double>(rows - before);
        const double due = static_cast<double>(window_rows) / 1e6;
        bench::require(each > 0.9 * due && each < 1.1 * due, "how many keys match");
        std::printf("| %zu | %.2f | %.2f |\n", window_rows, 1e3 / samples[0].median, each);
        std::fflush(stdout);
    }
    bench::foot();
}

}  // namespace

// All tables, or the one whose name is given: windows, batches, choice, keys.
int main(int count, char** words) {
    bench::pin(0);
    const std::string wanted = count > 1 ? words[1] : "";
    const std::pair<const char*, void (*)()> tables[] = {
        {"windows", compare_windows}, {"batches", compare_batches}, {"choice", compare_choice}, {"keys", compare_keys}};
    for (const auto& [name, compare] : tables)
        if (wanted.empty() || wanted == name) compare();
}
