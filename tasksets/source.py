"""What a task is made of, by the names that its data set has for it: for who must not train on a benchmark.

    source_ids(task)    ["1041_E"]; of a bundle of MBPP the numbers of its problems; of your own rows the id
    splits_of(task)     ["test"], as the data set calls the part that they are of; [] where it has none

From the card of a task alone, so that a run folder can say it. Left out: the hub's own names of files.
"""

from __future__ import annotations

import re

from tasksets.task import Task

# MBPP (Austin et al. 2021, section 2.1): problems 1 to 10 for prompts, then test, validation and train.
_MBPP = (("prompt", 1, 10), ("test", 11, 510), ("validation", 511, 600), ("train", 601, 974))


def source_ids(task: Task) -> list[str]:
    if found := re.fullmatch(r"MBPP ([\d, ]+)", task.title):
        return found[1].split(", ")
    if found := re.fullmatch(r"cc-[a-z]+-(.+)", task.id):
        return [found[1]]
    return [task.id]


def splits_of(task: Task) -> list[str]:
    if re.fullmatch(r"MBPP ([\d, ]+)", task.title):
        numbers = [int(number) for number in source_ids(task)]
        return [name for name, first, last in _MBPP if any(first <= number <= last for number in numbers)]
    return [split] if (split := task.tags.get("split", "")) else []
