"""What a policy tells of itself: the endpoint's, or the fake one of a dry run.

    Probe, State, Record

Needs nothing that asks, so that a set of tasks with a policy beside it can be read by who only tells.
Left out: the events that a Record is told of (asking/events.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from asking.events import Event

Record = Callable[[Event], object]


@dataclass(frozen=True)
class Probe:
    """What is known of the servers before anything is spent; config.json holds it under "server"."""

    model: str
    served: list[str]  # all models that the servers list
    server: str  # who made it, in its own words
    urls: list[str]  # in the form that is served, of the servers that answered
    facts: list[str]
    warnings: list[str]
    seconds: float | None = None  # until the one word of the slowest server was there; None: not measured


@dataclass
class State:
    """What a progress bar shows."""

    in_flight: int = 0
    waiting: int = 0  # between two tries, or at the gate
    retries: int = 0
    answered: int = 0
    last_error: str = ""
