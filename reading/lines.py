"""A line of a log as what it says: the one place where bytes of the run folder become values.

A line is decoded by msgspec, five times as fast as by json, where it is what a log of this version holds throughout;
whatever msgspec does not take as such (a lone surrogate, NaN, another kind of number, garbage) goes to json, whose word
is final. So both say the same, and an environment without msgspec reads the same folder, slower.

Left out: the files themselves (records.py), what an attempt's fields mean (swarm.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib import import_module
from importlib.util import find_spec
from sys import intern
from typing import Any

from commands.settings import Row
from faults import RecordsError
from swarm import Attempt

# None in an environment that was made before it was asked for.
msgspec = import_module("msgspec") if find_spec("msgspec") else None

_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("task_id", "arm", "task_sha", "prompt_sha", "reply", "outcome"), (str,)),
    **dict.fromkeys(("rerun", "round", "particle", "visible_total", "hidden_total"), (int,)),
    "fitness": (int, float),
    "passed": (bool,),
    "code": (str, type(None)),
}


_REPEATED = ("task_id", "arm", "outcome", "finish_reason", "visible_tests")


def _decoders() -> tuple[Callable[[bytes], object], Callable[[bytes], Attempt]] | None:
    """Of any value, and of an attempt: all its fields, of their kinds, and no other."""
    if msgspec is None:
        return None
    said = {
        "str": str,
        "int": int,
        "float": int | float,
        "bool": bool,
        "str | None": str | None,
        "int | None": int | None,
    }
    kinds = [
        (f.name, said[str(f.type)], *([] if f.name in _KINDS or f.default is MISSING else [f.default]))
        for f in fields(Attempt)
    ]
    line = msgspec.defstruct("Line", kinds, kw_only=True, forbid_unknown_fields=True, gc=False)
    decode, as_dict, new = msgspec.json.Decoder(line).decode, msgspec.structs.asdict, object.__new__

    def attempt(raw: bytes) -> Attempt:
        made, said = new(Attempt), as_dict(decode(raw))
        for name in _REPEATED:  # a million lines name a few thousand tasks
            said[name] = intern(said[name])
        made.__dict__.update(said)  # frozen against everybody else
        return made

    return msgspec.json.Decoder().decode, attempt


_FAST = _decoders()


def loads(line: bytes) -> Any:
    if _FAST:
        try:
            return _FAST[0](line)
        except (ValueError, RecursionError):
            pass  # json has the last word
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deep") from None


def parse_attempt(line: bytes) -> Attempt:
    """A line of attempts.jsonl. ValueError where it is anything else, RecordsError where it has keys unknown here."""
    if _FAST:
        try:
            return _FAST[1](line)
        except (ValueError, RecursionError):
            pass  # as above
    row: Row = loads(line)
    if not isinstance(row, dict):
        raise ValueError("not an object")
    wrong = [key for key, kinds in _KINDS.items() if key not in row or not isinstance(row[key], kinds)]
    if wrong:
        raise ValueError(f"its field {wrong[0]} is missing or of another type")
    try:
        return Attempt(**row)
    except TypeError as why:
        raise RecordsError(f"an attempt was written by another version ({why}): read it with that one") from None
