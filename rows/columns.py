"""Every column of every training row: its name, its type, what it holds. docs/rows.md is made of this file.

    Rescue                                  a line of rescued.jsonl, and of the format `rows`
    Passing                                 a line of passing.jsonl
    Trl, Messages, Pair, VerlSft            a row a program (VerlSft: parquet)
    Difficulty, Grpo, VerlRl                a row a task (VerlRl: parquet)
    schema(Trl), features(Trl)              the same for Arrow, and for the head of a data set's card

A column has one type in every file: none is ever null (text that is not known is empty), none is a list of what may be
empty, so that the rows of any two runs load together.
Left out: which rows there are (rows/found.py), how a column is filled (rows/formats.py).
"""

from __future__ import annotations

from typing import Any, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

SCHEMA_VERSION = 1  # goes up when a column is added, goes, or changes its meaning


class Message(TypedDict):
    role: str  # system, user or assistant
    content: str  # its text


class Origin(TypedDict):
    """Where a program comes from, and what may be done with it."""

    source: str  # the arm; base: the base group
    round: int  # from 0
    rerun: int  # 0, or the number of the noise run
    particle: int  # from 0; of the base group, its attempts
    seed: int  # that the request was sent with
    model: str  # that wrote it; empty: not known
    on_policy: bool  # whether the model had seen the bare prompt alone: other rows are off-policy for it and need SFT
    # or distillation, not an importance ratio
    verified: bool  # whether it passes every spare test of its task as well, of which there is at least one
    flags: str  # what marks it, between semicolons; empty for nothing
    source_split: str  # of the data set, by its own name: train, valid, test, ...; empty: not known
    source_ids: str  # what the task is made of, by the data set's own names, between commas
    hinted: bool  # whether the model had seen a program known to be right, or a part of one
    revision: str  # of the task set; empty where it has none
    licence: str  # of the task set; empty where it is not known
    schema_version: int  # of these columns; it goes up when one is added, goes, or changes its meaning


class _Published(TypedDict):
    task_id: str  # as the task set names it
    prompt: str  # the bare prompt's text, byte for byte
    final_text: str  # the program in a code fence
    reward: int  # 1


class Rescue(_Published, Origin):
    """A line of rescued.jsonl; the first six keys as published."""

    completion: str  # final_text again, under the name that trainers read
    system: str  # the system prompt that went before the prompt; empty for none


class Passing(Rescue):
    """A line of passing.jsonl, of sql_calibrate.py: a query that matches, where the others say program."""

    passes: int  # samples of its question that match
    samples: int  # of its question that the server answered


class Trl(Origin):
    task_id: str  # as the task set names it
    prompt: list[Message]  # the system prompt, where there was one, and the bare prompt
    completion: list[Message]  # one message of the assistant: the program in a code fence


class Messages(Origin):
    task_id: str  # as the task set names it
    messages: list[Message]  # the system prompt, where there was one, the bare prompt, the program in a code fence


class Pair(Origin):
    """Of the chosen program the columns of every row; of the rejected one those that begin with its name."""

    task_id: str  # as the task set names it
    prompt: list[Message]  # the system prompt, where there was one, and the bare prompt
    chosen: list[Message]  # one message of the assistant: a program that passes every test
    rejected: list[Message]  # one message of the assistant: a program of the same task that fails one
    rejected_source: str  # the arm that wrote it; base: the base group
    rejected_outcome: str  # of the first test that it failed
    rejected_fitness: float  # fraction of the visible tests that it passes
    rejected_on_policy: bool  # whether its model had seen the bare prompt alone


class Passes(TypedDict):
    """How hard a task was."""

    base_passes: int  # passes of the base group, all runs together
    base_attempts: int  # attempts of it that the server answered
    arm_passes: int  # passes of all arms and re-runs, but arms that were shown a reference
    arm_attempts: int  # attempts of them that the server answered
    best_fitness: float  # largest fraction of the visible tests that an attempt passed
    rescued: bool  # whether the whole base group failed and an arm or re-run passed


class Difficulty(Passes):
    task_id: str  # as the task set names it
    title: str  # short name
    all_fail: bool  # whether the base group was whole in some run, and none of it passed in any
    rescued_by: str  # the arms that passed, between commas; resample stands for its re-runs too
    runs: int  # that the figures are of
    model: str  # that was asked; empty: not known
    settings: str  # JSON: all that decides what an attempt is, but the seed
    data_source: str  # the task set
    revision: str  # of the task set; empty where it has none
    licence: str  # of the task set; empty where it is not known
    schema_version: int  # of these columns


class Grpo(Passes):
    task_id: str  # as the task set names it
    prompt: list[Message]  # the system prompt, where there was one, and the bare prompt
    ground_truth: str  # JSON: the visible and hidden tests and how they are run, see tasksets/truth.py
    data_source: str  # the task set
    model: str  # whose passes are counted; empty: not known
    revision: str  # of the task set; empty where it has none
    licence: str  # of the task set; empty where it is not known
    schema_version: int  # of these columns


class SftInfo(Origin):
    index: int  # of the row
    split: str  # train, or test where --held-back holds the task back
    task_id: str  # as the task set names it


class VerlSft(TypedDict):
    data_source: str  # the task set
    messages: list[Message]  # what verl's MultiTurnSFTDataset reads: system prompt, bare prompt, program in a fence
    prompt: list[Message]  # all of them but the last
    response: str  # the content of the last
    ability: str  # code
    extra_info: SftInfo  # of the task and the program


class RewardModel(TypedDict):
    style: str  # rule
    ground_truth: str  # JSON: the visible and hidden tests and how they are run, see tasksets/truth.py


class RlInfo(Passes):
    index: int  # of the row
    split: str  # train, or test where --held-back holds the task back
    task_id: str  # as the task set names it
    model: str  # whose passes are counted; empty: not known
    revision: str  # of the task set; empty where it has none
    licence: str  # of the task set; empty where it is not known
    schema_version: int  # of these columns


class VerlRl(TypedDict):
    data_source: str  # the task set
    prompt: list[Message]  # the system prompt, where there was one, and the bare prompt
    ability: str  # code
    reward_model: RewardModel  # how an answer is judged
    extra_info: RlInfo  # of the task


# ── the same for those who read files ────────────────────────────────────────────────────────────────────────────────

_PLAIN = {str: "string", int: "int64", float: "float64", bool: "bool"}


def schema(columns: type) -> Any:
    """The columns as a pyarrow.Schema."""
    import pyarrow as arrow

    def kind(of: Any) -> Any:
        if is_typeddict(of):
            return arrow.struct([(name, kind(each)) for name, each in get_type_hints(of).items()])
        if get_origin(of) is list:
            return arrow.list_(kind(get_args(of)[0]))
        return arrow.bool_() if of is bool else getattr(arrow, _PLAIN[of])()

    return arrow.schema([(name, kind(of)) for name, of in get_type_hints(columns).items()])


def features(columns: type, indent: str = "  ") -> list[str]:
    """The columns as lines of YAML, the way the `datasets` library writes them into a card."""
    lines = []
    for name, of in get_type_hints(columns).items():
        lines.append(f"{indent}- name: {name}")
        if is_typeddict(of):
            lines += [f"{indent}  struct:", *features(of, indent + "  ")]
        elif get_origin(of) is list:
            lines += [f"{indent}  list:", *features(get_args(of)[0], indent + "  ")]
        else:
            lines.append(f"{indent}  dtype: {_PLAIN[of]}")
    return lines
