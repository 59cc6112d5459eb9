"""Inspection of a running system: its statistics, why its actors wait, and traces of their work."""

from callboard.observing.thresholds import MailboxEvent, MailboxWatch, watch_mailboxes
from callboard.observing.tracing.message_graph import MessageEdge, MessageGraph, message_graph
from callboard.observing.tracing.record import dump_trace, record_trace
from callboard.observing.wait_report import WaitRecord, WaitReport
from callboard.scheduling.tracing.flight_recorder import FlightRecorder
from callboard.scheduling.tracing.recording import TraceFile

__all__ = [
    "FlightRecorder",
    "MailboxEvent",
    "MailboxWatch",
    "MessageEdge",
    "MessageGraph",
    "TraceFile",
    "WaitRecord",
    "WaitReport",
    "dump_trace",
    "message_graph",
    "record_trace",
    "watch_mailboxes",
]
