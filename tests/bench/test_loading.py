"""All ways to load give the batches of a loop, in its order."""

from itertools import product

import pytest

pytestmark = pytest.mark.usefixtures("bench_modules")

pytest.importorskip("numpy")
pytest.importorskip("PIL")


@pytest.mark.parametrize(
    ("by", "workers"),
    [
        *product(["callboard", "one_by_one", "futures", "processes", "spdl", "torch"], [1, 2]),
        ("ray_data", 2),  # Ray takes 10 seconds to start
        ("ray_actors", 2),
    ],
)
def test_the_batches_are_those_of_a_loop(by: str, workers: int) -> None:
    import one

    if by == "spdl":
        pytest.importorskip("spdl.pipeline")
    if by == "torch":
        pytest.importorskip("torch.utils.data")
    if by.startswith("ray"):
        pytest.importorskip("ray")
    result = one.play("loading.playing", "none", 70, {"by": by, "workers": workers})
    assert len(result.want) == 3
    assert result.got == result.want


def test_batches_come_again_when_the_numbers_do() -> None:
    from loading.images import NUMBERS, TOGETHER, digest, samples
    from loading.playing import by_loop, expected

    some = samples(NUMBERS + TOGETHER + 3)
    with by_loop(some, 1) as batches:
        assert expected(some) == [digest(batch) for batch in batches]


def test_pictures_that_are_loaded_differ_by_their_numbers() -> None:
    from loading.images import SIDE, Sample, load, samples

    first = samples(1)[0]
    again, other = load(first), load(Sample(5, first.jpeg))
    assert again.shape == (3, SIDE, SIDE)
    assert (load(first) == again).all()
    assert (other != again).any()
