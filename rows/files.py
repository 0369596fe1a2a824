"""Rows into files: one folder a format, with train and test part and the card, in place as a whole or not at all.

    with placed(folder) as new:                      a new folder beside it, that takes its place at the end
        counts = write(new, "trl", choice)           {"train": 27} by part

Lines of JSON in ASCII, or parquet with the schema of the columns. Half a surrogate pair, which no tokenizer takes and
no parquet file can hold, becomes U+FFFD.
Left out: what a row holds (rows/formats.py), what the card says (rows/card.py).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faults import BadInput, DiskFault
from records import dumps
from rows.columns import schema
from rows.formats import FORMATS, columns_of
from rows.found import Choice

PARTS = ("train", "test")
_OURS = re.compile(rf"README\.md|({'|'.join(PARTS)})\.(jsonl|parquet)")
_BATCH = 32 << 20  # bytes of text in a row group of a parquet file


def suffix(name: str) -> str:
    return "parquet" if name.startswith("verl-") else "jsonl"


@contextlib.contextmanager
def placed(folder: Path) -> Iterator[Path]:
    """A new folder that takes the place of an older export. BadInput where the place holds anything else."""
    if folder.exists() and (not folder.is_dir() or any(not _OURS.fullmatch(each.name) for each in folder.iterdir())):
        raise BadInput(f"{folder} holds other things than an export: name another folder with --to")
    new = folder.with_name(f".{folder.name}.new")
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        yield new
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(new, folder)
    except OSError as why:
        mend = "see who may write there and whether there is room, or use another --to"
        raise DiskFault(f"{folder} cannot be written ({why.strerror or why}): {mend}") from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write(folder: Path, name: str, choice: Choice) -> Counter[str]:
    """All rows of a format, by part: how many each got."""
    counts: Counter[str] = Counter()
    with contextlib.ExitStack() as open_files:
        kind: type[_Lines | _Parquet] = _Parquet if suffix(name) == "parquet" else _Lines

        def opened(part: str) -> _Lines | _Parquet:
            file: _Lines | _Parquet = kind(folder / f"{part}.{suffix(name)}", columns_of(name))
            open_files.enter_context(file)
            return file

        parts = {part: opened(part) for part in (PARTS if choice.held_back else PARTS[:1])}
        for row in FORMATS[name](choice):
            part = choice.split(_task_of(row))
            parts[part].add(_as_text(row))
            counts[part] += 1
    return counts


def _task_of(row: dict[str, Any]) -> str:
    task_id: str = row["task_id"] if "task_id" in row else row["extra_info"]["task_id"]
    return task_id


def _as_text(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {key: _as_text(each) for key, each in value.items()}
    return [_as_text(each) for each in value] if isinstance(value, list) else value


class _Lines:
    """A .jsonl file being written."""

    def __init__(self, path: Path, columns: type) -> None:
        self.file = path.open("w", encoding="ascii")

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *raised: object) -> None:
        self.file.close()

    def add(self, row: dict[str, Any]) -> None:
        self.file.write(dumps(row) + "\n")


class _Parquet:
    """A .parquet file being written."""

    def __init__(self, path: Path, columns: type) -> None:
        import pyarrow.parquet as parquet

        self.schema = schema(columns)
        self.file = parquet.ParquetWriter(path, self.schema)
        self.rows: list[dict[str, Any]] = []
        self.size = 0

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None:
            self._flush()
        self.file.close()

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self.size += len(str(row.get("reward_model", ""))) + 4096
        if self.size > _BATCH:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as arrow

        if self.rows:
            self.file.write_table(arrow.Table.from_pylist(self.rows, self.schema))
        self.rows, self.size = [], 0
