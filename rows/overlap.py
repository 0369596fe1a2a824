"""Does a task share a long run of words with a benchmark: n-gram overlap, as data sets for training are cleaned by it.

    benchmarks = Benchmarks.read(paths)         .jsonl, .json, .parquet, or a text file: every text in it
    benchmarks.shared(text)                     the words shared, or empty

Words are letters and digits in lower case, whatever stands between them; a run is WORDS of them (13, as in Brown et al.
2020, arXiv:2005.14165, appendix C). A benchmark's text shorter than that counts as a whole, from SHORTEST
words on, wherever in a task it stands (behind a title, in a bundle of five).
Left out: paraphrases, translations, and programs: a task is looked at by its title and statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from faults import BadInput
from tasksets.hub import parquet_cells

WORDS, SHORTEST = 13, 8
_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def runs(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Every run of WORDS words; of a shorter text all of it."""
    if SHORTEST <= len(words) < WORDS:
        yield words
    for start in range(len(words) - WORDS + 1):
        yield words[start : start + WORDS]


def _digest(words: Sequence[str]) -> bytes:
    return blake2b(" ".join(words).encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Benchmarks:
    """The runs of words of some files, eight bytes each. texts: how many were read."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = 0
        self._known: set[bytes] = set()
        self._sizes: set[int] = set()  # words of the runs: WORDS, and those of shorter texts
        for text in texts:
            self.texts += 1
            for run in runs(words_of(text)):
                self._known.add(_digest(run))
                self._sizes.add(len(run))

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Benchmarks:
        """BadInput for a file that cannot be read, or holds no text that is long enough."""
        made = cls(text for path in paths for text in _texts(path))
        if not made._known:
            raise BadInput(f"--decontaminate: no text of {SHORTEST} words there: name the benchmark's own files")
        return made

    def shared(self, text: str) -> str:
        """The first run of words that is in a benchmark too; empty where there is none."""
        words = words_of(text)
        found = (
            words[start : start + n] for n in sorted(self._sizes, reverse=True) for start in range(len(words) - n + 1)
        )
        return next((" ".join(run) for run in found if _digest(run) in self._known), "")


def _texts(path: Path) -> Iterator[str]:
    """Every text of a file, in whatever field."""
    try:
        if path.suffix == ".parquet":
            for cells in parquet_cells(path, None, batch_rows=16):
                for cell in cells.values():
                    yield from _within(cell.as_py())
        elif path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as lines:
                for line in filter(str.strip, lines):
                    yield from _within(json.loads(line))
        elif path.suffix == ".json":
            yield from _within(json.loads(path.read_text(encoding="utf-8")))
        else:
            yield path.read_text(encoding="utf-8")
    except (OSError, ValueError) as why:
        raise BadInput(
            f"--decontaminate {path} cannot be read ({why}): name a .jsonl, .json, .parquet or text file"
        ) from None


def _within(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _within(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _within(inner)
