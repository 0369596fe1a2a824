"""Calibrations of several runs side by side: their names, their rows, the picture, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import calibrate
import sql_calibrate
from records import dumps
from telling.curves import curve
from telling.overlay import by_model, letters, panels, picture, side_by_side


def hill(passes: int, buckets: tuple[str, ...] = ()) -> dict:
    """Twenty answers without a passed test, and ten with every one, of which so many pass."""
    rows = [(0.0, False, f"t{k}") for k in range(20)] + [(1.0, k < passes, f"t{k}") for k in range(10)]
    return {"fitness": curve(rows, *([buckets] if buckets else [])), "tests": "fitness: visible"}


def folder(path: Path, model: str, tasks: str, made: dict | None, command: str = "run.py") -> str:
    path.mkdir(parents=True)
    config = {"identity": {"model": model, "tasks": tasks}, "plan": {}, "command": command}
    (path / "config.json").write_text(dumps(config))
    if made:
        (path / "calibration.json").write_text(dumps(made))
    return str(path)


def show(capsys, *argv: str) -> tuple[int, str, str]:
    try:
        code = calibrate.main(list(argv))
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_run_is_named_by_its_model_and_by_as_much_more_as_tells_it_apart():
    assert by_model([("Qwen/4B", "cc", "a"), ("Qwen/27B", "cc", "b")]) == ["4B", "27B"]
    assert by_model([("Qwen/4B", "cc", "a"), ("Qwen/4B", "g/sql", "b")]) == ["4B on cc", "4B on sql"]
    assert by_model([("x/4B", "cc", "a"), ("y/4B", "cc", "b")]) == ["4B on cc, a", "4B on cc, b"]
    names = letters()
    assert [next(names) for _ in range(28)][24:] == ["Y", "Z", "AA", "AB"]


@pytest.mark.slow
def test_every_run_has_its_row_in_every_bucket_with_its_unit(tmp_path, capsys):
    sql = hill(9, sql_calibrate.BUCKETS)
    paths = [folder(tmp_path / "a", "Qwen/4B", "cc", hill(3)), folder(tmp_path / "b", "Qwen/27B", "cc", hill(6))]
    paths.append(folder(tmp_path / "sql", "Qwen/4B-sql", "gretel", sql, "sql_calibrate.py"))
    code, out, err = show(capsys, *(word for path in paths for word in ("--out", path)))
    assert code == 0 and max(map(len, out.splitlines())) <= 80
    assert "A 4B: 30 answers to 20 tasks; fitness: visible." in out and "C 4B-sql: " in out
    rows = [line.split() for line in out.splitlines()]
    head = next(row for row in rows if row[:2] == ["by", "fitness"])
    assert head[2:] == ["run", "answers", "passes", "%", "that", "pass", "[95%]"]
    assert [row[:5] for row in rows if row[:2] == ["all", "A"]] == [["all", "A", "10", "3", "30.0"]]
    at = rows.index(next(row for row in rows if row[:2] == ["all", "A"]))
    assert [rows[at + k][:4] for k in (1, 2)] == [["B", "10", "6", "60.0"], ["C", "10", "9", "90.0"]]
    assert ["none", "A", "20", "0", "0.0"] in [row[:5] for row in rows]
    assert str(tmp_path / "a" / "calibrations.png") in err and not (tmp_path / "b" / "calibrations.png").exists()
    svg = (tmp_path / "a" / "calibrations.svg").read_text()
    assert all(
        name in svg for name in ("4B: ", "27B: ", "4B-sql: ", "below all")
    )  # what both kinds of tests are called
    both = picture({"4B": hill(3), "27B": hill(6)})
    assert both == picture({"4B": hill(3), "27B": hill(6)}) and b"to all but one" in both["calibrations.svg"]
    code, out, _ = show(capsys, "--out", paths[0], "--out", paths[1], "--json")
    assert code == 0 and list(json.loads(out)) == ["4B", "27B"]


def test_a_curve_that_one_run_alone_has_is_no_comparison():
    one, two = hill(3), hill(6)
    one["by_parent"] = one["fitness"]
    assert [panel.title for panel in panels({"a": one, "b": two})] == ["by fitness"]
    two["by_parent"] = two["fitness"]
    assert len(panels({"a": one, "b": two})) == 2
    empty = {"fitness": curve([]), "tests": "none"}
    assert panels({"a": empty, "b": {"judge": one["fitness"]}}) == [] and picture({"a": empty}) == {}
    assert "b: no curve of the fitness, a judge alone." in side_by_side({"a": empty, "b": {"judge": one["fitness"]}})


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (["--out", "a/"], "a is named twice: name each folder once"),
        (["--out", "none"], "none holds no run"),
        (["--out", "b"], "b has no calibration yet: python calibrate.py --out b makes it"),
        (["--out", "sql"], "sql has no calibration yet: python sql_calibrate.py --reuse --out sql makes it"),
        (["--out", "c", "--judge"], "leave --judge and --records out"),
        (["--out", "c", "--records"], "leave --judge and --records out"),
    ],
)
def test_what_cannot_be_shown_is_one_line(tmp_path, capsys, monkeypatch, second, said):
    monkeypatch.chdir(tmp_path)
    folder(Path("a"), "m", "cc", hill(3))
    folder(Path("b"), "m", "cc", None)
    folder(Path("c"), "m", "cc", hill(3))
    folder(Path("sql"), "m", "cc", None, "sql_calibrate.py")
    code, out, err = show(capsys, "--out", "a", *second)
    assert code == 2 and out == "" and err.count("\n") == 1 and said in err
