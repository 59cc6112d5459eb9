"""The texts of type errors: the types that meet, and why a label is missing."""

from __future__ import annotations

from callboard.nets.terms.labels import Label, Variant, is_binding, text_of, text_of_type
from callboard.nets.terms.network import Net
from callboard.nets.types.flows import Route, Stuck, steps_from_the_end
from callboard.nets.types.places import Place, text_in_short

KINDS = {
    "Box": "box",
    "Choice": "choice",
    "Feedback": "feedback",
    "RecordFilter": "filter",
    "NamedNet": "net",
    "Split": "split",
    "Star": "star",
    "Sync": "cell",
}


class Messages:
    """Texts about the parts of one net, with their paths."""

    def __init__(self, root: Place) -> None:
        self._paths: dict[int, str] = {}
        waiting = [root]
        while waiting:
            place = waiting.pop()
            self._paths.setdefault(id(place.net), place.path)
            waiting += reversed(place.parts)

    def fault(self, net: Net, fault: str) -> str:
        """Report an error of one part."""
        return f"{self._name(net)}: {fault}"

    def misfit(self, start: Variant | None, stuck: Stuck) -> str:
        """Report why a record that begins as `start` is stuck. None: an initialiser produces it."""
        last = next(steps_from_the_end(stuck.route), None)
        if last is None:
            origin = f"{text_of(stuck.labels)} comes in"
        else:
            origin = f"{self._name(last.net)} produces {text_of(last.gives)}"
            if last.gives != stuck.labels:
                origin += f", which makes {text_of(stuck.labels)}"
        if not stuck.wanted:
            return f"{origin}, and {self._name(stuck.net)} is an initialiser: it takes no records"
        sentences = [f"{origin}, and {self._name(stuck.net)} takes {text_of_type(stuck.wanted)}"]
        if stuck.exits:
            sentences.append(f"It matches no exit of the star, {text_of_type(stuck.exits)}")
        nearest = min(stuck.wanted, key=lambda variant: len(variant - stuck.labels))
        if len(stuck.wanted) > 1:
            sentences.append(f"The nearest is {text_of(nearest)}")
        for label in _in_order(nearest - stuck.labels):
            sentences.append(f"{label} is missing: {self._reason(label, start, stuck.route)}")
        for label in _in_order(stuck.labels - nearest):
            if is_binding(label):
                sentences.append(f"{label} is a binding tag: only a variant that has it matches")
        return ". ".join(sentences)

    def undeclared(
        self, net: Net, start: Variant | None, given: Variant, route: Route, declared: str
    ) -> str:
        """Report that no output of a net, such as `given`, is in its signature."""
        made = f"for {text_of(start)}" if start is not None else "at the start"
        text = (
            f"{self._name(net)} produces {text_of(given)} {made}, and its signature has {declared}"
        )
        last = next(steps_from_the_end(route), None)
        return text if last is None else f"{text}. It comes from {self._name(last.net)}"

    def endless(self, net: Net, made: Variant, exits: str) -> str:
        """Report that no record leaves a star."""
        return (
            f"{self._name(net)} has no end: its body produces the labels {text_of(made)}, and none "
            f"of them is in an exit, {exits}. A record that goes in never leaves"
        )

    def starved(self, branch: Net, winner: Net, labels: Variant, *, is_certain: bool) -> str:
        """Report that a branch gets no records, except perhaps those with labels from outside."""
        but = "" if is_certain else " but those with labels from outside"
        return (
            f"{self._name(branch)} gets no records{but}: {text_of(labels)} matches "
            f"{self._name(winner)} as well, and the first in the text gets it. Put the other one "
            'first, let it take more labels, or write choice(..., ties="fair")'
        )

    def _reason(self, label: Label, start: Variant | None, route: Route) -> str:
        for step in steps_from_the_end(route):
            if label in step.takes and label not in step.gives:
                return f"{self._name(step.net)} takes it, and does not produce it"
        if start is None:
            return "nothing produces it"
        return f"nothing produces it, and the input {text_of(start)} does not have it"

    def _name(self, net: Net) -> str:
        text = text_in_short(net)
        path = self._paths.get(id(net), "")
        kind = KINDS.get(type(net).__name__, "net")
        known = path in ("", "/", f"/{text}")
        return f"the {kind} {text}" if known else f"the {kind} {text} (at {path})"


def _in_order(labels: Variant) -> list[Label]:
    return sorted(labels)
