"""Seeing a system at work: its figures, why its actors wait, and traces of what they did."""

from callboard.observing.thresholds import MailboxEvent, MailboxWatch
from callboard.observing.tracing.talk_picture import TalkEdge, TalkPicture
from callboard.observing.wait import Wait, Waits
from callboard.scheduling.tracing.flight_recorder import FlightRecorder
from callboard.scheduling.tracing.recording import TraceFile

__all__ = [
    "FlightRecorder",
    "MailboxEvent",
    "MailboxWatch",
    "TalkEdge",
    "TalkPicture",
    "TraceFile",
    "Wait",
    "Waits",
]
