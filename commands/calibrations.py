"""calibrate.py with several folders: what their calibration.json hold, side by side and in one picture.

    show([Path("out"), Path("out/sql")], as_json=False)      the exit code

Nothing is calibrated here: a folder without a calibration is named, with the command that makes one. The picture lands
in the first folder, as calibrations.svg and .png.

Left out: the tables and the picture themselves (telling/overlay.py).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from commands.console import note, say
from commands.settings import Row
from faults import DONE, BadInput
from records import Folder, dumps
from telling.overlay import by_model, picture, side_by_side


def read(paths: Sequence[Path]) -> dict[str, Row]:
    """The calibration of each folder, under a name that tells it from the others."""
    twice = [path for n, path in enumerate(paths) if path.resolve() in [other.resolve() for other in paths[:n]]]
    if twice:
        raise BadInput(f"--out {twice[0]} is named twice: name each folder once")
    runs, found = [], []
    for path in paths:
        folder = Folder(path)
        config, made = folder.config, folder.read("calibration.json")
        if made is None:
            sql = config.get("command") == "sql_calibrate.py"
            command = "sql_calibrate.py --reuse" if sql else "calibrate.py"
            raise BadInput(f"{path} has no calibration yet: python {command} --out {shlex.quote(str(path))} makes it")
        runs.append((config["identity"]["model"] or "unnamed model", config["identity"]["tasks"], str(path)))
        found.append(made)
    return dict(zip(by_model(runs), found, strict=True))


def show(paths: Sequence[Path], as_json: bool) -> int:
    made = read(paths)
    say(dumps(made, indent=1) if as_json else side_by_side(made))
    for name, data in picture(made).items():
        (paths[0] / name).write_bytes(data)
        note(f"{paths[0] / name}")
    return DONE
