"""Every attack of hostile.py, in every tier that promises to stop it, as root and as an ordinary user.

No pass, no fault, no process or file left behind, the next honest program right, and this side's memory flat.
The quick suite runs one attack of each kind in the best tier; `pytest -m slow tests/test_attacks.py` runs them all, the
ones that run into a limit once more with the limits of every day.

Attacks run in a child process under its own process namespace where the system grants one: in tier limits nothing
but that stands between a kill of everybody and this machine, so without one the signal attacks are not run there.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.hostile import ATTACKS

ROOT = Path(__file__).parent.parent
TIERS = ("full", "strict", "limits")
GROWTH_MB = 20
ORDINARY = 54321  # a user id that owns nothing

# One of each kind, for every run of the suite.
QUICK = (
    "read_own_memory read_frames_and_objects read_descriptors read_files equal_object equal_int equal_patched_builtins "
    "equal_through_setup_and_math value_shared_list value_endless_iterator exit_os_exit exit_in_atexit exit_close_all "
    "late_exit_3 late_hang late_spin late_kill_itself late_eat late_write late_stop_itself forge_on_every_descriptor "
    "forge_parents_limits signal_sigkill signal_sigstop process_fork process_exec process_thread_bomb "
    "bomb_disk_and_swallow bomb_stderr source_minus source_surrogate source_parentheses state_own_folder state_tmp "
    "state_shared_segment memory_of_an_earlier_input memory_of_an_earlier_output memory_of_an_earlier_call "
    "patch_all_functions patch_exit_functions_assert"
).split()


def contained() -> list[str]:
    """The words before a command that give it a process namespace, or none."""
    words = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    for extra in ([], ["--user", "--map-current-user"]):
        try:
            subprocess.run([*words, *extra, "true"], check=True, capture_output=True, timeout=10)
        except (OSError, subprocess.SubprocessError):
            continue
        return [*words, *extra]
    return []


def interpreter(user: str) -> str | None:
    """A Python that this user can run: the one we are, or the system's where ours lies in a private folder."""
    for python in dict.fromkeys([sys.executable, "/usr/bin/python3"]):
        # setpriv may still reach a program that its user cannot start again
        fit = "import os, sys; sys.exit(sys.version_info < (3, 11) or not os.access(sys.executable, os.X_OK))"
        command = [python, "-c", fit]
        if user == "ordinary" and os.geteuid() == 0:
            command = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", *command]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=20)
        except (OSError, subprocess.SubprocessError):
            continue
        return python
    return None


@pytest.fixture(scope="session")
def fight():
    """(user, tier, names) -> name -> what became of it; each fought once."""
    done: dict[tuple[str, str, str], dict[str, dict]] = {}
    folder = Path(tempfile.mkdtemp(prefix="arena-"))
    for path in [*ROOT.glob("*.py"), *ROOT.glob("*/*.py"), ROOT / "tests/support/hostile.py"]:
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)

    def of(user: str, tier: str, names: tuple[str, ...] = ()) -> dict[str, dict]:
        key = (user, tier, " ".join(names))
        if key not in done:
            done[key] = fought(folder, user, tier, names)
        return done[key]

    yield of
    shutil.rmtree(folder)


def fought(folder: Path, user: str, tier: str, names: tuple[str, ...]) -> dict[str, dict]:
    if user == "root" and os.geteuid() != 0:
        pytest.skip("not root here")
    python = interpreter(user)
    if python is None:
        pytest.skip("no Python of 3.11 or newer that an ordinary user can run")
    prefix = contained()
    if user == "ordinary" and os.geteuid() == 0:
        prefix += ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
    elif not prefix and tier.startswith("limits"):
        pytest.skip("no process namespace to fight in, and tier limits does not stop a kill of everybody")
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(folder), "HOME": "/tmp", "LANG": "C.UTF-8"}
    best = tier.partition("/")[0]
    chosen = names or tuple(name for name, attack in ATTACKS.items() if best in attack.tiers.split())
    arenas = min(3 if len(chosen) > 100 else 2, len(chosen))  # most attacks wait for a limit most of the time

    def one(number: int) -> subprocess.CompletedProcess[str]:
        command = [*prefix, python, str(folder / "tests/support/hostile.py"), tier, *chosen[number::arenas]]
        return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=1200)

    rows: dict[str, dict] = {}
    with ThreadPoolExecutor(arenas) as pool:
        for ran in pool.map(one, range(arenas)):
            if "no tier of the sandbox works here" in ran.stderr and "self-test" not in ran.stderr:
                pytest.skip(ran.stderr.split("\n")[-2])
            assert ran.returncode == 0, ran.stderr[-3000:]
            for row in map(json.loads, ran.stdout.split("\n")[:-1]):
                row["left"] += rows.get(row["name"], {"left": []})["left"]
                rows[row["name"]] = row
    return rows


def held(row: dict, growth_mb: float = GROWTH_MB) -> None:
    assert row["fault"] == "", row
    assert "pass" not in row["outcomes"], row
    assert row["good"], row
    assert row["left"] == [], row
    assert row["grown"] < growth_mb, row


# What runs into a limit or dies early, for the one run with the limits of every day.
_LATE = "late_ killed_ raw_ source_ value_shared value_nested bomb_disk bomb_folders bomb_stderr process_thread"
EVERY_DAY = tuple(_LATE.split())


def lost_ones(rows: dict[str, dict], growth_mb: float = GROWTH_MB) -> dict[str, dict]:
    lost = {}
    for name, row in rows.items():
        try:
            if name == "at_the_end":
                assert row["left"] == []
            else:
                held(row, growth_mb)
        except AssertionError:
            lost[name] = row
    return lost


def test_one_attack_of_each_kind(fight):
    """One test, not one for each: side by side they would be fought twice, each beside the other."""
    rows = fight("root" if os.geteuid() == 0 else "ordinary", "full", tuple(QUICK))
    assert lost_ones(rows) == {}
    assert set(rows) == {*QUICK, "at_the_end"}


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("user", ["root", "ordinary"])
def test_every_attack(fight, user, tier):
    rows = fight(user, tier)
    assert lost_ones(rows) == {}
    assert set(rows) == {name for name, attack in ATTACKS.items() if tier in attack.tiers.split()} | {"at_the_end"}


@pytest.mark.slow
def test_attacks_with_the_limits_of_every_day(fight):
    names = tuple(name for name in ATTACKS if name.startswith(EVERY_DAY))
    rows = fight("root" if os.geteuid() == 0 else "ordinary", "full/default", names)
    # the allocator keeps room for two outputs of 16 MiB, once, however many follow
    assert lost_ones(rows, GROWTH_MB + 2 * 16.8) == {}
    assert set(rows) == {*names, "at_the_end"}
