"""Reads traces by Perfetto's own schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

schema: Any = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

MONOTONIC, OF_SEQUENCE = 3, 64


class Slice(NamedTuple):
    track: str
    name: str
    category: str
    begin: int
    end: int
    depth: int
    amount: int
    """Messages of a dispatch, rows of an operator's slice."""


class Message(NamedTuple):
    """The moment in which a sampled message was sent, or taken; or that it is a dead letter."""

    track: str
    time: int
    text: str
    begins: list[int]
    ends: list[int]


@dataclass
class ReadTrace:
    process: str = ""
    slices: list[Slice] = field(default_factory=list)
    counters: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    instants: list[tuple[int, str]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def of(self, name: str) -> list[Slice]:
        return [one for one in self.slices if one.name == name]

    def in_category(self, category: str) -> list[Slice]:
        return [one for one in self.slices if one.category == category]

    def texts(self) -> list[str]:
        return [text for _, text in self.instants]


class Sequence:
    """What the packets of a sequence rely on."""

    def __init__(self) -> None:
        self.time = 0
        self.clock = 0
        self.track = 0
        self.names: dict[int, str] = {}
        self.categories: dict[int, str] = {}
        self.annotations: dict[int, str] = {}

    def time_of(self, packet: Any) -> int:
        if (packet.timestamp_clock_id or self.clock) == OF_SEQUENCE:
            self.time += packet.timestamp
            return self.time
        assert packet.timestamp_clock_id == MONOTONIC
        return int(packet.timestamp)


class Event(NamedTuple):
    time: int
    sequence: Sequence
    track: int
    event: Any


def read(path: Path) -> ReadTrace:
    """Read a trace as Perfetto does, and check that it is a right one."""
    trace = schema.Trace()
    trace.ParseFromString(path.read_bytes())
    assert trace.packet[0].clock_snapshot.primary_trace_clock == MONOTONIC
    tracks: dict[int, str] = {}
    found = ReadTrace()
    events = sorted(events_in(trace, tracks, found), key=lambda event: event.time)
    open_slices: dict[int, list[Event]] = defaultdict(list)
    for each in events:
        event, sequence = each.event, each.sequence
        if event.type == schema.TrackEvent.TYPE_SLICE_BEGIN:
            open_slices[each.track].append(each)
        elif event.type == schema.TrackEvent.TYPE_SLICE_END:
            begun = open_slices[each.track].pop()
            count = [one.uint_value for one in begun.event.debug_annotations]
            found.slices.append(
                Slice(
                    tracks[each.track],
                    sequence.names[begun.event.name_iid],
                    sequence.categories[begun.event.category_iids[0]],
                    begun.time,
                    each.time,
                    len(open_slices[each.track]),
                    count[0] if count else 0,
                )
            )
        elif event.type == schema.TrackEvent.TYPE_COUNTER:
            found.counters[tracks[each.track]].append((each.time, event.counter_value))
        else:
            assert event.type == schema.TrackEvent.TYPE_INSTANT
            if sequence.categories[event.category_iids[0]] == "message":
                found.messages.append(
                    Message(
                        tracks[each.track],
                        each.time,
                        event.name,
                        list(event.flow_ids),
                        list(event.terminating_flow_ids),
                    )
                )
                continue
            found.instants.append((each.time, event.name))
    assert not any(open_slices.values())
    return found


def events_in(trace: Any, tracks: dict[int, str], found: ReadTrace) -> Iterator[Event]:
    sequences: dict[int, Sequence] = {}
    for packet in trace.packet:
        number = packet.trusted_packet_sequence_id
        assert number
        if packet.sequence_flags & 1:
            sequences[number] = Sequence()
        sequence = sequences.get(number)
        assert sequence is not None or not packet.sequence_flags & 2
        if packet.HasField("track_descriptor"):
            add_track(packet.track_descriptor, tracks, found)
        if sequence is None:
            continue
        for clock in packet.clock_snapshot.clocks:
            if clock.clock_id == OF_SEQUENCE:
                assert clock.is_incremental
                sequence.time = clock.timestamp
        if packet.HasField("trace_packet_defaults"):
            sequence.clock = packet.trace_packet_defaults.timestamp_clock_id
            sequence.track = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for entries, into in (
            (packet.interned_data.event_names, sequence.names),
            (packet.interned_data.event_categories, sequence.categories),
            (packet.interned_data.debug_annotation_names, sequence.annotations),
        ):
            for entry in entries:
                assert entry.iid not in into
                into[entry.iid] = entry.name
        if packet.HasField("track_event"):
            track = packet.track_event.track_uuid or sequence.track
            assert track in tracks
            yield Event(sequence.time_of(packet), sequence, track, packet.track_event)


def add_track(track: Any, tracks: dict[int, str], found: ReadTrace) -> None:
    if track.HasField("process"):
        found.process = track.process.process_name
    name = track.thread.thread_name or track.name
    # Each worker that ran an actor describes its mailbox.
    assert tracks.get(track.uuid) in ((None, name) if track.HasField("counter") else (None,))
    tracks[track.uuid] = name
