"""Data sets on a hub: their files, pinned and cached, and the rows of a parquet file.

    paths = fetch(repo, pinned, patterns, options, about)
    for cells in parquet_cells(path, columns, batch_rows): ...

Left out: what a row means (that is a task set's own business).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from faults import TaskError
from tasksets.task import About, Options, in_words

_BATCH = 4 << 20  # bytes of a parquet file that are read at once, in whole rows
Cells = dict[str, Any]  # column -> arrow scalar, so that what is not needed never becomes a Python object


def fetch(repo: str, pinned: str, patterns: tuple[str, ...], options: Options, about: About) -> list[Path]:
    """Local paths of a data set's files, one pattern after the other: from the cache, else from the hub.

    HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE count as everywhere. Raises TaskError."""
    import huggingface_hub
    from huggingface_hub import errors
    from huggingface_hub.utils import are_progress_bars_disabled
    from huggingface_hub.utils.logging import get_verbosity, set_verbosity, set_verbosity_error
    from tqdm import tqdm

    class Moving(tqdm):
        """A bar of bytes, drawn while some move and gone when it is done; the hub's own stay, empty ones too."""

        def __init__(self, *args: Any, **how: Any) -> None:
            shown = how.get("unit") == "B" and sys.stderr.isatty() and not are_progress_bars_disabled()
            super().__init__(*args, **{**how, "leave": False, "disable": not shown})

        def display(self, *args: Any, **how: Any) -> None:
            if self.n:
                super().display(*args, **how)

    revision = pinned if options.revision is None else options.revision
    if not revision.strip():
        raise TaskError("--revision is empty; name a commit, branch or tag, or leave it out for the pinned one")
    where = huggingface_hub.constants.ENDPOINT
    verbosity = get_verbosity()
    set_verbosity_error()  # of its retries, which end in one line of ours
    try:
        folder = huggingface_hub.snapshot_download(
            repo, repo_type="dataset", revision=revision, allow_patterns=list(patterns), tqdm_class=Moving
        )
    except errors.RevisionNotFoundError:
        raise TaskError(f"{where} has no revision {revision} of {repo}; name one that it has with --revision") from None
    except errors.RepositoryNotFoundError:
        raise TaskError(
            f"{where} has no data set {repo}, or does not show it to you; set HF_ENDPOINT to a hub that has it, "
            "or HF_TOKEN to a token that may read it"
        ) from None
    except errors.LocalEntryNotFoundError as error:
        if huggingface_hub.constants.HF_HUB_OFFLINE:
            raise TaskError(
                f"{repo} at {revision} is not whole in the cache and HF_HUB_OFFLINE is set; unset it for one run, "
                "or set HF_HOME to a cache that holds it"
            ) from None
        cause = in_words(error.__cause__ or error)
        raise TaskError(
            f"{repo} at {revision} is not in the cache and {where} did not give it ({cause}); check the network, "
            "set HF_ENDPOINT to a mirror, or name another --revision"
        ) from None
    except (errors.HTTPError, OSError) as error:
        raise TaskError(f"cannot download {repo} from {where}: {in_words(error)}; try again") from error
    finally:
        set_verbosity(verbosity)

    about.revision = Path(folder).name  # the commit, also where --revision names a branch
    paths: list[Path] = []
    for pattern in patterns:
        found = sorted(Path(folder).glob(pattern))
        shards = re.search(r"-of-(\d+)", found[0].name) if found else None
        if not found or (shards and len(found) != int(shards[1])):
            raise TaskError(
                f"{repo} at {revision} has {len(found)} files like {pattern}, not all it should; "
                "name another --revision, or empty the cache and download again"
            )
        paths += found
    return paths


def splits_of(options: Options, known: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The splits that are asked for. TaskError for a name that the data set does not have."""
    for name in options.splits:
        if name not in known:
            raise TaskError(f"--splits {name}: there are {', '.join(known)}; name some of these, or leave it out")
    return list(options.splits or usual)


def not_on_a_hub(options: Options, source: object) -> None:
    """TaskError for a --revision or --splits of what has none."""
    if options.splits:
        raise TaskError(f"--splits is for data sets on a hub and {source} is none; leave it out")
    if options.revision is not None:
        raise TaskError(f"--revision {options.revision} is for data sets on a hub and {source} is none; leave it out")


def parquet_cells(path: Path, columns: Iterable[str] | None, batch_rows: int) -> Iterator[Cells]:
    """The rows of a parquet file, batch_rows read at once or, where they are large, so many as make some MB."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        # Otherwise whole column chunks are read at once, and one of those may be as large as the file.
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            wanted = file.schema_arrow.names if columns is None else list(columns)
            missing = [name for name in wanted if name not in file.schema_arrow.names]
            if missing:
                raise TaskError(f"{path.name} has no column {', '.join(missing)}; name another --revision")
            size = sum(file.metadata.row_group(k).total_byte_size for k in range(file.metadata.num_row_groups))
            batch_rows = max(1, min(batch_rows, _BATCH * file.metadata.num_rows // max(size, 1)))
            for batch in file.iter_batches(batch_rows, columns=wanted, use_threads=False):
                for index in range(batch.num_rows):
                    yield {name: batch.column(name)[index] for name in wanted}
    except (arrow.ArrowException, OSError) as error:
        raise TaskError(f"cannot read {path}: {in_words(error)}; is it a whole parquet file?") from error
