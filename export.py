"""What a training run starts from: passing programs as bare rows, with no trace of the swarm in their prompt.

Two programs are the same when they differ only in line ends, blanks at the ends of lines and blank lines; another
comment makes another program. Of equal programs one is kept: the first whose model saw the bare prompt alone, or else
the first.

The text is the program in a fence, never the reply as it was sampled (attempts.jsonl holds that, under the same slot):
rows are for supervised fine-tuning and distillation, on_policy or not.

Left out: base and noise-run programs, and tasks of which the base group did not fail as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

from commands.settings import Config
from faults import RecordsError
from records import dumps
from swarm import PLAIN, Attempt, Style, bare, fenced, same_program
from tasksets.task import Task


class Rescue(TypedDict):
    """A row of rescued.jsonl; the first six keys as published."""

    task_id: str  # as the task set names it
    prompt: str  # the bare prompt's text, byte for byte
    final_text: str  # the program in a code fence
    reward: int  # 1
    source: str  # the arm
    round: int  # from 0
    completion: str  # final_text again, under the name that trainers read
    system: str | None  # the system prompt that went before the prompt; null for none
    rerun: int  # 0
    particle: int  # from 0
    seed: int  # that the request was sent with
    model: str | None  # that wrote it
    on_policy: bool  # whether the model had seen the bare prompt alone: other rows are off-policy for it and need SFT
    # or distillation, not an importance ratio
    revision: str | None  # of the task set; null where it has none
    licence: str | None  # of the task set; null where it is not known


def rescues(passing: Iterable[Attempt], config: Config, results: Mapping[str, Any]) -> list[Attempt]:
    """The passing attempts of the arms on tasks whose whole base group failed, by task, arm, round, particle.

    Which those are the results say (`by_task`): a group that lacks an attempt shows nothing among what passed.
    """
    arms = {*config["plan"]["arms"], *(["round0"] if config["identity"]["share_round0"] else [])}
    failed = {task for task, row in results["by_task"].items() if row["base"] == 0}  # None: the group is not whole
    ours = [a for a in passing if a.arm in arms and a.rerun == 0 and a.task_id in failed]
    return sorted(ours, key=lambda attempt: attempt.slot)


def rows(passing: Iterable[Attempt], cards: Iterable[Task], config: Config, results: Mapping[str, Any]) -> str:
    """JSON lines, one for each distinct passing program of the arms, in the order of task, arm, round, particle.

    passing: at least the attempts of the arms that passed; results: what `measure` made of the same attempts.
    """
    identity, tasks = config["identity"], {task.id: task for task in cards}
    system = PLAIN.system if identity["system"] is None else identity["system"]
    style = Style(system, identity["no_comments"])
    found: dict[tuple[str, str], Rescue] = {}
    for attempt in rescues(passing, config, results):
        if attempt.task_id not in tasks:
            raise RecordsError(f"the card of {attempt.task_id} cannot be read: repeat the run, which writes it anew")
        assert attempt.code is not None  # it passed
        prompt = bare(tasks[attempt.task_id].shown(), style)
        text = fenced(attempt.code, "python")
        row: Rescue = {
            "task_id": attempt.task_id,
            "prompt": prompt.messages[-1]["content"],
            "final_text": text,
            "reward": 1,
            "source": attempt.arm,
            "round": attempt.round,
            "completion": text,
            "system": system or None,
            "rerun": attempt.rerun,
            "particle": attempt.particle,
            "seed": attempt.seed,
            "model": identity["model"],
            "on_policy": attempt.prompt_sha == prompt.sha(),
            "revision": identity["revision"],
            "licence": config["data"]["licence"],
        }
        key = attempt.task_id, same_program(attempt.code)
        if key not in found or (row["on_policy"] and not found[key]["on_policy"]):
            found.pop(key, None)  # the rows stay in the order of their slots
            found[key] = row
    return "".join(dumps(row) + "\n" for row in found.values())


Format = Callable[[Iterable[Attempt], Iterable[Task], Config, Mapping[str, Any]], str]
FORMATS: dict[str, Format] = {"rows": rows}
