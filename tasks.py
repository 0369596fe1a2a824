"""What is asked: a Task, and the task sets it comes from.

A task set is one generator function and its name in SETS; `load` puts its tasks into the seeded order and gives
the first n. `toy` needs nothing, `code_contests` and `mbpp-bundle` come from a data hub, pinned and cached, and a path
to a .jsonl or .parquet file is a task set of your own (its rows: see tasksets/own.py).

Left out here: how tests are compared and programs run (grader.py), what a prompt says (swarm.py).
"""

from __future__ import annotations

import bisect
import json
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import IO, Any

from commands.settings import task_order

# "as": handed on, since whoever loads tasks says what they are by these names.
from faults import TaskError as TaskError
from tasksets.code_contests import code_contests
from tasksets.mbpp import mbpp_bundle
from tasksets.own import own
from tasksets.task import About, Options, Reader, in_words, seeded
from tasksets.task import Task as Task
from tasksets.task import Test as Test
from tasksets.task import card as card
from tasksets.task import from_card as from_card
from tasksets.toy import toy

SETS: dict[str, Reader] = {
    "toy": toy,
    "code_contests": code_contests,
    "mbpp-bundle": mbpp_bundle,
}  # yours: one function, one name


def load(
    source: str,
    limit: int | None = None,
    seed: int = 0,
    spare: bool = False,
    *,
    bundle: int = 5,
    revision: str | None = None,
    keep_overlap: bool = False,
    references: int = 0,
    only: Callable[[Task], bool] | None = None,
    splits: Sequence[str] | None = None,
) -> Tasks:
    """The first `limit` tasks, in the seeded order, of a set in SETS or of your own .jsonl or .parquet file.

    only: tasks that it is not true of are left out, and counted as without rollouts. The other parameters: see Options.
    Nothing is read before the first task is asked for, which may raise TaskError.
    """
    read = SETS.get(source) or partial(own, Path(source), SETS)
    options = Options(seed, spare, bundle, revision, keep_overlap, tuple(splits or ()), references)
    return Tasks(source, read, options, limit, only)


def of_identity(
    identity: Mapping[str, Any],
    limit: int | None = None,
    spare: bool = False,
    only: Callable[[Task], bool] | None = None,
    references: int = 0,
) -> Tasks:
    """The tasks of a run, as its identity names and orders them."""
    return load(identity["tasks"], limit, task_order(identity), spare, bundle=identity["bundle"],
                revision=identity["revision"], keep_overlap=identity["as_published"], only=only,
                references=references, splits=identity.get("splits"))  # fmt: skip


class Tasks(Iterator[Task]):
    """The first `limit` tasks that a set yields, in the seeded order; `about` is complete once the first has come.

    The order is that of a hash of seed and id: it depends on no other task, so a larger limit only adds tasks.
    Tasks wait in an unnamed temporary file, so memory holds one at a time however large the set is; with a limit, those
    alone that are among the first of what has been read so far.
    """

    def __init__(
        self,
        source: str,
        read: Reader,
        options: Options,
        limit: int | None = None,
        only: Callable[[Task], bool] | None = None,
    ) -> None:
        self.about = About(source)
        self._walk = _in_order(self.about, _among(read, only), options, limit)

    def __next__(self) -> Task:
        return next(self._walk)

    def close(self) -> None:
        """Give the temporary file back, where not all tasks were asked for."""
        self._walk.close()


def _among(read: Reader, only: Callable[[Task], bool] | None) -> Reader:
    def reading(options: Options, about: About) -> Iterator[Task]:
        for task in read(options, about):
            if only is None or only(task):
                yield task
            else:
                about.left_out["without rollouts"] += 1

    return reading


def _in_order(about: About, read: Reader, options: Options, limit: int | None) -> Generator[Task, None, None]:
    if limit is not None and limit < 1:
        raise TaskError(f"--limit {limit}: give a number of tasks, 1 or more")
    with tempfile.TemporaryFile() as spool:
        places = _spool(read(options, about), spool, about.source, options.seed, limit)
        about.tasks = len(places)
        _add_notes(about)
        if not places:
            reasons = ", ".join(f"{number} {reason}" for reason, number in about.left_out.items())
            raise TaskError(f"{about.source} has no task that can be used: {reasons or 'it is empty'}")
        for task_id in sorted(places, key=lambda task_id: seeded(options.seed, task_id))[:limit]:
            spool.seek(places[task_id][0])
            task = _from_spool(json.loads(zlib.decompress(spool.read(places[task_id][1]))))
            if options.references and not task.references:
                about.without_reference.append(task.id)
            yield task


def _spool(
    tasks: Iterable[Task], spool: IO[bytes], source: str, seed: int, limit: int | None
) -> dict[str, tuple[int, int]]:
    """Write tasks down, those that are among the first `limit` of all so far; where each stands and its size, by id."""
    places: dict[str, tuple[int, int]] = {}
    first: list[bytes] = []
    for task in tasks:
        if task.id in places:
            raise TaskError(f"{source}: the id {task.id!r} is there twice; ids must differ")
        places[task.id] = (0, 0)
        if limit is not None:
            bisect.insort(first, seeded(seed, task.id))
            if len(first) > limit and first.pop() == seeded(seed, task.id):
                continue
        row = zlib.compress(json.dumps({each.name: getattr(task, each.name) for each in fields(task)}).encode(), 1)
        try:
            places[task.id] = (spool.tell(), len(row))
            spool.write(row)
            spool.flush()
        except OSError as error:
            raise TaskError(
                f"cannot put tasks into {tempfile.gettempdir()} ({in_words(error)}); set TMPDIR to a folder with room"
            ) from error
    return places


def _from_spool(row: dict[str, Any]) -> Task:
    for side in ("visible", "hidden", "spare"):
        row[side] = tuple(Test(*test) for test in row[side])
    return Task(**row | {name: tuple(row[name]) for name in ("functions", "references", "incorrect")})


def _add_notes(about: About) -> None:
    if about.overlap["tests"]:
        about.notes.append(
            "dropped {tests} hidden tests of {tasks} tasks, since their input is also visible".format(**about.overlap)
        )
    if about.repaired_statements:
        about.notes.append(f"repaired {about.repaired_statements} statements that were decoded as cp1252")
