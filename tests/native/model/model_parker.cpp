// The parker, on a modelled futex and a modelled eventfd.
#include "callboard/core/threads/parker.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

MODEL("writes before an unpark are seen after the park") {
    model::Kernel kernel;
    Parker parker;
    Plain<int> written{0};
    together([&] { written = 7, parker.unpark(); },
             [&] {
                 CHECK(parker.park());
                 CHECK(written == 7);
             });
}

MODEL("two unparks: after the last park that one caused, all is seen that they announced") {
    model::Kernel kernel;
    Parker parker;
    Atomic<int> first{0}, second{0};
    together([&] { first.store(1, relaxed), parker.unpark(); }, [&] { second.store(1, relaxed), parker.unpark(); },
             [&] {
                 while (first.load(relaxed) + second.load(relaxed) != 2) parker.park();
             });
}

MODEL("three unparks: after the last park that one caused, all is seen that they announced") {
    model::Kernel kernel;
    Parker parker;
    Atomic<int> announced[3];
    const auto announce = [&](int index) { announced[index].store(1, relaxed), parker.unpark(); };
    together([&] { announce(0); }, [&] { announce(1); }, [&] { announce(2); },
             [&] {
                 while (announced[0].load(relaxed) + announced[1].load(relaxed) + announced[2].load(relaxed) != 3)
                     parker.park();
             });
}

MODEL("an unpark for each of two parks") {
    model::Kernel kernel;
    Parker parker;
    Plain<int> written{0};
    Atomic<int> answered{0};
    together(
        [&] {
            written = 1, parker.unpark();
            model::await([&] { return answered.load(acquire) == 1; });
            written = 2, parker.unpark();
        },
        [&] {
            CHECK(parker.park());
            CHECK(written == 1);
            answered.store(1, release);
            CHECK(parker.park());
            CHECK(written == 2);
        });
}

MODEL("a park whose time is up leaves nothing behind, and no unpark is lost") {
    model::Kernel kernel;
    Parker parker;
    Plain<int> written{0};
    together([&] { written = 7, parker.unpark(); },
             [&] {
                 if (!parker.park(1000)) CHECK(parker.park());
                 CHECK(written == 7);
                 CHECK(!parker.park(1000));
             });
}

MODEL("an owner that polls descriptors is woken by its eventfd, or does not poll") {
    model::Kernel kernel;
    Parker parker;
    Plain<int> written{0};
    together([&] { written = 7, parker.unpark(); },
             [&] {
                 CHECK(parker.park_by(5, [&] { kernel.listen(); }));
                 CHECK(written == 7);
             });
}
