"""Options are checked when they are given."""

from pathlib import Path
from typing import Any

import pytest

from callboard.core.errors import ConfigError
from callboard.scheduling.elasticity.rates import Elasticity


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"period": 0}, "elasticity's period must be a number of seconds above 0"),
        ({"period": -1.0}, "elasticity's period must be a number of seconds above 0"),
        ({"period": float("nan")}, "elasticity's period must be a number of seconds above 0"),
        ({"ceiling": 80}, "expected a number from 0 to 1 as elasticity's ceiling, got 80"),
        ({"remember": 3}, "expected a path as elasticity's `remember`, got 3"),
    ],
)
def test_a_wrong_option_is_an_error(option: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        Elasticity(**option)


def test_a_file_that_is_something_else_is_an_error_when_the_strategy_is_made(
    tmp_path: Path,
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(ConfigError, match=r"notes\.txt"):
        Elasticity(remember=path).make(1, 4)
