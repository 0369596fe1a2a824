"""What can end a command before its end. Each is one line that ends with what to do, and has an exit code.

    Fault
      BadInput         2    a flag that cannot be used
        TaskError      2    a task set, a file of tasks, a row
        RecordsError   2    the run folder does not fit what is asked of it
      LimitReached     3    --stop-after; everything is saved, and something is left to ask
      EndpointFault    4    the server, or what it says of the key, the model, the quota
      GraderFault      5    the machinery that grades: no process, no memory, no walls
      DiskFault        5    a line could not be written

A fault is never a grade: whatever raises one leaves the attempt owed. Beside it a command ends with DONE or, at Ctrl-C,
with INTERRUPTED. Left out: what one room alone raises and catches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

DONE, BAD_INPUT, LIMIT, ENDPOINT, GRADER, INTERRUPTED = 0, 2, 3, 4, 5, 130  # exit codes


class Fault(Exception):
    """Ends a command. Its text is one line that ends with what to do."""

    code: ClassVar[int]


class BadInput(Fault):
    """A flag whose value cannot be used."""

    code = BAD_INPUT


class TaskError(BadInput):
    """A task set, file or row that cannot be used."""


class RecordsError(BadInput):
    """The folder does not fit what is asked of it."""


class LimitReached(Fault):
    """--stop-after: everything is saved, and something is left to ask. name, most: the limit."""

    code = LIMIT

    def __init__(self, name: str, most: float) -> None:
        super().__init__(f"--stop-after {name}={most:.15g} is reached; everything is saved")
        self.name, self.most = name, most

    def __reduce__(self) -> tuple[type[LimitReached], tuple[str, float]]:
        return type(self), (self.name, self.most)  # as it travels to another process


class EndpointFault(Fault):
    """The endpoint failed.

    kind: unreachable | key | model | fields | quota | gave_up end a run. Two concern one prompt only, whose attempt
    stays owed: `attempt`, the server fails on it again and again while it answers others; `refused`, it will not answer
    it. What is refused at a second start as well is filed as an attempt of that outcome.
    """

    code = ENDPOINT

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind

    def __reduce__(self) -> tuple[type[EndpointFault], tuple[str, str]]:
        return type(self), (self.kind, str(self))


class GraderFault(Fault):
    """The machinery failed, and no program is to blame. The run stops; nothing is recorded."""

    code = GRADER


class DiskFault(Fault):
    """A line could not be written. What stood before is whole."""

    code = GRADER


def gravest(several: Iterable[BaseException]) -> BaseException:
    """Of several ends the one to tell: a limit and a dead endpoint hide no other fault, nor a limit the endpoint's."""
    return max(several, key=lambda why: (not isinstance(why, LimitReached), not isinstance(why, EndpointFault)))
