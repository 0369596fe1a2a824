"""CodeContests (Li et al. 2022, Science 378, 1092), its test and valid splits or those asked for: stdin in, stdout out.

visible = public + the first 8 generated tests; hidden = private + the next 32; spare = the other generated.
Left out and counted: what one run on standard input cannot judge. The data set's own time limits are not
used: they are meant for its C++ programs.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from typing import Any

from tasksets.hub import Cells, fetch, parquet_cells, splits_of
from tasksets.task import About, Options, Task, Test, unseen

CODE_CONTESTS = "deepmind/code_contests"
CODE_CONTESTS_REVISION = "802411c3010cb00d1b05bad57ca77365a3c699d6"
VISIBLE_GENERATED = 8  # generated tests shown beside the public ones
HIDDEN_GENERATED = 32  # further generated tests that decide a pass beside the private ones
PYTHON3 = 3  # the data set's number of a language

_INTERACTIVE = re.compile(
    r"(?<!non-)(?<!not )(?<!not an )(?<!n't an )\binteractive (?:problem|task)\b|\b(?:problem|task) is interactive\b"
    r"|^interaction$|\binteractor\b|\bflush(?:ing)? (?:the )?(?:standard )?(?:output|stdout)\b|\bfflush\(stdout\)",
    re.IGNORECASE | re.MULTILINE,
)
_STANDARD_STREAMS = {"", "stdin", "stdout", "standard input", "standard output"}


def code_contests(options: Options, about: About) -> Iterator[Task]:
    """A task a problem that can be used."""
    about.licence = "CC BY 4.0"
    columns = ["name", "description", "public_tests", "private_tests", "generated_tests", "cf_rating"]
    columns += ["input_file", "output_file"]
    columns += ["solutions"] if options.spare or options.references else []
    columns += ["incorrect_solutions"] if options.references else []
    patterns = tuple(f"data/{split}-*" for split in splits_of(options, ("train", "valid", "test"), ("test", "valid")))
    ratings, rows = [], 0
    for path in fetch(CODE_CONTESTS, CODE_CONTESTS_REVISION, patterns, options, about):
        split = path.name.split("-")[0]
        for cells in parquet_cells(path, columns, batch_rows=1):
            rows += 1
            task = _contest_task(cells, split, options, about)
            if isinstance(task, str):
                about.left_out[task] += 1
            else:
                ratings += [cells["cf_rating"].as_py()] if task.tags["rating"] != "unrated" else []
                yield task
    about.median_rating = statistics.median(ratings) if ratings else None
    usable = f"{rows - about.left_out.total()} of {rows} problems can be used"
    published = "; the published run used 275, which it got by dropping interactive ones"
    about.notes.append(usable + ("" if options.splits else published))


def _contest_task(cells: Cells, split: str, options: Options, about: About) -> Task | str:
    """The task of one row, or the reason to leave it out."""
    name = cells["name"].as_py() or ""
    statement = cells["description"].as_py() or ""
    numbered = re.fullmatch(r"(\d+_\w+)\. (.*)", name, re.DOTALL)
    task_id = f"cc-{split}-{numbered[1] if numbered else re.sub(r'[^0-9A-Za-z]+', '-', name)}"

    if _INTERACTIVE.search(statement):
        return "interactive"
    if {(cells[side].as_py() or "").strip().lower() for side in ("input_file", "output_file")} - _STANDARD_STREAMS:
        return "with a named input or output file"
    generated_wanted = None if options.spare else VISIBLE_GENERATED + HIDDEN_GENERATED
    public = _contest_tests(cells["public_tests"], "public")
    private = _contest_tests(cells["private_tests"], "private")
    generated = _contest_tests(cells["generated_tests"], "generated", generated_wanted)
    if public is None or private is None or generated is None:
        about.notes.append(f"{task_id} ({name}) has inputs and outputs of unequal number")
        return "with inputs and outputs of unequal number"
    visible = public + generated[:VISIBLE_GENERATED]
    hidden = private + generated[VISIBLE_GENERATED : VISIBLE_GENERATED + HIDDEN_GENERATED]
    hidden = unseen(visible, hidden, options, about)
    if not visible:
        return "without a visible test"
    if not hidden:
        return "without a hidden test"

    references = _python(cells["solutions"], max(options.references, 1)) if "solutions" in cells else ()
    repaired = _repaired(statement)
    about.repaired_statements += repaired != statement
    return Task(
        id=task_id,
        title=_repaired(numbered[2] if numbered else name),
        statement=repaired,
        kind="stdio",
        visible=visible,
        hidden=hidden,
        spare=generated[VISIBLE_GENERATED + HIDDEN_GENERATED :],
        tags={"rating": _rating_band(cells["cf_rating"].as_py()), "split": split},
        reference=references[0] if references else "",
        references=references,
        incorrect=_python(cells["incorrect_solutions"], options.references) if options.references else (),
    )


def _contest_tests(cell: Any, source: str, wanted: int | None = None) -> tuple[Test, ...] | None:
    """The first `wanted` tests of a column of {input: [text], output: [text]}; None where the two do not pair up."""
    sides = [cell[side].values if cell.is_valid and cell[side].is_valid else [] for side in ("input", "output")]
    if len(sides[0]) != len(sides[1]):
        return None
    texts = [[text.as_py() for text in side[:wanted]] for side in sides]
    if None in texts[0] or None in texts[1]:
        return None
    return tuple(Test(stdin, stdout, source) for stdin, stdout in zip(*texts, strict=True))


def _rating_band(rating: int | None) -> str:
    if not rating:  # 0 stands for unknown
        return "unrated"
    return "<1500" if rating < 1500 else "1500-2199" if rating < 2200 else "2200+"


def _python(solutions: Any, most: int) -> tuple[str, ...]:
    """The first stored Python 3 programs. Accepted or rejected by their judge: audits ask what these tests say."""
    if not solutions.is_valid:
        return ()
    languages = solutions["language"].as_py() or []
    at = [i for i, language in enumerate(languages) if language == PYTHON3][:most]
    return tuple(solutions["solution"].values[i].as_py() for i in at)


def _repaired(text: str) -> str:
    """UTF-8 that was once decoded as cp1252 ("â‰¤"), decoded right; any other text as it is. For statements only.

    The whole text must make sense the other way: one character that cp1252 does not have, or one stray accent,
    and nothing is touched. cp1252 leaves five bytes undefined, which such decoders pass through."""
    if text.isascii():
        return text
    try:
        return b"".join(c.encode("cp1252") if c not in _UNDEFINED else bytes([ord(c)]) for c in text).decode()
    except UnicodeError:
        return text


_UNDEFINED = "\x81\x8d\x8f\x90\x9d"
