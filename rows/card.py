"""The card of a data set: README.md beside the rows, with the head that a hub reads.

    card("trl", choice, {"train": 27})      as text

It says what was counted, which model and which tasks the rows come from, what off-policy means, and what a model that
is trained on them cannot be measured on any more. Left out: the columns one by one (docs/rows.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rows.columns import features
from rows.files import suffix
from rows.formats import columns_of, of_tasks, rewarded
from rows.found import Choice
from rows.overlap import WORDS
from tasksets.source import splits_of

LICENCES = {"CC BY 4.0": "cc-by-4.0", "Apache-2.0": "apache-2.0"}  # as a hub names them
USES = {
    "rows": "prompt and program as plain text, one row a program",
    "trl": "supervised fine-tuning with TRL's SFTTrainer, which applies the chat template to both columns",
    "messages": "supervised fine-tuning with any trainer that reads message lists",
    "pairs": "preference training (DPO): a program that passes every test and one of the same task that fails",
    "difficulty": "a curriculum: a row a task, with how often the model passed it",
    "grpo": "TRL's GRPOTrainer, with the tests as a column for the reward",
    "verl-sft": "supervised fine-tuning with verl (data.messages_key=messages)",
    "verl-rl": "reinforcement learning with verl, with the tests as ground truth",
}
MADE = {
    "python": "Each task was asked several times with the bare prompt. Tasks that the whole group failed were asked "
    "again, by fresh draws and by particles that see their own best program and others' (the arms). Every program ran "
    "in a sandbox; a pass is every visible and every hidden test, which is not a proof.",
    "sql": "Each question was asked several times with the same prompt, its tables and their first rows. Every query "
    "ran in a sandbox; a pass has the rows of a gold query on one database, which is not a proof.",
}
OFF_POLICY = (
    "`on_policy: false` marks a program whose model had another program in its prompt, while the row has the bare "
    "prompt: it is off-policy for that prompt. Every program stands in a code fence and not in the tokens that were "
    "sampled. Use the rows for fine-tuning on accepted programs or for distillation, not with the importance ratio of "
    "plain rollouts."
)


def card(name: str, choice: Choice, counts: Mapping[str, int]) -> str:
    about = [run.about for run in choice.runs]
    licences = list(dict.fromkeys(licence for _, _, licence, _ in about))
    known = LICENCES.get(licences[0], "other") if len(licences) == 1 and licences[0] else "unknown"
    known = "other" if len(licences) > 1 else known
    total = sum(counts.values())
    head = ["---", f"license: {known}"]
    if known == "other":
        head.append(f"license_name: {_quoted(' and '.join(each or 'unknown' for each in licences))}")
    head += [
        "language:",
        "- en",
        "task_categories:",
        "- text-generation",
        "tags:",
        "- code",
        *dict.fromkeys(f"- {run.language}" for run in choice.runs),
        "- swarm-rescue",
    ]
    if trainer := {"trl": "trl", "grpo": "trl", "pairs": "dpo", "verl-sft": "verl", "verl-rl": "verl"}.get(name):
        head.append(f"- {trainer}")
    head += [f"pretty_name: {_quoted(f'swarm-rescue {name}')}", "size_categories:", f"- {_size(total)}"]
    parts = [part for part in counts if counts[part]] or ["train"]
    head += ["configs:", "- config_name: default", "  data_files:"]
    for part in parts:
        head += [f"  - split: {part}", f"    path: {part}.{suffix(name)}"]
    head += ["dataset_info:", "  features:", *features(columns_of(name)), "---"]
    return "\n".join([*head, "", *_body(name, choice, counts), ""])


def _body(name: str, choice: Choice, counts: Mapping[str, int]) -> list[str]:
    total = sum(counts.values())
    lines = [f"# swarm-rescue, {name}", "", f"For {USES[name]}.", ""]
    if any(run.config["dry_run"] for run in choice.runs):
        lines += ["**Of a dry run: toy tasks and a fake policy. Nothing here was written by a model.**", ""]
    told = [f"{number:,} {part}" for part, number in counts.items()]
    lines += [f"{total:,} rows" + (f" ({', '.join(told)})" if len(told) > 1 else "") + ".", ""]
    lines += ["| run | task set | revision | licence | model | tasks asked |", "|---|---|---|---|---|---|"]
    for number, run in enumerate(choice.runs, 1):
        source, revision, licence, model = (each or "not known" for each in run.about)
        lines.append(f"| {number} | {source} | {revision} | {licence} | {model} | {len(run.results['by_task']):,} |")
    lines.append("")
    if not of_tasks(name):
        lines += [*_counted(choice), "", "## On policy and off", "", OFF_POLICY, ""]
    if name == "pairs":
        lines += [
            "The rejected program is the base group's own on the bare prompt where it wrote enough of them, else an "
            "arm's; `rejected_on_policy` says which. A task of which no failed reply holds a program has no row.", "",
        ]  # fmt: skip
    lines += ["## What it must not be measured on", "", contamination(choice), *cleaned(choice), ""]
    if rewarded(name):
        lines += [
            "The rows hold the hidden tests of their tasks, for the reward: keep them out of prompts.",
            "",
        ]
    lines += ["## How it was made", ""]
    for language in dict.fromkeys(run.language for run in choice.runs):
        lines += [MADE[language], ""]
    return lines


def _counted(choice: Choice) -> list[str]:
    programs = choice.programs
    of = Counter(program.attempt.arm for program in programs)
    on = Counter(program.attempt.arm for program in programs if program.on_policy)
    lines = ["| written by | programs | of them on-policy |", "|---|---|---|"]
    lines += [f"| {arm} | {of[arm]:,} | {on[arm]:,} |" for arm in sorted(of)]
    lines.append(f"| together | {len(programs):,} | {sum(on.values()):,} |")
    tasks = len({program.task.digest for program in programs})
    more = f"; at most {choice.per_task} a task are kept" if choice.per_task else ""
    if hinted := sum(program.hinted for program in programs):
        lines += [
            "",
            f"{hinted:,} of the programs are `hinted`: their model had seen a right program, or a part of one.",
        ]
    lines += ["", f"{tasks:,} tasks; {len(choice.found):,} passing programs before equal ones were dropped{more}."]
    if unseen := unverified(choice):
        lines += ["", unseen]
    return lines


def unverified(choice: Choice) -> str:
    """What is to be done about programs that were never run on the spare tests; empty where there is none."""
    if not choice.unseen:
        return ""
    are, their = ("row is", "its program was") if choice.unseen == 1 else ("rows are", "their programs were")
    return (
        f"{choice.unseen:,} {are} not verified yet: {their} never run on the spare tests. Repeat the run's command "
        "(run.py, which asks nothing anew and verifies), then export again."
    )


def contamination(choice: Choice) -> str:
    """Which benchmarks a model trained on these rows has seen."""
    names = []
    for run in choice.runs:
        splits = sorted({split for task in run.cards.values() for split in splits_of(task)})
        names.append(f"{run.about[0]}" + (f" (splits {', '.join(splits)})" if splits else ""))
    return (
        f"The tasks are those of {', '.join(dict.fromkeys(names))}. A model that was trained on these rows has seen "
        "them: its score on the same tasks, or on a benchmark that shares them, says nothing."
    )


def cleaned(choice: Choice) -> list[str]:
    """What --decontaminate has left out, in a sentence; none without it."""
    if choice.benchmarks is None:
        return []
    tasks = len(choice.dropped)
    first = next(iter(choice.dropped.items()), None)
    named = f', {first[0]} for one: "{first[1]}"' if first else ""
    left = f"{tasks:,} task{'s' * (tasks != 1)} left out"
    return [
        f"Held against {choice.benchmarks.texts:,} texts of benchmarks: {left} for {WORDS} words in a row that are in "
        f"one too{named}."
    ]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _size(n: int) -> str:
    steps = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")]
    return next((name for most, name in steps if n < most), "1M<n<10M")
