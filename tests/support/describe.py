"""docs/results.md and docs/rows.md, made from the types: each key of what a run writes, each column of an export.

    python -m tests.support.describe > docs/results.md
    python -m tests.support.describe rows > docs/rows.md

What a key means stands once, behind its field: `n: int  # tasks`, longer ones on comment lines below it.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from figures.plan import SCHEMA_VERSION
from rows.columns import SCHEMA_VERSION as OF_ROWS
from rows.formats import FORMATS, columns_of, of_tasks

ROOT = Path(__file__).parents[2]
TARGET, TARGET_OF_ROWS = ROOT / "docs" / "results.md", ROOT / "docs" / "rows.md"
HEAD = f"""# What the files of a run hold

Made from the types of the source by `python -m tests.support.describe > docs/results.md`; a test compares the two, and
both with what a run really writes.

A share is a fraction from 0 to 1, an interval is `[lo, hi]` at 95%, and what cannot be estimated is null, beside its n.
The keys of the published files alone are in points (percent). What a number counts stands first: tasks, attempts,
seconds. `<arm>` is one key for each arm, `[]` one entry of a list.

`schema_version`, here {SCHEMA_VERSION}, is that of results.json, calibration.json and plan.json: it goes up when a key
is added, goes, or changes its meaning.
"""


HEAD_OF_ROWS = f"""# The columns of each format

Made from the types of the source by `python -m tests.support.describe rows > docs/rows.md`; a test compares the two,
and both with what `python export.py --format NAME` really writes.

A column has one type in every file. Nothing is null: text that is not known is empty. `[]` is one entry of a list.
`schema_version`, here {OF_ROWS}, goes up when a column is added, goes, or changes its meaning. No format holds a prompt
that a swarm wrote; hidden tests are in `ground_truth` alone. The splits `train` and `test` are files of these names; a
task is in one of them, and `--held-back` says how many are in the second.
"""


class Field(NamedTuple):
    name: str
    type: ast.expr
    said: str


class Key(NamedTuple):
    """A key as the page names it: dotted, <arm> for any arm, [] for an entry of a list."""

    path: str
    type: str
    said: str
    optional: bool


class Types:
    """The classes and aliases of a source file, or of several as if they were one."""

    def __init__(self, *paths: Path) -> None:
        text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
        tree = ast.parse(text)
        tokens = tokenize.generate_tokens(StringIO(text).readline)
        comments = [token for token in tokens if token.type == tokenize.COMMENT]
        self.comments = {token.start[0]: token.string.lstrip("# ") for token in comments}
        self.alone = {token.start[0] for token in comments if token.line.lstrip().startswith("#")}
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.aliases = {  # name -> the line it stands in
            node.targets[0].id: node.lineno
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }

    def fields(self, name: str) -> Iterator[Field]:
        node = self.classes[name]
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                yield from self.fields(base.id)
        for at in node.body:
            if isinstance(at, ast.AnnAssign) and isinstance(at.target, ast.Name):
                line = at.end_lineno or 0
                said = self.comments.get(line, "")
                while said and (line := line + 1) in self.alone:
                    said += " " + self.comments[line]
                yield Field(at.target.id, at.annotation, said)

    def keys(self, name: str, before: str = "") -> Iterator[Key]:
        """Every key of the class, and of what is in it."""
        for field in self.fields(name):
            kind, optional = field.type, False
            if isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "NotRequired":
                kind, optional = kind.slice, True
            yield Key(before + field.name, self.said(kind), field.said, optional)
            yield from self.within(kind, before + field.name)

    def within(self, kind: ast.expr, path: str) -> Iterator[Key]:
        if isinstance(kind, ast.BinOp):  # X | None, or a row beside a label
            yield from self.within(kind.left, path)
        elif isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "list":
            yield from self.within(kind.slice, path + "[]")
        elif isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "dict":
            assert isinstance(kind.slice, ast.Tuple)
            of, value = kind.slice.elts
            inner = list(self.within(value, f"{path}.<{self.key_name(of)}>"))
            lines = [self.aliases.get(ast.unparse(side), 0) for side in (value, of)]
            said = next((self.comments[line] for line in lines if line in self.comments), "")
            yield from inner or [Key(f"{path}.<{self.key_name(of)}>", self.said(value), said, False)]
        elif isinstance(kind, ast.Name) and kind.id in self.classes:
            yield from self.keys(kind.id, path + ".")

    def key_name(self, kind: ast.expr) -> str:
        name = ast.unparse(kind)
        return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()

    def said(self, kind: ast.expr) -> str:
        """A type for a reader: object for a class, an interval for a Pair."""
        if isinstance(kind, ast.BinOp):
            return f"{self.said(kind.left)} | {self.said(kind.right)}"
        if isinstance(kind, ast.Subscript):
            name = ast.unparse(kind.value)
            if name == "list":
                return f"list of {self.said(kind.slice)}"
            if name == "dict":
                assert isinstance(kind.slice, ast.Tuple)
                return f"{self.said(kind.slice.elts[1])} by {self.key_name(kind.slice.elts[0])}"
            return "[in, out]"
        name = ast.unparse(kind)
        names = {"None": "null", "str": "text", "int": "whole", "float": "number", "Any": "any", "Pair": "[lo, hi]"}
        return "object" if name in self.classes else names.get(name, "text" if name in self.aliases else name)


RESULTS = Types(ROOT / "figures" / "results.py", ROOT / "figures" / "costs.py")
FILES = {
    "results.json": (RESULTS, "Results"),
    "attempts.jsonl": (Types(ROOT / "swarm.py"), "Attempt"),
    "rescued.jsonl": (Types(ROOT / "rows" / "columns.py"), "Rescue"),
    "passing.jsonl": (Types(ROOT / "rows" / "columns.py"), "Passing"),
}
LINES = {
    "attempts.jsonl": "A line an attempt.",
    "rescued.jsonl": "A line a distinct passing program of the arms.",
    "passing.jsonl": "A line a distinct query that matches, of `sql_calibrate.py`, where the others say program.",
}


def keys_of(file: str) -> list[Key]:
    types, name = FILES[file]
    return list(types.keys(name))


def page() -> str:
    parts = [HEAD]
    for file in FILES:
        parts.append(f"## {file}\n")
        if file in LINES:
            parts.append(LINES[file] + "\n")
        parts.append("| key | holds | what |\n|---|---|---|")
        for key in keys_of(file):
            absent = "may be absent: " if key.optional and "absent" not in key.said else ""
            parts.append(f"| `{key.path}` | {key.type.replace('|', 'or')} | {absent}{key.said} |")
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


COLUMNS = Types(ROOT / "rows" / "columns.py")


def columns(name: str) -> list[Key]:
    """The columns of a format, those of its own before what it shares with others."""
    keys = list(COLUMNS.keys(columns_of(name).__name__))
    shared = {key.path for base in ("Origin", "Passes") for key in COLUMNS.keys(base)}
    return sorted(keys, key=lambda key: key.path in shared)


def page_of_rows() -> str:
    parts = [HEAD_OF_ROWS]
    for name in FORMATS:
        kind = "parquet" if name.startswith("verl-") else "jsonl"
        parts.append(f"## {name}\n\nA row a {'task' if of_tasks(name) else 'program'}, in `.{kind}`.\n")
        parts.append("| column | holds | what |\n|---|---|---|")
        parts += [f"| `{key.path}` | {key.type} | {key.said} |" for key in columns(name)]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(page_of_rows() if sys.argv[1:] == ["rows"] else page(), end="")
