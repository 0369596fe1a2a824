"""Every attack of hostile.py, in every tier that promises to stop it, as root, as an ordinary user, and as its owner.

No pass, no fault, no process or file left behind, the next honest program and those beside it right, this side's memory
flat, and no more CPU taken than twice the attack's own. (The owner is an ordinary user to whom the Python itself
belongs, as to most who install one: the kernel allows an owner more than others.)
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
USERS = ("root", "ordinary", "owner")
ORDINARY = 54321  # a user id that owns nothing, but for a copy of Python where it is "owner"
# What an owner is fought with: the kernel asks who owns what these lay hands on.
OF_OWNERS = (
    "cycle_ lease_ watch_ signals_from thread_bomb reach_ network_ descriptor_ asleep_ read_files read_mem read_desc "
    "state_ forge_flags signal_sig process_thread bomb_disk"
).split()
SMALL_DISK = 1200  # MB

# One of each kind, for every run of the suite.
QUICK = (
    "read_own_memory equal_object exit_close_all forge_on_every_descriptor signal_sigstop process_fork state_tmp "
    "memory_of_an_earlier_call patch_exit_functions_assert cycle_of_both_ends"
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


def as_user(user: str) -> list[str]:
    """The words before a command that make it another user's; none where we are no root."""
    if user == "root" or os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]


def interpreter(user: str, folder: Path) -> str | None:
    """A Python that this user can run: the one we are, or the system's where ours lies in a private folder.

    folder: where a copy can be put that is its user's own.
    """
    fit = "import os, sys; os_py = os.__file__; "
    fit += "print(os.path.realpath(sys.executable), os.path.dirname(os_py), os.stat(os_py).st_uid)"
    fit += "; sys.exit(sys.version_info < (3, 11) or not os.access(sys.executable, os.X_OK))"
    for python in dict.fromkeys([sys.executable, "/usr/bin/python3"]):
        # setpriv may still reach a program that its user cannot start again
        command = [*as_user(user), python, "-c", fit]
        try:
            ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.SubprocessError):
            continue
        binary, library, owner = ran.stdout.split()
        if user != "owner" or (os.geteuid() != 0 and int(owner) == os.geteuid()):
            return python
        if os.geteuid() != 0:
            return None
        own = folder / "own"
        if not own.exists():
            (own / "bin").mkdir(parents=True)
            shutil.copy(binary, own / "bin")
            left = shutil.ignore_patterns(
                "test", "*-packages", "config-*", "idlelib", "ensurepip", "EXTERNALLY-MANAGED"
            )
            shutil.copytree(library, own / "lib" / Path(library).name, ignore=left, ignore_dangling_symlinks=True)
            subprocess.run(["chown", "-R", f"{ORDINARY}:{ORDINARY}", own], check=True)
        return str(own / "bin" / Path(binary).name)
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

    def of(user: str, tier: str, names: tuple[str, ...] = (), disk: str = "") -> dict[str, dict]:
        key = (user, tier, " ".join(names))
        if key not in done:
            done[key] = fought(folder, user, tier, names, disk)
        return done[key]

    yield of
    shutil.rmtree(folder)


def fought(folder: Path, user: str, tier: str, names: tuple[str, ...], disk: str = "") -> dict[str, dict]:
    """disk: an image that is mounted for them alone, and holds their temporary files."""
    if user == "root" and os.geteuid() != 0:
        pytest.skip("not root here")
    python = interpreter(user, folder)
    if python is None:
        pytest.skip(f"no Python of 3.11 or newer for the user called {user}")
    prefix = contained()
    if disk:
        mount = f'mkdir -p {disk}.on && mount -o loop {disk} {disk}.on && chmod 1777 {disk}.on && exec "$@"'
        prefix += ["sh", "-c", mount, "sh"]
    if not prefix and not as_user(user) and tier.startswith("limits"):
        pytest.skip("no process namespace to fight in, and tier limits does not stop a kill of everybody")
    prefix += as_user(user)
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(folder), "HOME": "/tmp", "LANG": "C.UTF-8"}
    if disk:
        environment["TMPDIR"] = f"{disk}.on"
    best = tier.partition("/")[0]
    chosen = names or tuple(name for name, attack in ATTACKS.items() if best in attack.tiers.split())
    # most attacks wait for a limit most of the time
    arenas = 1 if disk else min(3 if len(chosen) > 100 else 2, len(chosen))

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


# What is over soon, and must cost the grader little: less than twice its own CPU, and half a second at a bad moment.
FRUGAL = tuple("cycle_ lease_ watch_ signals_ asleep_ reach_ network_ descriptor_ threads_ state_ late_ exit_".split())


def held(row: dict, growth_mb: float = GROWTH_MB) -> None:
    assert row["fault"] == "", row
    assert "pass" not in row["outcomes"], row
    assert row["good"], row
    assert not row["name"].startswith(FRUGAL) or row["taken"] < 2 * row["own"] + 0.5, row
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
@pytest.mark.parametrize("user", USERS)
def test_every_attack(fight, user, tier):
    names = [name for name, attack in ATTACKS.items() if tier in attack.tiers.split()]
    if user == "owner":
        names = [name for name in names if name.startswith(tuple(OF_OWNERS))]
    rows = fight(user, tier, tuple(names))
    assert lost_ones(rows) == {}
    assert set(rows) == {*names, "at_the_end"}


@pytest.mark.slow
def test_attacks_on_a_small_disk(fight, tmp_path):
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("no disk can be made here")
    with tempfile.NamedTemporaryFile(suffix=".disk") as image:
        image.truncate(SMALL_DISK << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image.name], check=True)
        names = tuple(name for name in ATTACKS if name.startswith("disk_"))
        rows = fight("ordinary", "strict/default", names, image.name)
    assert lost_ones(rows, GROWTH_MB + 2 * 16.8) == {}
    assert set(rows) == {*names, "at_the_end"}


@pytest.mark.slow
def test_attacks_with_the_limits_of_every_day(fight):
    names = tuple(name for name in ATTACKS if name.startswith(EVERY_DAY))
    rows = fight("root" if os.geteuid() == 0 else "ordinary", "full/default", names)
    # the allocator keeps room for two outputs of 16 MiB, once, however many follow
    assert lost_ones(rows, GROWTH_MB + 2 * 16.8) == {}
    assert set(rows) == {*names, "at_the_end"}
