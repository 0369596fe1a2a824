"""An event: a line of events.jsonl, from which costs, slots and what may have been billed for nothing are counted.

    sent        a request begins: request (counted from 1 in each start), seed, tries
    answered    it brought a reply: the same, tokens, latency_seconds
    retry       it brought none, and is sent again: the same, status, error, possibly_billed, wait_seconds
    refused     the server finds the prompt too long: the same, status, error
    fault       it is given up, or ends the run: the same, status, error, possibly_billed, kind (of EndpointFault)
    declined    one prompt was refused try after try, for other reasons: prompt_sha, error. It stays owed, and is
                final where an earlier start had found the same (told_apart)
    probe       a server answered before the first draw: url, tokens
    waiting     one does not yet: url, error, wait_seconds
    warned      what a user should know at once: url, error. A server that is asked no more, a context that is too short
    start, end  of a command: code and seconds at the end
    slots       how full the slots were since the last such line: slots, and slot-seconds by what they were spent on
    grader      since the last one: graded (programs that ran) and repeated (equal ones that took an earlier verdict)
    regraded    name, programs
    written     config.json or plan.json was: name, content

Left out: what was asked and answered; that stands in the attempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, Required, TypedDict

Name = Literal["sent", "answered", "retry", "refused", "fault", "declined", "probe", "waiting", "warned", "start",
               "end", "slots", "grader", "regraded", "written"]  # fmt: skip


class Tokens(TypedDict, total=False):
    """None where the server did not count them."""

    prompt_tokens: int | None
    completion_tokens: int | None


class Event(Tokens, total=False):
    """One line; which fields it has follows from its name. `time` is added as it is written."""

    event: Required[Name]
    time: float  # seconds since 1970
    request: int
    seed: int
    tries: int  # of this request, from 1
    status: int | None  # of HTTP, where there was an answer
    error: str
    possibly_billed: bool
    wait_seconds: float
    latency_seconds: float  # of the try that was answered
    url: str
    prompt_sha: str
    kind: str
    code: int
    seconds: float
    slots: int
    busy_slot_seconds: float
    retrying_slot_seconds: float
    grading_slot_seconds: float
    work_slot_seconds: float
    name: str
    programs: int
    content: dict[str, object]
    graded: int
    repeated: int


FEW = 3  # prompts: so few may be refused with nothing left to answer after them, and be no outage
OFTEN = 3  # starts: what so many refused, each after its probe was answered, is no outage either


def told_apart(events: Iterable[Event]) -> set[str]:
    """The prompts, as their sha, of which it was the prompt that was refused, and no account or server that answers
    nobody: in a start which had another one answered afterwards, or with no more than FEW refused at all, or OFTEN."""
    found, refused = set[str](), set[str]()
    starts = Counter[str]()  # in which a prompt was refused
    for event in events:
        if event["event"] == "declined":
            starts[event["prompt_sha"]] += event["prompt_sha"] not in refused
            refused.add(event["prompt_sha"])
        elif event["event"] == "answered":
            found |= refused
        elif event["event"] == "start":
            refused.clear()
    return set(starts) if len(starts) <= FEW else found | {sha for sha, times in starts.items() if times >= OFTEN}
