"""The forms in which rows are written: one function and its name in FORMATS. The type it yields names the columns.

    rows        rescued.jsonl over several runs: prompt and program as text
    trl         prompt and completion as message lists: TRL's SFTTrainer
    messages    one message list, for all others
    pairs       a passing and a failed program of one task: DPO
    difficulty  a row a task: how often the group and the arms passed
    grpo        prompt and tests as columns: TRL's GRPOTrainer with reward.py
    verl-sft    parquet for verl's MultiTurnSFTDataset
    verl-rl     parquet for verl's RLHFDataset, with the tests as ground truth

Rows of programs hold the bare prompt and what came of it; no form holds a prompt that a swarm wrote. Hidden tests are
in those for a reward alone (`rewarded`).
Left out: which programs and tasks there are (rows/found.py), files (rows/files.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

from faults import RecordsError
from rows.columns import (
    SCHEMA_VERSION,
    Difficulty,
    Grpo,
    Message,
    Messages,
    Pair,
    Passes,
    Rescue,
    Trl,
    VerlRl,
    VerlSft,
)
from rows.found import Asked, Choice, Program, rescue, settings_of
from swarm import bare
from tasks import of_identity
from tasksets.truth import dumps as truth_of


def rows(choice: Choice) -> Iterator[Rescue]:
    for program in choice.programs:
        yield rescue(program)


def trl(choice: Choice) -> Iterator[Trl]:
    for program in choice.programs:
        yield {
            "task_id": program.task.id,
            "prompt": _prompt(program),
            "completion": _said(program.text),
            **program.origin(),
        }


def messages(choice: Choice) -> Iterator[Messages]:
    for program in choice.programs:
        yield {
            "task_id": program.task.id,
            "messages": [*_prompt(program), *_said(program.text)],
            **program.origin(),
        }


def pairs(choice: Choice) -> Iterator[Pair]:
    """The first row of a task with its first failed program, the second with the second, and round again."""
    failed, used = choice.rejected(), dict[str, int]()
    for program in choice.programs:
        digest = program.task.digest
        others = failed.get(digest)
        if not others:  # every failed reply of the task was without a program
            continue
        other = others[used.get(digest, 0) % len(others)]
        used[digest] = used.get(digest, 0) + 1
        yield {
            "task_id": program.task.id,
            "prompt": _prompt(program),
            "chosen": _said(program.text),
            "rejected": _said(other.text),
            **program.origin(),
            "rejected_source": other.attempt.arm,
            "rejected_outcome": other.attempt.outcome,
            "rejected_fitness": float(other.attempt.fitness),
            "rejected_on_policy": other.on_policy,
        }


def difficulty(choice: Choice) -> Iterator[Difficulty]:
    for asked in choice.tasks():
        source, revision, licence, model = asked.run.about
        yield {
            "task_id": asked.task.id,
            "title": asked.task.title,
            **_passes(asked),
            "all_fail": asked.all_fail,
            "rescued_by": ",".join(sorted(asked.by)),
            "runs": asked.runs,
            "model": model,
            "settings": settings_of(asked.run),
            "data_source": source,
            "revision": revision,
            "licence": licence,
            "schema_version": SCHEMA_VERSION,
        }


def grpo(choice: Choice) -> Iterator[Grpo]:
    for asked, truth in _with_tests(choice):
        source, revision, licence, model = asked.run.about
        yield {
            "task_id": asked.task.id,
            "prompt": _asked(asked),
            "ground_truth": truth,
            **_passes(asked),
            "data_source": source,
            "model": model,
            "revision": revision,
            "licence": licence,
            "schema_version": SCHEMA_VERSION,
        }


def verl_sft(choice: Choice) -> Iterator[VerlSft]:
    for index, program in enumerate(choice.programs):
        task_id = program.task.id
        yield {
            "data_source": program.run.about[0],
            "messages": [*_prompt(program), *_said(program.text)],
            "prompt": _prompt(program),
            "response": program.text,
            "ability": "code",
            "extra_info": {
                "index": index,
                "split": choice.split(task_id),
                "task_id": task_id,
                **program.origin(),
            },
        }


def verl_rl(choice: Choice) -> Iterator[VerlRl]:
    for index, (asked, truth) in enumerate(_with_tests(choice)):
        source, revision, licence, model = asked.run.about
        yield {
            "data_source": source,
            "prompt": _asked(asked),
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": truth},
            "extra_info": {
                "index": index,
                "split": choice.split(asked.task.id),
                "task_id": asked.task.id,
                **_passes(asked),
                "model": model,
                "revision": revision,
                "licence": licence,
                "schema_version": SCHEMA_VERSION,
            },
        }


Format = Callable[[Choice], Iterator[Any]]
FORMATS: dict[str, Format] = {
    made.__name__.replace("_", "-"): made
    for made in (rows, trl, messages, pairs, difficulty, grpo, verl_sft, verl_rl)
}  # fmt: skip


def columns_of(name: str) -> type:
    """The type of a format's rows."""
    kind: type = get_args(get_type_hints(FORMATS[name])["return"])[0]
    return kind


def of_tasks(name: str) -> bool:
    """Whether a row is a task, and not a program."""
    return name == "difficulty" or rewarded(name)


def rewarded(name: str) -> bool:
    """Whether the rows are for a trainer that grades: those alone hold tests."""
    return name in ("grpo", "verl-rl")


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _prompt(program: Program) -> list[Message]:
    return [{"role": part["role"], "content": part["content"]} for part in program.prompt.messages]


def _asked(asked: Asked) -> list[Message]:
    prompt = bare(asked.task.shown(), asked.run.style)
    return [{"role": part["role"], "content": part["content"]} for part in prompt.messages]


def _said(text: str) -> list[Message]:
    return [{"role": "assistant", "content": text}]


def _passes(asked: Asked) -> Passes:
    return {
        "base_passes": asked.base_passes,
        "base_attempts": asked.base_attempts,
        "arm_passes": asked.arm_passes,
        "arm_attempts": asked.arm_attempts,
        "best_fitness": float(asked.best_fitness),
        "rescued": asked.rescued,
    }


def _with_tests(choice: Choice) -> Iterator[tuple[Asked, str]]:
    """The tasks of the population with their ground truth, in the order of their set. The folder holds no hidden test,
    so the set is read again; RecordsError where a task is gone or has changed."""
    choice.alike()
    wanted = {asked.task.digest: asked for asked in choice.tasks()}
    for run in choice.runs:
        mine = {task.digest for task in run.cards.values()} & wanted.keys()
        tasks = of_identity({**run.identity, **({"tasks": choice.tasks_from} if choice.tasks_from else {})})
        try:
            while mine and (task := next(tasks, None)):
                if task.digest in mine:
                    mine.discard(task.digest)
                    yield wanted.pop(task.digest), truth_of(task)
        finally:
            tasks.close()
        if mine:
            first = wanted[min(mine)].task.id
            raise RecordsError(
                f"{len(mine)} tasks of {run.identity['tasks']} are gone or have changed since they were asked, {first} "
                "among them: name the file as it was with --tasks"
            )
