"""A command line from dataclasses: each field a flag, each class a group of --help, the values back as one of them.

    parser = Flags("run.py", __doc__, Args, identity=Identity, plan=Plan, free=Free)
    args = parser.read(argv)      an Args

No abbreviations; a value that cannot be used is one line and exit 2. Left out: the settings (commands/settings.py).
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from commands.settings import Config, Identity, Plan, flag, json_object, ordered
from faults import BAD_INPUT, BadInput

VERSION = "0.1.0"

Args = TypeVar("Args")


class Flags(argparse.ArgumentParser, Generic[Args]):
    """groups: the classes whose fields stand together, by title; under `rest` the fields of none of them."""

    def __init__(
        self,
        prog: str,
        description: str | None,
        kind: type[Args],
        rest: str = "folder",
        usage: str = "",
        **groups: type,
    ) -> None:
        super().__init__(
            prog=prog,
            usage=f"python {prog}{usage} [flags]",
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.kind = kind
        self.given: set[str] = set()  # names of the flags that the last command line held
        every = {each.name: each for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
        for title, members in groups.items():
            group = self.add_argument_group(title, members.__doc__)
            for name in ordered(members):
                _add(group, every.pop(name))
        group = self.add_argument_group(rest)
        for each in every.values():
            _add(group, each)
        group.add_argument("--version", action="version", version=f"swarm-rescue {VERSION}")

    def read(self, argv: Sequence[str] | None = None) -> Args:
        """The flags; ends the process with exit 2 and one line where one cannot be used."""
        known, odd = self.parse_known_args(argv)
        if odd:
            name = next((word.split("=")[0] for word in odd if word.startswith("-")), "")
            near = nearest(name, self._option_string_actions) if name else ""
            self.error(f"unrecognized arguments: {' '.join(odd)}{near}")
        given = vars(known)
        self.given = {name for name in given if self._stands_in(name, sys.argv[1:] if argv is None else argv)}
        if given.get("config") is not None:
            kept = self.told(kept_flags, given["config"])
            given |= {name: value for name, value in kept.items() if name in given.keys() - self.given}
        if "usd" in (given.get("stop_after") or ()) and not given["price"]:
            self.error("--stop-after usd= needs --price IN,OUT")
        return self.kind(**given)

    def _stands_in(self, name: str, argv: Sequence[str]) -> bool:
        """Whether a flag was given: no abbreviation is one, so its words tell."""
        return any(word.partition("=")[0] in (flag(name), flag(f"no_{name}")) for word in argv)

    def told(self, read: Callable[..., Any], *what: object) -> Any:
        """What a reader makes of a flag, where it needs more than the flag's text."""
        try:
            return read(*what)
        except ValueError as why:
            self.error(str(why))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            near = nearest(str(value), action.choices)
            there = ", ".join(map(str, action.choices))
            raise argparse.ArgumentError(action, f"invalid choice: {value!r} (choose from {there}){near}")

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (python {self.prog} --help lists the flags)\n")
        raise AssertionError("exit ends the process")


def text_file(path: str) -> str:
    """What --system names. ValueError where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as why:
        raise ValueError(f"--system {path} cannot be read ({why}): name a text file") from None


def kept_flags(path: Path) -> dict[str, Any]:
    """The flags of a run, by name, as its config.json holds them. ValueError where that is none."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        flags = {**held["identity"], **held["plan"], **held["free"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"--config {path} cannot be read as a run's config.json: name one") from None
    if body := flags.get("extra_body"):
        json_object(json.dumps(body))
    empty = [name for name, value in flags.items() if value in (None, [])]
    for name in empty:
        del flags[name]
    return {name: tuple(value) if name == "price" else value for name, value in flags.items()}


def nearest(word: str, words: Iterable[str]) -> str:
    """What may have been meant, for the end of a message: a word like it, or one that it is a part of."""
    bare = {name.strip("-"): name for name in words}
    word = word.lower().replace("_", "-").strip("-")
    within = sorted((name for name in bare if len(word) > 2 and word in name), key=len)
    close = difflib.get_close_matches(word, bare, 1, 0.7) or within
    return f"; did you mean {bare[close[0]]}?" if close else ""


def _add(group: Any, each: dataclasses.Field[Any]) -> None:
    how = dict(each.metadata)
    made = each.default_factory
    default = each.default if made is dataclasses.MISSING else made()
    if default is False:
        del how["type"]
        how["action"] = "store_true"
    elif how.pop("yes_no", False):
        del how["type"]
        how["action"] = argparse.BooleanOptionalAction
    else:
        if "choices" not in how and how["type"].__qualname__.startswith(("count.", "number.")):
            how.setdefault("metavar", "N")
        how["type"] = _told(how["type"])
    if how.pop("positional", False):
        group.add_argument(each.name, **how)
    else:
        group.add_argument(flag(each.name), default=default, **how)


def _told(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A reader whose ValueError is what the command line says."""

    def reading(text: str) -> Any:
        try:
            return read(text)
        except ValueError as why:
            raise argparse.ArgumentTypeError(str(why)) from None

    return reading


# Of the plan, what a report may be asked in another way than the run was made: labelled exploratory.
ASKED_ANEW = ("margin", "only_passable")


def hold_against(config: Config, args: Any, parser: Flags[Any]) -> None:
    """--reuse and --regrade tell what the folder holds: BadInput for a flag that asks for anything else."""
    held = {**config["identity"], **config["plan"], **{name: getattr(args, name) for name in ASKED_ANEW}}
    for each_setting in (*dataclasses.fields(Identity), *dataclasses.fields(Plan)):
        name = each_setting.name
        if getattr(args, name) not in (parser.get_default(name), held.get(name)):
            # a system prompt is a text of any length
            was = f"{args.out} was made with {flag(name)} {held.get(name)!r:.60}"
            raise BadInput(f"{was}, and no sample is asked for here: leave {flag(name)} out")
