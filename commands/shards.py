"""Shards: one run in parts, on machines that know nothing of each other, and put together again.

    part = Part((1, 4))              what --shard 1/4 asks: every fourth task of the seeded order, from the first on
    together([out1, out2])           run folders; where they are shards of one run, one folder that reads like the run
    merge(shards, out)               the same on disk: a run folder like any other, which can be gone on with

Nothing of an attempt depends on its shard: seeds, prompts and grades are those of the whole run, and so is the plan.
Folders are of one run where its identity, its plan, its tasks and their order, its audit and its grades are the same.
Left out: dividing the work by anything but places (how long a task takes is not known before).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, islice
from math import inf
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from commands.console import note
from commands.settings import Config, Row, Shard, flag, said, task_order
from faults import DiskFault, RecordsError, TaskError
from figures.plan import plan_digest
from reading.stored import PART
from records import ATTEMPTS, AUDIT, CARDS, CHECKS, CONFIG, EVENTS, OWED, PLAN, Folder, dumps, parse_row
from tasksets.task import Task, seeded

if TYPE_CHECKING:
    from tasks import Tasks

# ── asking a part ────────────────────────────────────────────────────────────────────────────────────────────────────


class Part:
    """What of a run is asked here. shard: its number from 1, and of how many; None: everything."""

    def __init__(self, shard: tuple[int, int] | None) -> None:
        self.shard = shard
        self._orders: list[str] = []  # SHA-256 of the first task, of the first two, ...

    def noting(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """All tasks of the plan, whose order is kept in mind on the way."""
        order = sha256()
        for task in tasks:
            order.update(f"{task.id}\0{task.digest}\n".encode("utf-8", "surrogatepass"))
            self._orders.append(order.hexdigest())
            yield task

    def of(self, tasks: Tasks) -> Iterator[Task]:
        """Those that are asked here."""
        first, step = self.shard or (1, 1)
        try:
            yield from islice(tasks, first - 1, None, step)
        finally:
            tasks.close()

    def most(self, calls: Mapping[str, int]) -> int:
        """The largest number of attempts here, given ones too. calls: of the plan."""
        return (
            (calls["largest"] + calls.get("given", 0))
            * len(range(len(self._orders))[self._own])
            // max(len(self._orders), 1)
        )

    @property
    def _own(self) -> slice:
        first, step = self.shard or (1, 1)
        return slice(first - 1, None, step)

    def within(self, config: Config) -> Config:
        """config.json with what it holds of a shard. TaskError where no task is left for it."""
        if not self.shard:
            return config
        number, of = self.shard
        tasks = len(self._orders[self._own])
        if not tasks:
            raise TaskError(f"--shard {number}/{of}: {len(self._orders)} tasks leave none for it: use fewer shards")
        return {**config, "shard": {"number": number, "of": of, "tasks": tasks, "order": self._orders[-1]}}

    def hold(self, old: Config, path: Path) -> None:
        """RecordsError where the folder was begun with another part, or its tasks have other places now."""
        before = old.get("shard")
        if (before and (before["number"], before["of"])) != self.shard:
            was = f"shard {_name(before)} of a run" if before else "a whole run"
            mend = f"give --shard {_name(before)}" if before else "leave --shard out"
            raise RecordsError(f"{path} holds {was}: {mend}, or use another --out")
        places = min(old["data"]["asked"], len(self._orders))
        if before and (places < old["data"]["asked"] or self._orders[places - 1] != before["order"]):
            raise RecordsError(
                f"the tasks have changed since {path} was begun, so that this shard would ask those of another one: "
                "give the tasks as they were, or use another --out for every shard"
            )


def _name(shard: Shard) -> str:
    return f"{shard['number']}/{shard['of']}"


# ── putting parts together ───────────────────────────────────────────────────────────────────────────────────────────


def together(paths: Iterable[Path]) -> list[Folder]:
    """These folders; where they are shards, the one run that they are parts of. RecordsError where they are both."""
    folders = [Folder(path) for path in paths]
    shards = [folder for folder in folders if (folder.read(CONFIG) or {}).get("shard")]
    if not shards:
        return folders
    whole = [folder for folder in folders if folder not in shards]
    if whole:
        raise RecordsError(
            f"{shards[0].path} is a shard of a run and {whole[0].path} is none: put the shards of each run together "
            "first (report.py SHARD SHARD ... --merge FOLDER), then name the folders that come of it"
        )
    return [Shards(shards)]


class Shards(Folder):
    """Shards of one run, read as that run. RecordsError where they are not, or one is there twice."""

    def __init__(self, folders: Sequence[Folder]) -> None:
        configs = {folder: folder.config_of("run.py") for folder in folders}
        self.parts = sorted(folders, key=lambda folder: configs[folder]["shard"]["number"])
        begun = (folder.path for folder in self.parts if (folder.path / ATTEMPTS).exists())
        super().__init__(next(begun, self.parts[0].path))
        self.logs = [folder.path / ATTEMPTS for folder in self.parts]
        self.configs = [configs[folder] for folder in self.parts]
        self._hold()
        of = self.configs[0]["shard"]["of"]
        there = {config["shard"]["number"] for config in self.configs}
        # Of more shards than tasks the last ones are empty, and nobody can have made them.
        due = range(1, min(of, self.configs[0]["data"]["asked"]) + 1)
        self.missing = [f"{number}/{of}" for number in due if number not in there]

    def _hold(self) -> None:
        first, here = self.configs[0], self.parts[0].path
        for before, config, folder in zip(self.configs, self.configs[1:], self.parts[1:], strict=False):
            two = f"{here} and {folder.path} are shards"
            if config["shard"]["of"] != first["shard"]["of"]:
                names = f"{_name(first['shard'])} and {_name(config['shard'])}"
                raise RecordsError(f"{two} {names}, and no parts of one run: name the shards of one")
            if config["shard"]["number"] == before["shard"]["number"]:
                twice = f"shard {_name(config['shard'])} is named twice"
                raise RecordsError(f"{twice} ({folder.path} is the second one): name each once")
            if keys := _differ(first["identity"], config["identity"]) + _differ(_grading(first), _grading(config)):
                raise RecordsError(f"{two} of different runs ({', '.join(map(flag, keys))}): name the shards of one")
            if keys := _differ(first["plan"], config["plan"]):
                words = "; ".join(said(key, first["plan"].get(key), config["plan"].get(key)) for key in keys)
                raise RecordsError(
                    f"{two} under different plans ({words}): go on with the one that lags behind, as the other"
                )
            if config["shard"]["order"] != first["shard"]["order"]:
                raise RecordsError(f"{two} of different tasks: begin them anew, all with the same tasks")
            if folder.read(AUDIT) != self.parts[0].read(AUDIT):
                raise RecordsError(f"{two} with different audits: copy the one that counts into each of them")

    def read(self, name: str) -> Row | None:
        if name == CONFIG:
            return cast(Row, self._config())
        if name == PLAN:
            return self._plan()
        return self.parts[0].read(name) if name == AUDIT else None

    def _config(self) -> Config:
        """As the whole run would have it: of versions and servers those of the first part."""
        ends = [config["ended"] for config in self.configs]
        prices = [config["price"] for config in self.configs]
        under = dict.fromkeys(line for config in self.configs for line in config.get("graded_under", []))
        plan = self._plan()
        whole = {
            **self.configs[0],
            "price": prices[0] if all(price == prices[0] for price in prices) else None,
            "started": min(config["started"] for config in self.configs),
            "ended": None if None in ends else max(end for end in ends if end is not None),
            "graded_under": list(under),
            "plan_digest": plan_digest(plan) if plan and self._as_digested() else None,
        }
        del whole["shard"]
        return cast(Config, whole)

    def _as_digested(self) -> bool:
        return all(folder.plan and plan_digest(folder.plan) == config.get("plan_digest")
                   for folder, config in zip(self.parts, self.configs, strict=True))  # fmt: skip

    def _plan(self) -> Row | None:
        """The first that was written; where some were changed since, one of those."""
        plans = [folder.plan for folder in self.parts]
        those = [plan for plan in plans if plan is not None]
        if len(those) < len(plans):
            return None
        moved = [plan for plan in those if plan["settings"] != self.configs[0]["plan"]]
        first = min(moved or those, key=lambda plan: plan["written"])
        amendments = sorted(chain(*(plan["amendments"] for plan in those)), key=lambda row: row["time"])
        return {**first, "written": min(plan["written"] for plan in those), "amendments": amendments}

    def lines(self, name: str, since: int = 0, until: float = inf) -> Iterator[tuple[int, bytes]]:
        """Those of all parts, as of one file: an offset holds the number of its part as well, but for cards, which come
        whole and in another order."""
        if name == CARDS:
            yield from self._cards()
        else:
            for number, folder in enumerate(self.parts):
                first = number * PART
                inside = folder.lines(name, max(0, since - first), until - first)
                yield from ((first + at, line) for at, line in inside)

    def _cards(self) -> Iterator[tuple[int, bytes]]:
        """In the order in which one run would have asked: figures that hold at any look go by it."""
        places: dict[str, tuple[bytes, Folder, int, bytes]] = {}
        seed = task_order(self.configs[0]["identity"])
        for folder in self.parts:
            for at, line in folder.lines(CARDS):
                try:
                    card = parse_row(CARDS, line)
                except ValueError:
                    self.unreadable.add((CARDS, at))
                    continue
                other = places.setdefault(card["id"], (seeded(seed, card["id"]), folder, at, line))
                if other[1] is not folder:
                    raise RecordsError(f"{other[1].path} and {folder.path} both hold {card['id']}: leave one out")
        yield from ((at, line) for _, _, at, line in sorted(places.values(), key=lambda place: place[0]))


def _differ(one: Row, other: Row) -> list[str]:
    return [key for key in {**one, **other} if one.get(key) != other.get(key)]


def _grading(config: Config) -> Row:
    """What besides the identity decides what an attempt is, by the flag that has to do with it."""
    arms = {name: arm["sha256"] for name, arm in (config.get("apart") or {}).items()}
    return {"arms": arms, "regrade": config["grades"], "dry_run": config["dry_run"]}


def note_missing(folders: Iterable[Folder]) -> None:
    for folder in folders:
        if isinstance(folder, Shards) and folder.missing:
            are = "shards {} are" if len(folder.missing) > 1 else "shard {} is"
            note(f"warning: {are.format(', '.join(folder.missing))} not among these: nothing is told of its tasks")


def merge(shards: Shards, out: Path) -> None:
    """Write the run that they are parts of. RecordsError where something is there already; whole or not at all."""
    if out.exists():
        raise RecordsError(f"{out} exists: name another folder with --merge")
    new = out.with_name(f".{out.name}.new")
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        for name in (ATTEMPTS, CARDS, CHECKS, EVENTS, OWED):
            with (new / name).open("wb") as file:
                _copy(shards, name, file)
        made = Folder(new)
        for name in (AUDIT, PLAN, CONFIG):
            if (content := shards.read(name)) is not None:
                made.write_json(name, content)
        os.rename(new, out)
    except OSError as why:
        raise DiskFault(f"{out} cannot be written ({why.strerror}): make room, or name another --merge") from None


def _copy(shards: Shards, name: str, file: IO[bytes]) -> None:
    for _, line in shards.lines(name):
        file.write(line if line.endswith(b"\n") else line + b"\n")
    if name == EVENTS:  # from which the next start would write them again
        for kept in (CONFIG, PLAN):
            event = {"event": "written", "name": kept, "content": shards.read(kept)}
            file.write(dumps(event).encode() + b"\n")
