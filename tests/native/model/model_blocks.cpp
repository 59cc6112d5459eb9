// Blocks of shared memory, in a region of two pages: a page is written again only after all reads of it.
#include <memory>

#include "callboard/mailbox/shared/blocks.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

struct Region {
    static constexpr std::uint64_t pages = 2;

    Atomic<unsigned char> returned[pages] = {};
    Plain<int> values[pages];  // the bytes of the pages
    Atomic<std::uint64_t> sent[3] = {};
    RegionWriter writer{BlockRegion{returned, nullptr, pages}};
    std::shared_ptr<RegionReader> reader = std::make_shared<RegionReader>(BlockRegion{returned, nullptr, pages});

    void write(int number) {
        std::uint64_t first = RegionWriter::none;
        model::await([&] { return (first = writer.allocate(1)) != RegionWriter::none; });
        values[first] = number;
        sent[number].store(first + 1, release);  // pairs with read()
    }
    std::uint64_t await_place(int number) {
        std::uint64_t place = 0;
        model::await([&] { return (place = sent[number].load(acquire)) != 0; });  // pairs with write()
        return place - 1;
    }
};

}  // namespace

MODEL("a page is written again after it was read and returned") {
    Region region;
    together([&] { for (int i = 0; i < 3; ++i) region.write(i); },
             [&] {
                 for (int i = 0; i < 3; ++i) {
                     const std::uint64_t first = region.await_place(i);
                     const ReadBlock block(region.reader, first, 1);
                     CHECK(region.values[first] == i);
                 }
             });
}

MODEL("a block that ends in another thread than the reader's is returned after its reads there") {
    Region region;
    const auto read = [&](int number) {
        const std::uint64_t first = region.await_place(number);
        const ReadBlock block(region.reader, first, 1);
        CHECK(region.values[first] == number);
    };
    together([&] { for (int i = 0; i < 3; ++i) region.write(i); }, [&] { read(0), read(2); }, [&] { read(1); });
}
