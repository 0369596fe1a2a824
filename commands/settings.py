"""The settings of a run, in their three classes: the flags, their help, their defaults and the types of config.json.

    Identity   what an attempt is: another value needs another folder
    Plan       which attempts are made, and what is concluded from them; may grow in a folder
    Free       how fast, and how far
    Config     config.json
    Settings   identity and plan together, as config.json holds them: what figures and reports go by

A field is a flag (`base_samples` is --base-samples): commands/flags.py makes the parser of them, so a setting stands
here and nowhere else. What a value must be, its reader says with a ValueError.

Left out: flags of one command (its own dataclass), the parser (commands/flags.py), config.json itself (records.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NotRequired, Self, TypedDict

from arms.hint import APART
from swarm import ARMS, PLAIN, Style

Row = dict[str, Any]  # an object of a JSON file, where its fields have no type of their own
GRADED_HERE, AS_GIVEN = "graded here", "taken as given"  # what became of --rollouts
CONTROL = "resample"  # the arm that every other one is compared with


# ── readers: the text after a flag -> its value; ValueError says what is wrong with it ───────────────────────────────


def count(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isascii() or not text.lstrip("-").isdigit() or int(text) < least:
            raise ValueError(f"{text!r} is not a whole number from {least} up")
        return int(text)

    return whole


def number(least: float, most: float = float("inf")) -> Callable[[str], float]:
    def real(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not (least <= value <= most and value < float("inf")):
            upper = "up" if most == float("inf") else f"to {most:g}"
            raise ValueError(f"{text!r} is not a number from {least:g} {upper}")
        return value

    return real


def names(text: str) -> list[str]:
    """Words between commas, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def arms(text: str) -> list[str]:
    """Their names; one of a file as FILE.py:NAME, which arms/known.py reads."""
    for name in map(str.strip, text.split(",")):
        if ":" not in name and name not in ARMS and name not in APART:
            there = ", ".join([*ARMS, *APART])
            raise ValueError(f"there is no arm {name!r}; there are {there}, and those of a file: FILE.py:NAME")
    return names(text)


def margin(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 100:
        raise ValueError(f"{text!r} is no margin: give points above 0 and under 100")
    return value


def json_object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"{text!r} is not a JSON object")
    if name := secret_in(value):
        raise ValueError(f"{name!r:.60} looks like a credential, and this is written into config.json, reports and "
                         "exports: give a key by OPENAI_API_KEY")  # fmt: skip
    return value


SECRET_NAMES = re.compile(
    r"(?i)(api|access|secret|private|subscription)[-_ ]?key|authorization|bearer|passw(or)?d|credential|secret$"
    r"|(^|[-_])(api|access|auth|refresh|session|hf|id|bearer)[-_]?token$|^token$"
)
SECRET_VALUES = re.compile(
    r"(?<![\w-])sk-[\w-]{6,}|(?i:\b(bearer|basic)\s+[\w.~+/=-]{6,})|\bhf_\w{16,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}"
    r"|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bxox[abprs]-[\w-]{8,}|\beyJ[\w-]{8,}\.[\w-]{8,}\."
    r"|(?i:\b(api[-_]?key|token|secret|password)=[\w.~+/-]{6,})|://[^/\s:@]+:[^/\s@]+@"
)


def secret_in(value: object, name: str = "") -> str:
    """The name, in a JSON object, of what looks like a key, a token or a password; empty where nothing does."""
    if isinstance(value, dict):
        return next((found for key, part in value.items() if (found := secret_in(part, str(key)))), "")
    if isinstance(value, list):
        return next((found for part in value if (found := secret_in(part, name))), "")
    if not isinstance(value, str) or not value:  # a field that is no text is none: return_token_ids, "token": {schema}
        return ""
    return (name or "(no name)") if SECRET_NAMES.search(name) or SECRET_VALUES.search(value) else ""


def limits(text: str) -> dict[str, float]:
    found = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in ("calls", "tokens", "minutes", "usd"):
            raise ValueError(f"{part!r} is none of calls=N, tokens=N, minutes=M, usd=U")
        found[name] = number(0)(value)
    return found


def price(text: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) != 2:
        raise ValueError(f"{text!r} is not IN,OUT (usd a million tokens)")
    return number(0)(parts[0]), number(0)(parts[1])


def shard(text: str) -> tuple[int, int]:
    try:
        which, of = map(count(1), text.split("/"))
    except ValueError:
        which, of = 1, 0
    if which > of:
        raise ValueError(f"{text!r} is no shard: give I/N, with I from 1 to N")
    return which, of


# ── the classes ──────────────────────────────────────────────────────────────────────────────────────────────────────


def setting(default: object, help: str, read: Callable[[str], object] = str, **how: object) -> Any:
    """A field that is a flag. False: a switch. how: what else argparse is told (choices, metavar, action)."""
    told = {"help": help, "type": read, **how}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=told)
    return field(default=default, metadata=told)


@dataclass(kw_only=True)
class Asked:
    """Of the identity, what every command sends with a request."""

    model: str | None = setting(None, "name of the model (default: the one the server serves)")
    temperature: float = setting(1.0, "(default: 1)", number(0))
    top_p: float = setting(1.0, "always sent (default: 1)", number(0, 1))
    max_tokens: int = setting(2048, "tokens a reply (default: 2048)", count(1))
    thinking: Literal["off", "on", "server"] = setting(
        "off",
        "whether the model is told to think; server: nothing is said (default: off)",
        choices=("off", "on", "server"),
    )
    extra_body: dict[str, object] | None = setting(None, "sent with every request", json_object, metavar="JSON")


@dataclass(kw_only=True)
class TaskSet:
    """which tasks"""

    tasks: str = setting("code_contests", "toy, code_contests, mbpp-bundle, or your own .jsonl or .parquet (default: "
                         "code_contests)", metavar="NAME|FILE")  # fmt: skip
    revision: str | None = setting(None, "of the data set on the hub (default: the pinned one)")
    splits: list[str] | None = setting(None, "of the data set, such as train (default: of code_contests test,valid; "
                                       "of MBPP all)", names, metavar="LIST")  # fmt: skip
    bundle: int = setting(5, "functions a task of mbpp-bundle (default: 5)", count(1))


@dataclass(kw_only=True)
class Identity(TaskSet, Asked):
    """what an attempt is: another value needs another folder"""

    no_comments: bool = setting(False, "one more line in every prompt asks for that")
    system: str | None = setting(None, "its text replaces the system prompt (empty: none)", metavar="FILE")
    particles: int = setting(8, "attempts a round of an arm (default: 8)", count(1))
    share_round0: bool = setting(False, "ask round 0 once for all arms")
    seed: int = setting(0, "of the draws: requests and ties (default: 0)", count(0))
    task_seed: int | None = setting(None, "of the order of tasks, and of bundles (default: 0; as published: --seed)",
                                    count(0))  # fmt: skip
    rollouts: str | None = setting(None, "a base group that is there already: rows of task_id and reply, or of "
                                   "task_id, n and passes; a trainer's dump; a folder", metavar="FILE")  # fmt: skip
    as_published: bool = setting(False, "take back the departures that change numbers")

    @property
    def style(self) -> Style:
        """What every prompt has in common."""
        return Style(PLAIN.system if self.system is None else self.system, self.no_comments)


@dataclass(kw_only=True)
class Plan:
    """which attempts are made, and what is concluded; may grow in a folder"""

    limit: int | None = setting(None, "tasks, the first of the seeded order (default: all)", count(1))
    base_samples: int = setting(8, "attempts of the base group (default: 8)", count(1))
    band: str = setting("all", "of the all-fail tasks; near-miss: some base attempt passed a visible test (default: "
                        "all)", choices=("all", "near-miss"))  # fmt: skip
    arms: list[str] = setting(list(ARMS), f"of {', '.join([*ARMS, *APART])}, FILE.py:NAME (default: {','.join(ARMS)})",
                              arms, metavar="LIST")  # fmt: skip
    rounds: int = setting(3, "rounds of an arm (default: 3)", count(1))
    noise_runs: int = setting(0, "re-runs of resample (default: 0)", count(0))
    full_budget: bool | None = setting(None, "go on after a rescue (default: only for mbpp-bundle)", yes_no=True)
    only_passable: bool = setting(False, "give the arms only tasks that the audit (audit.py) found passable")
    seeds: int | None = setting(None, "runs, of --seed 0 to N - 1 (or N to 2N - 1, ...), that report.py draws one "
                                "verdict from (default: this one alone)", count(1))  # fmt: skip
    margin: float | None = setting(None, "of equivalence (default: 5; 1 per sample)", margin, metavar="POINTS")
    predict: dict[str, float] | None = setting(None, "differences from resample that you expect, written into the plan",
                                               metavar="FILE|ARM=POINTS,...")  # fmt: skip

    @property
    def others(self) -> list[str]:
        """The arms beside the control."""
        return [arm for arm in self.arms if arm != CONTROL]

    @property
    def compared(self) -> list[str]:
        """The arms that are compared with the control: the family of tests."""
        return self.others if CONTROL in self.arms else []


@dataclass(kw_only=True)
class Free:
    """how fast, and how far"""

    base_url: list[str] | None = setting(None, "OpenAI-compatible; repeatable (default: OPENAI_BASE_URL)",
                                         metavar="URL", action="append")  # fmt: skip
    concurrency: int = setting(64, "requests in flight (default: 64)", count(1))
    workers: int | None = setting(None, "grader processes (default: one a core)", count(1))
    request_timeout: float = setting(600.0, "a request (default: 600)", number(0.001), metavar="SECONDS")
    give_up_after: float = setting(10.0, "stop when nothing has succeeded for so long (default: 10)", number(0.001),
                                   metavar="MINUTES")  # fmt: skip
    stop_after: dict[str, float] = setting({}, "calls=N,tokens=N,minutes=M,usd=U: stop there, saved; all but minutes "
                                           "hold across restarts", limits, metavar="LIMITS")  # fmt: skip
    price: tuple[float, float] | None = setting(None, "usd a million tokens", price, metavar="IN,OUT")


def on_nodes(what: str) -> str | None:
    """--ray of a command that can do this there."""
    where = "on the nodes of a Ray cluster: auto, or where its head is (--workers is a node's then)"
    return setting(None, f"{what} {where}", metavar="ADDRESS")


@dataclass(kw_only=True)
class Spread(Free):
    """how fast, and how far"""

    shard: tuple[int, int] | None = setting(None, "ask every N-th task, from the I-th on, in a folder of its own; "
                                            "report.py --merge puts the folders together", shard,
                                            metavar="I/N")  # fmt: skip
    ray: str | None = on_nodes("play whole tasks")


@dataclass(kw_only=True)
class Asking(Asked, Free):
    """What a command that asks an endpoint goes by."""


def task_order(identity: Mapping[str, Any]) -> int:
    """The seed by which a run's tasks are ordered: none is --seed, as published and before there was another one."""
    own = identity.get("task_seed")
    return int(identity["seed"] if own is None else own)


def task_seed(given: int | None, seed: int, old: Config | None, as_published: bool = False) -> int | None:
    """--task-seed of a run: 0 where it is not given; none, see task_order, as published and where the folder was begun
    without one, so that its tasks stay those it has."""
    none = as_published or (old is not None and old["identity"].get("task_seed") is None)
    if none and given in (None, seed):
        return None
    return given or 0


def flag(name: str) -> str:
    """A setting as the command line names it."""
    return "--" + name.replace("_", "-")


def ordered(kind: type) -> list[str]:
    """The settings of a class: its own before what it inherits."""
    inherited = {each.name for base in kind.__bases__ if base is not object for each in fields(base)}
    return sorted((each.name for each in fields(kind)), key=inherited.__contains__)


def values_of(args: object, kind: type) -> Row:
    """The settings of one class, as config.json holds them."""
    return {name: getattr(args, name) for name in ordered(kind)}


def said(key: str, was: object, now: object) -> str:
    """A change of a plan setting: --limit all -> 20."""

    def one(value: object) -> str:
        if value is None:
            return "all" if key == "limit" else "none"
        if isinstance(value, dict):
            value = [f"{name}={number:g}" for name, number in value.items()]
        return ",".join(value) if isinstance(value, list) else str(value)

    return f"{flag(key)} {one(was)} -> {one(now)}"


def shrinks(key: str, was: Any, now: Any) -> bool:
    """Whether a plan setting leaves out something that it held before."""
    if key == "arms":
        return not set(was) <= set(now)
    if key in ("band", "only_passable"):
        return was in ("all", False)
    if key == "limit":  # None is every task
        return now is not None and (was is None or now < was)
    return key not in ("margin", "predict") and bool(now < was)


# ── config.json ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Data(TypedDict):
    """What is known of the task set, see tasksets.task.About, and what of it is asked."""

    source: str
    revision: str | None
    licence: str | None
    tasks: int  # in the set
    asked: int  # tasks of the plan
    left_out: dict[str, int]  # tasks by reason
    overlap: dict[str, int]  # hidden tests dropped since their input is visible, and the tasks they were of
    repaired_statements: int
    median_rating: float | None
    prompt_characters: int  # of all bare prompts together
    audit: NotRequired[dict[str, int] | None]  # of the asked tasks by verdict; null without an audit
    looked_at: NotRequired[int]  # questions until `asked` could be used; of sql_calibrate.py
    without_reference: NotRequired[list[str]]  # tasks asked that have none, where an arm is shown references
    notes: list[str]


class Apart(TypedDict):
    """An arm that is none of swarm.py's."""

    needs: list[str]  # what of a task it is shown that others are not: reference
    file: str | None  # of yours, that it stands in
    sha256: str | None  # of that file


class Shard(TypedDict):
    """Of a run that is asked in parts the one that a folder holds, see --shard. All else in it is said of all parts."""

    number: int  # from 1
    of: int
    tasks: int  # that are its own
    order: str  # SHA-256 of all tasks of the plan, one behind the other


class Server(TypedDict):
    """What the servers said before anything was spent, see endpoint.Probe."""

    model: str
    served: list[str]
    server: str
    urls: list[str]
    facts: list[str]
    warnings: list[str]
    seconds: NotRequired[float | None]  # what the probe's one word took, null where it was not measured; older: absent


class Config(TypedDict):
    """config.json. What a run could not know yet, or an older version did not write, is absent."""

    command: str  # that made the folder
    dry_run: bool
    identity: Row  # of the class Identity, with the model and the revision that were found
    plan: Row  # of the class Plan
    free: Row  # of the class Free
    versions: dict[str, str | None]
    data: Data
    server: Server
    price: tuple[float, float] | None  # usd a million tokens, in and out
    grades: str  # whose grades count: attempts, or the name of a regrade
    started: float  # seconds since 1970, as all times
    ended: float | None
    apart: NotRequired[dict[str, Apart]]  # the arms that are none of swarm.py's
    tier: NotRequired[str]  # of the sandbox
    rules: NotRequired[str]  # of grading, see grading.grade.rules_of
    graded_under: NotRequired[list[str]]  # tiers and rules of all starts
    plan_digest: NotRequired[str | None]
    shard: NotRequired[Shard]


@dataclass(kw_only=True)
class Settings(Identity, Plan):
    """Which attempts are due, and what they are."""

    @classmethod
    def of(cls, config: Config) -> Self:
        """As run.py's config.json holds them. Keys that an older version wrote and this one does not know are dropped,
        those that it lacks have their defaults."""
        known = {each.name for each in fields(cls)}
        held = {**config["identity"], **config["plan"]}
        return cls(**{name: value for name, value in held.items() if name in known})


DEFAULTS = vars(Settings())  # of what a folder that was made before there was a setting does not say


def shown_a_reference(config: Config) -> list[str]:
    """The arms whose prompts hold a part of a program known to be right: what they find was not searched for."""
    return [name for name, arm in (config.get("apart") or {}).items() if "reference" in arm["needs"]]
