"""What results.json holds of what was paid: types of its keys, with what each number means; a part of results.py.

    results["cost"]["arms"]["ring"]         a bill
    results["efficiency"]["ring"]           rescues for it

Left out: every other key (results.py, which hands these on).
"""

from __future__ import annotations

from typing import TypedDict

Arm = str  # resample, solo, ring, star, your own
Pair = list[float | None]  # an interval, [lo, hi]; its ends are null together


class Bill(TypedDict):
    calls: int  # attempts that the server answered
    prompt_tokens: int  # tokens, where the server told them
    completion_tokens: int  # tokens, where the server told them
    tokens_unknown: int  # attempts whose tokens the server did not tell
    usd: float | None  # US dollars by --price; null without a price, or where a token count is unknown
    cpu_seconds: float  # seconds of CPU that grading took
    latency_seconds: float  # seconds between requests and replies, added up


class ArmBill(Bill):
    rescued: int  # tasks with a pass
    rescues_per_million_tokens: float | None  # tasks a million tokens; null where tokens are unknown or none


class EqualTokens(TypedDict):
    """On each task within the tokens of B fresh draws, B x the mean of its base group."""

    n: int  # tasks that the arm and the control both finished
    tokens: float  # tokens of that budget, mean over tasks
    rescued: int  # tasks on which the arm's passing reply ended within it
    rescued_resample: int  # tasks on which the control's did
    n_arm_only: int  # tasks of these that the arm alone rescued within it
    n_resample_only: int  # tasks of these that the control alone rescued within it
    delta: float | None  # fraction: the arm less the control
    interval: Pair  # fraction: Bonett and Price's, of delta; null under two tasks
    p: float | None  # of the exact McNemar test
    p_holm: float | None  # p adjusted over the arms


class Efficiency(TypedDict):
    n: int  # tasks given to the arms on which this one owes nothing
    per_million_tokens: float | None  # tasks rescued a million tokens; null where tokens are unknown or none
    interval: Pair  # tasks rescued a million tokens: tasks are its unit; null as per_million_tokens
    per_usd: float | None  # tasks rescued a US dollar, by --price; null without
    usd_interval: Pair  # tasks rescued a US dollar; null as per_usd
    equal_tokens: EqualTokens | None  # against the control at equal tokens; null for it, and where tokens are unknown


class Requests(TypedDict):
    sent: int  # requests
    answered: int  # requests
    retries: int  # requests that failed and were sent again
    refused: int  # requests that the server refused
    possibly_billed: int  # requests that failed or were cut off after the server may have charged for them
    faults: int  # requests given up


class Slots(TypedDict):
    busy: float  # fraction of the slots' time with a request under way
    retrying: float  # fraction: idle between the requests of a draw
    grader: float  # fraction: idle until the grader is done
    nothing_to_ask: float  # fraction: idle for want of something to ask


class Gradings(TypedDict):
    graded: int  # attempts whose program was run
    repeated: int  # attempts that took the verdict of an equal program


class Stages(TypedDict):
    base: Bill  # base groups
    arms: Bill  # arms, a shared round 0 counted once
    noise_runs: Bill  # re-runs of the control


class Cost(TypedDict):
    total: Bill  # all attempts
    stages: Stages  # they add up to the total
    arms: dict[Arm, ArmBill]  # all that an arm was given, a shared round 0 included
    price: tuple[float, float] | None  # US dollars a million tokens, in and out; null without --price
    requests: Requests | None  # of all processes; null where there is no events.jsonl
    slots: Slots | None  # the endpoint's slot-time; null where nothing was sampled
    gradings: Gradings | None  # of all processes; null where the events tell of none
    wall_seconds: float | None  # seconds of all processes that asked; null = unknown
