from collections.abc import Callable

from callboard.streams.programs.rows.answers import Answers

class UnorderedAnswers(Answers):
    add_round: Callable[[], None] | None
