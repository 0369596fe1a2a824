"""--rollouts: a base group that is there already, of a trainer's run or of another folder, in place of one asked here.

    rollouts(path, ...)      a file of rows, or a folder of such files, read and checked; ValueError says what is wrong
    Given(...)               a worker that answers base attempts from it, and asks for all others

A row is a reply (`task_id`, `reply`), which is graded here, or a count (`task_id`, `n`, `passes`), which is taken as it
is given. attempts.jsonl of a run is such a file. Of a trainer's dump the columns are known by their names:
`completion`, `output` or `response` for the reply; for the task the ground truth of an export, `extra_info`, or a
`prompt` or `input` that holds the bare prompt. Where a dump has steps, the group of a task is that of its last step:
earlier ones are another policy's. Scores in it are not read.

Left out: asking for what a group lacks, and drawing some of a larger one by chance: the first ones count.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any

from commands.settings import AS_GIVEN, GRADED_HERE
from endpoint import Reply
from faults import BadInput, TaskError
from figures.numbers import plural
from grading.grade import LETTERS, Grade
from session import Worker
from swarm import Slot, Style, bare
from tasksets.own import jsonl_rows, parquet_rows
from tasksets.task import Task

REPLIES = ("reply", "completion", "output", "response")
PROMPTS = ("prompt", "input")
TRUTHS = ("ground_truth", "gts")
READERS = {".jsonl": jsonl_rows, ".parquet": parquet_rows}
NAMED = 5  # groups of no task that are named
COLUMNS = f"task_id with one of {', '.join(REPLIES)}, or task_id, n and passes"


Counts = dict[str, tuple[int, int]]  # n and passes, by task
Steps = dict[str, dict[float, list[int]]]


class Rollouts(str):
    """The groups of a file. As text it is what the identity of a run says of them."""

    style: Style
    size: int  # of a group
    counts: Counts
    places: dict[str, list[int]]  # where each reply begins, by task id or by the text of a prompt
    prompts: list[str]
    used: set[str]  # names of groups that some task has asked for
    texts: mmap | bytes  # of the replies, a line each, of a file without a name

    def of(self, task: Task) -> str:
        """The name that its group has here; empty where there is none. BadInput where it cannot be one."""
        name = task.id if task.id in self.places or task.id in self.counts else self._by_prompt(task)
        there = self.counts[name][0] if name in self.counts else len(self.places.get(name, ()))
        if there and (there < self.size or (name in self.counts and there != self.size)):
            raise BadInput(
                f"--rollouts: {task.id} has {there} and --base-samples is {self.size}: give a number that fits"
            )
        self.used.add(name)
        return name

    def _by_prompt(self, task: Task) -> str:
        asked = bare(task.shown(), self.style).messages[-1]["content"] if self.prompts else ""
        found = [prompt for prompt in self.prompts if asked in prompt]
        if len(found) > 1:
            raise BadInput(f"--rollouts: {len(found)} prompts hold that of {task.id}: give the rows a task_id")
        return found[0] if found else ""

    def reply(self, name: str, number: int) -> Reply:
        start = self.places[name][number]
        text, reasoning, finish_reason = json.loads(self.texts[start : self.texts.find(b"\n", start)])
        return Reply(text, finish_reason, None, None, reasoning)


class Given(Worker):
    """Answers the base attempts of every task from rollouts."""

    rollouts: Rollouts
    seed: int  # of the run

    @classmethod
    def of(cls, worker: Worker, found: object, seed: int) -> Worker:
        """The worker as it is, where no rollouts were given."""
        if not isinstance(found, Rollouts):
            return worker
        made = cls(*worker)
        made.rollouts, made.seed = found, seed
        return made

    async def answer(
        self,
        task: Task,
        messages: list[dict[str, str]],
        seed: int,
        paid: Reply | None = None,
        keep: Callable[[Reply], None] = lambda reply: None,
    ) -> tuple[Reply, Grade]:
        group = [Slot(task.id, "base", 0, 0, i).seed(self.seed) for i in range(self.rollouts.size)]
        if paid is None and seed in group:
            name, number = self.rollouts.of(task), group.index(seed)
            if name in self.rollouts.counts:
                return _as_given(task, number, *self.rollouts.counts[name])
            paid = self.rollouts.reply(name, number)
        return await super().answer(task, messages, seed, paid, keep)


def _as_given(task: Task, number: int, n: int, passes: int) -> tuple[Reply, Grade]:
    """An attempt of which nothing is known but whether it passed."""
    reply = Reply(f"(rollout {number + 1} of {n}, {passes} of them passed: taken as given)", "given", None, None)
    if number < passes:
        passed = LETTERS["pass"]
        return reply, Grade(None, 1.0, True, "pass", passed * len(task.visible), passed * len(task.hidden))
    return reply, Grade(None, 0.0, False, "not_run", LETTERS["not_run"] * len(task.visible), got="not_run")


def known(found: object) -> Callable[[Task], bool] | None:
    """Which tasks can be asked: those that have a group, where rollouts were given."""
    return (lambda task: bool(found.of(task))) if isinstance(found, Rollouts) else None


def unknown(found: object) -> list[str]:
    """What is to be said of groups of no task, once every task has been asked for; nothing where there is none."""
    if not isinstance(found, Rollouts):
        return []
    left = [name for name in (*found.places, *found.counts) if name not in found.used]
    prompts = [name for name in left if name in found.prompts]
    lines = []
    for what, those in (("id", [name for name in left if name not in prompts]), ("prompt", prompts)):
        if those:
            are = f"{plural(len(those), what)} of the rollouts {'is' if len(those) == 1 else 'are'} of no task here"
            more = f" and {len(those) - NAMED:,} more" if len(those) > NAMED else ""
            lines.append(f"{are}: {', '.join(ascii(name[:40]).strip(chr(39)) for name in those[:NAMED])}{more}")
    return lines


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def rollouts(path: str, size: int, band: str, style: Style) -> Rollouts:
    """The groups of a file or folder. ValueError where it cannot be read, or a row says too little."""
    at = Path(path)
    files = sorted(each for each in at.iterdir() if each.suffix in READERS) if at.is_dir() else [at]
    if not files or not all(each.is_file() and each.suffix in READERS for each in files):
        raise ValueError(f"--rollouts {path} is no .jsonl or .parquet file, nor a folder of some: name one")
    with tempfile.TemporaryFile() as kept:
        counts, steps, prompts = _read(files, kept)
        if counts and steps:
            raise ValueError(f"--rollouts {path} holds both replies and counts: give one kind")
        if counts and band == "near-miss":
            raise ValueError("--band near-miss needs to know what each rollout passed: give replies, not counts")
        if not counts and not steps:
            raise ValueError(f"--rollouts {path} holds no base rollout: a row has {COLUMNS}")
        kept.flush()
        texts = mmap(kept.fileno(), 0, access=ACCESS_READ) if steps else b""  # it outlives the file
    how = AS_GIVEN if counts else GRADED_HERE
    found = Rollouts(f"{at.name}, sha256 {_digest(files)[:16]}, {how}")
    found.size, found.style, found.used, found.texts = size, style, set(), texts
    found.counts, found.prompts = counts, list(prompts)
    found.places = {name: of[max(of)] for name, of in steps.items()}
    return found


def _read(files: list[Path], kept: IO[bytes]) -> tuple[Counts, Steps, dict[str, None]]:
    """Counts by task; where each reply begins in `kept`, by task or prompt and by step; the prompts, in their order."""
    counts, prompts = Counts(), dict[str, None]()
    steps: Steps = defaultdict(lambda: defaultdict(list))
    for file in files:
        for where, row in READERS[file.suffix](file):
            try:
                if isinstance(row, TaskError):
                    raise ValueError(str(row))
                if not isinstance(row, dict):
                    raise ValueError(f"{file}, {where}: not an object")
                if row.get("arm", "base") != "base":  # attempts.jsonl of a run
                    continue
                name, is_prompt = _name(row)
                if is_prompt:
                    prompts[name] = None
                if "passes" in row and not any(row.get(column) is not None for column in REPLIES):
                    counts[name] = _count(row, name, counts)
                    continue
                for text in _replies(row):
                    steps[name][float(row.get("step") or 0)].append(kept.tell())
                    told = [text, row.get("reasoning") or "", str(row.get("finish_reason") or "given")]
                    kept.write(json.dumps(told).encode() + b"\n")
            except ValueError as why:
                text = str(why)
                raise ValueError(text if text.startswith(str(file)) else f"{file}, {where}: {text}") from None
    return counts, steps, prompts


def _digest(files: list[Path]) -> str:
    """SHA-256 of the files, one behind the other."""
    digest = sha256()
    for path in files:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def _name(row: Mapping[str, Any]) -> tuple[str, bool]:
    """What a row calls its task; whether that is the text of a prompt."""
    info = row.get("extra_info")
    for where in (row, info if isinstance(info, dict) else {}):
        if isinstance(where.get("task_id"), str | int) and not isinstance(where["task_id"], bool):
            return str(where["task_id"]), False
    model = row.get("reward_model")
    for truth in _truths(row, model if isinstance(model, dict) else {}):
        if isinstance(truth, dict) and isinstance(truth.get("id"), str):
            return truth["id"], False
    for column in PROMPTS:
        if row.get(column):
            return "\n".join(_texts(row[column], column)), True
    raise ValueError(f"names no task (it has {', '.join(row)}): a row has {COLUMNS}")


def _truths(*where: Mapping[str, Any]) -> Iterator[object]:
    for row in where:
        for column in TRUTHS:
            if isinstance(row.get(column), str):
                try:
                    yield json.loads(row[column])
                except (ValueError, RecursionError):
                    continue


def _replies(row: Mapping[str, Any]) -> list[str]:
    """One, or several in a list; of a conversation its last message."""
    column = next((column for column in REPLIES if row.get(column) is not None), None)
    if column is None:
        raise ValueError(f"holds no reply (it has {', '.join(row)}): a row has {COLUMNS}")
    texts = _texts(row[column], column)
    is_messages = not isinstance(row[column], str) and isinstance(row[column][0], dict)
    return texts[-1:] if is_messages else texts


def _texts(value: object, column: str) -> list[str]:
    """A text, a list of texts, or the contents of messages."""
    parts = value if isinstance(value, list) and value else [value]
    texts = [part.get("content") if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{column}: must be text or messages, not {value!r:.60}")
    return [text for text in texts if isinstance(text, str)]


def _count(row: Mapping[str, Any], name: str, before: Mapping[str, object]) -> tuple[int, int]:
    n, passes = row.get("n"), row["passes"]
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (n, passes)):
        raise ValueError(f"n and passes: must be whole numbers, not {n!r:.40} and {passes!r:.40}")
    if not 0 <= passes <= n or not n:
        raise ValueError(f"passes: {passes} of n = {n} cannot be")
    if name in before:
        raise ValueError(f"task_id: {name} is there twice; ids must differ")
    return n, passes
