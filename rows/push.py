"""An export onto a hub: the folder of one format as a data set, private unless it is asked to be public.

HF_ENDPOINT and HF_TOKEN count as everywhere. What a hub refuses is one line that says what to do.
Left out: deleting, merging, or asking whether the name is taken: files of the same name are replaced by a new commit.
"""

from __future__ import annotations

import sys
from pathlib import Path

from faults import BadInput
from tasksets.task import in_words


def push(folder: Path, name: str, public: bool) -> str:
    """The address of the data set. BadInput where the hub does not take it."""
    import huggingface_hub
    from huggingface_hub import errors
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    hub = huggingface_hub.HfApi(library_name="swarm-rescue")
    quiet = not sys.stderr.isatty() and not are_progress_bars_disabled()
    if quiet:
        disable_progress_bars()
    try:
        made = hub.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
        if not public and hub.dataset_info(made.repo_id).private is False:  # it was there before
            raise BadInput(f"{made} is there and everybody may read it: give --public, or another name")
        hub.upload_folder(
            repo_id=made.repo_id, repo_type="dataset", folder_path=folder, commit_message="Rows of swarm-rescue",
            delete_patterns=["train.*", "test.*"],  # of another format, or a part that is no more
        )  # fmt: skip
    except errors.HFValidationError as why:
        raise BadInput(f"--push {name}: {in_words(why)}; give NAME or OWNER/NAME") from None
    except errors.HfHubHTTPError as why:
        status = why.response.status_code if why.response is not None else None
        cure = "set HF_TOKEN to a token that may write there" if status in (401, 403) else "try again"
        raise BadInput(
            f"{hub.endpoint} did not take {name} ({in_words(why)}): {cure}; the files are in {folder}"
        ) from None
    except (errors.HTTPError, errors.LocalTokenNotFoundError, OSError) as why:
        cure = "set HF_TOKEN to a token that may write there, and HF_ENDPOINT where it is another hub"
        raise BadInput(f"cannot push to {hub.endpoint} ({in_words(why)}): {cure}; the files are in {folder}") from None
    finally:
        if quiet:
            enable_progress_bars()
    return str(made)
