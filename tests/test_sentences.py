"""Every sentence that is said of results stands in docs/sentences.md, with data on both sides of its condition."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.sentences import LIST, page
from tests.support.thin import thinned

ROOT = Path(__file__).parent.parent
SPOKEN = {  # where sentences are made: the functions, or all of a file
    "telling/words.py": (),
    "telling/short.py": (),
    "figures/said.py": (),
    "figures/compared.py": (),
    "figures/hill.py": ("hill",),
    "figures/plan.py": ("_runs_text", "_seeds_text", "one_of"),
    "figures/pool.py": ("_departures",),
    "telling/text.py": ("_arms_text", "_climb_text", "_hill_text", "plan_text", "_apart_text"),
    "telling/ahead.py": (),
    "telling/beside.py": (),
    "telling/runs.py": ("differing",),
    "report.py": ("sentences", "_together", "_apart_words"),
}
WORDS = 4  # a text of so many words is a sentence, or a part of one
# Texts that are no sentence of a run's results, and why.
OTHERWISE = {
    "a bootstrap over tasks, which is too narrow": "a note under a table, always",
    "finds more than resample": "what a word means, for a table",
    "finds less than resample": "as above",
    "shown to be as good": "as above",
    "neither a difference nor its absence": "as above",
    "(?P<who>": "finds warnings that are in the list",
    "no verdict by the plan|One of": "finds what a verdict begins with",
    "By its parent's fitness": "what a curve is called; the sentence is that of the fitness",
    "Is the judge a hill": "what its curve is called; the sentence is that of the fitness",
}
EVERY = [entry for entries in LIST.values() for entry in entries]


def texts(path: str, functions: tuple[str, ...]) -> Iterator[str]:
    """The fixed parts of all texts in a file's functions, without docstrings and what errors say."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Module)
    docs = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, kinds) and node.body}
    roots = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in functions] or [tree]
    todo = list(roots)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Raise) or (id(node) in docs and isinstance(node, ast.Expr)):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split())
        todo += ast.iter_child_nodes(node)


@cache
def printed() -> str:
    """All that the list prints, on its one side."""
    return " ".join(" ".join(side() for side in entry.on) for entry in EVERY).replace("\n", " ")


@pytest.mark.parametrize("title", thinned(LIST, 2))
def test_each_is_printed_at_its_edge_and_not_beyond(title: str) -> None:
    for entry in LIST[title]:
        for number, side in enumerate(entry.on):
            assert entry.says in side(), (entry.says, number)
        for number, side in enumerate(entry.off):
            assert entry.says not in side(), (entry.says, "beyond", number)
        assert entry.off or entry.when.startswith(("always", "a regrade")), entry.says


def test_every_sentence_of_the_source_is_in_the_list() -> None:
    told = " ".join(printed().split())
    lacking = [
        (path, text)
        for path, functions in SPOKEN.items()
        for text in texts(path, functions)
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= WORDS and " " in text and text not in told
    ]
    assert [(path, text) for path, text in lacking if not any(known in text for known in OTHERWISE)] == []


def test_the_page_is_made_of_the_list() -> None:
    assert (ROOT / "docs" / "sentences.md").read_text(encoding="utf-8") == page(), (
        "python -m tests.support.sentences > docs/sentences.md"
    )
