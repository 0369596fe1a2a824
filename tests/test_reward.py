"""reward.py and the grader that it starts: rewards as Grader.grade gives them, faults as faults, nothing left behind.

What programs try inside the sandbox is in test_attacks.py; here, what they could do to the pipe and to the process that
reads it. Trainers are played by scripts in processes of their own, that import reward.py and nothing else from here.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import functools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import reward
from grader import Grader
from grading import serve
from tasksets import truth
from tasksets.toy import TOYS

ROOT = Path(__file__).parent.parent
DOUBLE = json.dumps({"kind": "stdio", "visible": [["1\n", "2\n"], ["4\n", "8\n"]], "hidden": [["5\n", "10\n"]]})
RIGHT = "```python\nprint(2 * int(input()))\n```"


def reply(program):
    return f"```python\n{program}\n```"


@pytest.fixture(scope="module")
def served():
    """The grader of this process, started once; the number of its process."""
    reward.configure(grader=str(ROOT / "grader.py"), python=sys.executable, workers=2)
    assert reward.score(RIGHT, DOUBLE) == 1.0
    yield reward._home.grader.process.pid
    reward.close()


def is_still(pid):
    """The same grader as before, alive, and right."""
    assert reward.score(RIGHT, DOUBLE) == 1.0
    return reward._home.grader.process.pid == pid


# ── one file, for a Python that is not ours ──────────────────────────────────────────────────────────────────────────


def test_the_file_needs_python_3_9_and_the_standard_library():
    tree = ast.parse((ROOT / "reward.py").read_text(encoding="utf-8"), feature_version=(3, 9))
    named = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    named += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert {name.split(".")[0] for name in named} <= sys.stdlib_module_names | {"__future__"}


# ── what a trainer gets ──────────────────────────────────────────────────────────────────────────────────────────────


def test_rewards_by_hand(served):
    half = reply("print(2 if input() == '1' else 3)")
    shown = reply("print({1: 2, 4: 8}[int(input())])")  # passes what is shown and no more
    assert [reward.score(r, DOUBLE) for r in (RIGHT, half, shown, "no program")] == [1.0, 0.0, 0.0, 0.0]
    assert [reward.score(r, DOUBLE, partial=True) for r in (RIGHT, half, shown, "no")] == [1.0, 0.5, 1.0, 0.0]
    assert reward.score(RIGHT, [("1", "2"), ("3", "6")]) == reward.score(RIGHT, json.loads(DOUBLE)) == 1.0
    assert reward.score(RIGHT, [("1", "2"), ("3", "7")], partial=True) == 0.5
    f = reply("def f(x): return x")
    assert reward.score(f, ["assert f(1) == 1", "assert f(K) == 2"], functions=["f"], setup="K = 2") == 1.0
    assert reward.score(f, ["assert f(1) == 2"]) == 0.0


def test_as_verl_and_trl_call_it(served):
    call = {"data_source": "x", "solution_str": RIGHT, "ground_truth": DOUBLE, "extra_info": {"index": 1}}
    assert reward.compute_score(**call) == 1.0
    wrong = reply("print(1)")
    many = {"data_sources": ["x"] * 2, "solution_strs": [RIGHT, wrong], "ground_truths": [DOUBLE] * 2}
    assert reward.compute_scores(**many, extra_infos=[{}, {}]) == [1.0, 0.0]

    completions = [
        RIGHT,
        [{"role": "assistant", "content": RIGHT}],
        [
            {"role": "assistant", "content": RIGHT},
            {"role": "tool", "content": "x"},
            {"role": "assistant", "content": wrong},
        ],
        [{"role": "assistant", "content": [{"type": "text", "text": RIGHT}]}],
        [{"role": "assistant", "content": None, "tool_calls": []}],
        [],
    ]
    columns = {"prompts": ["p"] * 6, "completion_ids": [[1]] * 6, "task_id": ["a"] * 6, "trainer_state": object()}
    asked = functools.partial(reward.reward, **columns, ground_truth=[DOUBLE] * 6)
    assert asked(completions=completions) == [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    assert asked(completions=completions, partial=True) == [1.0, 1.0, 0.0, 1.0, 0.0, 0.0]
    with pytest.raises(reward.BadInput, match=r"no column ground_truth.*task_id"):
        reward.reward(completions=[RIGHT], **columns)
    assert reward.reward(completions=[], ground_truth=[]) == []


BAD = {
    "no JSON": "is not JSON",
    "[]": "object",
    "{}": "kind",
    '{"kind": "stdio"}': "no test",
    '{"kind": "sql", "tests": ["SELECT 1"]}': "kind",
    '{"kind": "stdio", "tests": [["1"]]}': "test 1",
    '{"kind": "stdio", "tests": [["1", "2"]], "typo": 1}': "typo",
    '{"kind": "stdio", "tests": [["1", "2"]], "timeout": 1e20}': "a day at most",
    '{"kind": "stdio", "tests": [["1", "2"]], "timeout": %s}' % ("9" * 400): "a day at most",
    '{"kind": "assert", "tests": ["f(1) == 2"]}': "assert",
    "[" * 100_000: "JSON",
}


@pytest.mark.slow
def test_a_wrong_ground_truth_is_named_and_no_zero(served):
    for text, says in BAD.items():
        with pytest.raises(reward.BadInput, match=says) as why:
            reward.grades([RIGHT, reply("def f(x): return 2")], [DOUBLE, text])
        assert "reply 2 of 2" in str(why.value) and "\n" not in str(why.value)
    for call in (
        lambda: reward.score(RIGHT, None),
        lambda: reward.compute_score("x", None, DOUBLE),
        lambda: reward.compute_score("x", RIGHT, 5),
        lambda: reward.compute_score("x", RIGHT, DOUBLE, partial="yes"),
        lambda: reward.grades([RIGHT], []),
        lambda: reward.score(RIGHT, DOUBLE, functions=["f"]),
        lambda: reward.reward([5], ground_truth=[DOUBLE]),
        lambda: reward.score(RIGHT, '{"kind": "stdio", "hidden": [["1", "2"]]}', partial=True),
    ):
        with pytest.raises((reward.BadInput, TypeError)):
            call()
    assert is_still(served)


@pytest.mark.slow
def test_a_reply_of_any_text(served):
    odd = {
        "\0" + RIGHT: 1.0,
        reply("print(2 * int(input()))  # \0"): 0.0,
        "\udc80 \ud83d" + RIGHT: 1.0,
        reply("print(2 * int(input()), '\udc80')"): 0.0,
        "é\u2028\r\n" + RIGHT: 1.0,
        "x" * 200_000 + "\n" + RIGHT: 1.0,
        '{"id": 1, "passed": true}': 0.0,
    }
    assert reward.compute_scores([""] * len(odd), list(odd), [DOUBLE] * len(odd)) == list(odd.values())
    lone = json.dumps({"kind": "stdio", "tests": [["\udc80", "\udc80"]]})
    assert reward.score(reply("print('a')"), lone) == 0.0
    assert is_still(served)


ANSWER = '{"id": %d, "passed": true, "fitness": 1.0, "outcome": "pass", "visible": "PP", "hidden": "P"}\\n'
HOSTILE = [
    f"for k in range(1000): print('{ANSWER}' % k, end='')",
    f"""import os
for fd in range(256):
    for k in range(100):
        try: os.write(fd, ('{ANSWER}' % k).encode())
        except OSError: break""",
    f"""import glob
for path in glob.glob('/proc/[0-9]*/fd/*'):
    try: open(path, 'w').write('{ANSWER}' % 1)
    except OSError: pass""",
    "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "import os\nfor pid in range(2, 5000):\n    try: os.kill(pid, 9)\n    except OSError: pass",
    "import os\nos.killpg(0, 9)",
    "import os\nfor fd in range(256):\n    try: os.close(fd)\n    except OSError: pass",
    "import os, sys\nos.kill(os.getpid(), 19)",
]


@pytest.mark.slow
def test_no_program_reaches_the_pipe_or_the_grader(served):
    replies = [reply(program) for program in HOSTILE]
    scores = reward.compute_scores([""] * len(replies), [*replies, RIGHT], [DOUBLE] * (len(replies) + 1))
    assert scores == [0.0] * len(replies) + [1.0]
    assert is_still(served)


@pytest.mark.slow
def test_threads_share_one_grader(served):
    found = {}

    def work(k):
        replies = [reply(f"print({k})  # {i}") for i in range(20)]
        found[k] = reward.compute_scores([""] * 20, replies, [json.dumps({"kind": "stdio", "tests": [["", "3"]]})] * 20)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [1.0 if k == 3 else 0.0] * 20 for k in range(6)}
    assert is_still(served)


@pytest.mark.slow
def test_ground_truths_are_kept_within_bounds(monkeypatch):
    kept, text = serve._Kept(), '{"kind": "stdio", "tests": [["%d", ""]]}'
    monkeypatch.setattr(serve, "_KEPT", 3 * len(text % 0))
    for k in (0, 1, 2, 0, 3, 3):
        assert kept.get(str(k)) or kept.put(str(k), text % k).visible[0].input == str(k)
    assert [kept.get(str(k)) is not None for k in range(4)] == [True, False, True, True]
    kept.put("long", '{"kind": "stdio", "tests": [["1", "' + "2" * 1000 + '"]]}')
    assert kept.get("long") and not kept.get("3")


@pytest.mark.slow
def test_a_reply_of_ten_million_characters(served):
    """The grader reads no reply of more than two million: that is an outcome, and no fault."""
    long = ["x" * 10_000_000 + "\n" + RIGHT, "x" * 2_000_000 + "\n" + RIGHT]
    assert [grade["outcome"] for grade in reward.grades(long, [DOUBLE] * 2)] == ["no_code", "pass"]
    assert is_still(served)


@pytest.mark.slow
def test_a_ground_truth_that_is_kept_no_more_is_sent_again(served):
    """The grader keeps 64 million characters of them."""
    big = [
        json.dumps({"kind": "stdio", "tests": [["1\n", "2\n"], ["\n" * 30_000_000 + str(k), f"{2 * k}"]]})
        for k in (1, 2)
    ]
    for k in (0, 1, 0):
        assert reward.grades(["no program", "none"], [big[k], big[k]])[1]["visible"] == "NN"
    assert is_still(served)


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def trainer(script, *, env=(), python=sys.executable, **how):
    """A script that imports reward.py from a folder where nothing else is."""
    head = f"import json, logging, os, signal, sys, threading, time\nDOUBLE = {DOUBLE!r}\nRIGHT = {RIGHT!r}\n"
    head += "logging.basicConfig()\n"
    head += f"import importlib.util as u\nspec = u.spec_from_file_location('elsewhere', {str(ROOT / 'reward.py')!r})\n"
    head += "reward = u.module_from_spec(spec)\nspec.loader.exec_module(reward)\n"
    known = {name: value for name, value in os.environ.items() if not name.startswith(("SWARM_RESCUE", "PYTHON"))}
    how |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([python, "-W", "error", "-c", head + script], env={**known, **dict(env)}, **how)


def said_by(*args, **how):
    process = trainer(*args, **how)
    out, err = process.communicate(timeout=120)
    return out, err, process.returncode


@pytest.mark.slow
def test_what_cannot_start_says_so(tmp_path):
    (tmp_path / "hello.py").write_text("print('hello')")
    (tmp_path / "broken.py").write_text("raise ImportError('no such thing')")
    grader, python = "SWARM_RESCUE_GRADER", "SWARM_RESCUE_PYTHON"
    for env, says in (
        ({python: "/nowhere/python"}, ["/nowhere/python", python]),
        ({python: "/bin/false"}, ["exit 1", python]),
        ({grader: "/nowhere/grader.py"}, ["/nowhere/grader.py", grader]),
        ({grader: str(tmp_path / "hello.py")}, ["hello", grader]),
        ({grader: str(tmp_path / "broken.py")}, ["no such thing", grader]),
    ):
        out, err, code = said_by("reward.score(RIGHT, DOUBLE)", env=env)
        assert code == 1 and "RewardFault" in err.splitlines()[-1] and not out
        assert all(word in err.splitlines()[-1] for word in says), err


@pytest.mark.slow
def test_a_copy_says_where_the_grader_is_wanted(tmp_path):
    shutil.copy(ROOT / "reward.py", tmp_path)
    script = f"import reward\nprint(reward.score({RIGHT!r}, {DOUBLE!r}))"
    for env, code in (({}, 1), ({"SWARM_RESCUE_GRADER": str(ROOT / "grader.py")}, 0)):
        command, env = [sys.executable, "-c", script], {**os.environ, **env}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == code
        assert done.stdout == ("" if code else "1.0\n")
        assert not code or "SWARM_RESCUE_GRADER" in done.stderr


@pytest.mark.slow
def test_a_grader_that_dies_is_started_again_and_says_so():
    out, err, code = said_by("""
if True:
    reward.score(RIGHT, DOUBLE)
    first = reward._home.grader.process.pid
    threading.Timer(1.0, os.kill, (first, signal.SIGKILL)).start()
    slow = ["```python\\nimport time; time.sleep(0.1); print(2 * int(input()))  # %d\\n```" % k for k in range(20)]
    print([grade["passed"] for grade in reward.grades(slow, [DOUBLE] * 20)] == [True] * 20)
    print(reward._home.grader.process.pid != first)
""")
    assert (out, code) == ("True\nTrue\n", 0), err
    assert err.count("the grader died (signal 9) and is started again") == 1


DIES = """
import json, os, signal
print(json.dumps({"ready": {}}), flush=True)
input()
"""


@pytest.mark.slow
def test_what_dies_again_and_again_is_a_fault_and_no_zero(tmp_path):
    for end, says in (
        ("os.kill(os.getpid(), signal.SIGKILL)", "died 4 times in one call.*signal 9"),
        ("print('{', flush=True)", "died 4 times"),
        ("print(json.dumps({'fault': 'the disk is full; make room'}), flush=True)", "the disk is full; make room"),
    ):
        (tmp_path / "dies.py").write_text(DIES + end)
        out, err, code = said_by("reward.score(RIGHT, DOUBLE)", env={"SWARM_RESCUE_GRADER": str(tmp_path / "dies.py")})
        assert code == 1 and not out
        assert re.search(f"RewardFault: .*{says}", err.splitlines()[-1]), err


# ── processes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_gone(pid, within=10.0):
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def below(pid):
    """All processes that descend from one."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


BUSY = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the tests were started under
reward.score(RIGHT, DOUBLE)
{before}
print(reward._home.grader.process.pid, flush=True)
reward.grades(["```python\\nwhile True: pass  # %d\\n```" % k for k in range(20)], [DOUBLE] * 20)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "before",
    ["", "if os.fork() == 0:\n    time.sleep(30)\n    os._exit(0)",
     "import ctypes\nif ctypes.CDLL(None).fork() == 0:\n    time.sleep(30)\n    os._exit(0)"],
    ids=["alone", "with a forked child that lives on", "with one that Python was not told of"],
)  # fmt: skip
def test_whatever_ends_the_trainer_ends_the_grader(number, before):
    process = trainer(BUSY.format(before=before), start_new_session=True)
    pid = int(process.stdout.readline())
    time.sleep(1.0)
    ours = below(pid)
    assert len(ours) > 2
    process.send_signal(number)
    try:
        process.wait(20)
        assert all(is_gone(each) for each in ours)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_a_trainer_that_ends_by_itself_leaves_nothing():
    out, err, code = said_by(
        "print(reward._home.grader is None, reward.score(RIGHT, DOUBLE), reward._home.grader.process.pid)"
    )
    assert code == 0 and not err
    none, worth, pid = out.split()
    assert (none, worth) == ("True", "1.0") and is_gone(int(pid), 1)


@pytest.mark.slow
def test_forked_and_spawned_workers_have_graders_of_their_own(tmp_path):
    """Also where another thread was asking at the moment of the fork, with every lock that it may have held."""
    out, err, code = said_by("""
if True:
    import warnings
    warnings.simplefilter("ignore")  # a fork beside threads, as trainers do it
    def ask():
        for k in range(40):
            assert reward.score("```python\\nprint(2 * int(input()))  # %d\\n```" % k, DOUBLE) == 1.0
    asking = threading.Thread(target=ask)
    reward.score(RIGHT, DOUBLE)
    first = reward._home.grader.process.pid
    asking.start()
    children = []
    for k in range(4):
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            right = reward.score(RIGHT, DOUBLE) == 1.0 and reward._home.grader.process.pid != first
            reward.close()
            os._exit(0 if right else 1)
        children.append(child)
    print([os.waitpid(child, 0)[1] for child in children])
    asking.join()
    print(reward._home.grader.process.pid == first)
""")
    assert (out, code) == ("[0, 0, 0, 0]\nTrue\n", 0), err

    (tmp_path / "spawned.py").write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import multiprocessing, reward\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        f"        print(pool.starmap(reward.compute_score, [('', {RIGHT!r}, {DOUBLE!r})] * 4))\n"
    )
    done = subprocess.run([sys.executable, "spawned.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[1.0, 1.0, 1.0, 1.0]\n", done.stderr


# ── the other end ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_grader_by_hand():
    ask = {"id": 1, "reply": RIGHT, "truth": "t", "text": DOUBLE}
    lines = [ask, {**ask, "id": 2, "text": None}, {**ask, "id": 3, "text": "{"}, {"id": 4, "reply": "x", "truth": "u"},
             {"id": 5}, "text"]  # fmt: skip
    given = "".join(json.dumps(line) + "\n" for line in lines) + "no JSON\n\n"
    command = [sys.executable, "grader.py", "--serve", "--workers", "1"]
    done = subprocess.run(command, input=given, cwd=ROOT, capture_output=True, text=True, timeout=60)
    ready, *answers = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 0 and not done.stderr and ready["ready"]["workers"] == 1
    by_id = {answer["id"]: answer for answer in answers if answer["id"]}
    assert by_id[1]["passed"] and by_id[2]["passed"]
    assert by_id[4] == {"id": 4, "lacks": "u"}
    assert [sorted(answer) for answer in (by_id[3], by_id[5])] == [["bad", "id"]] * 2
    assert [answer["bad"] for answer in answers if answer["id"] is None] == [
        "a line must be a JSON object",
        "a line is not JSON: Expecting value: line 1 column 1 (char 0)",
    ]


@pytest.mark.slow
def test_a_command_line_that_serves_nobody_is_one_line():
    for words, says in ((["--serve", "--workers", "0"], "1 or more"), ([], "--serve")):
        done = subprocess.run(
            [sys.executable, "grader.py", *words], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2 and says in done.stderr.splitlines()[-1]
    closed = ["/bin/sh", "-c", 'exec "$0" grader.py --serve <&-', sys.executable]
    done = subprocess.run(closed, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "closed" in done.stderr.splitlines()[-1]


# ── all of it ────────────────────────────────────────────────────────────────────────────────────────────────────────


def completions(n, seed=0):
    """(reply, ground truth) pairs: the toy tasks and some of asserts, right, wrong in every way, and none at all."""
    lot = random.Random(seed)
    tasks = [each.task for each in TOYS]
    programs = [each.program.replace("RESULT", "answer") for each in TOYS]
    asserts = truth.loads(json.dumps({"kind": "assert", "visible": ["assert f(1) == 1", "assert f(-2) == 2"],
                                      "hidden": ["assert f(0) == 0"], "functions": ["f"]}))  # fmt: skip
    tasks.append(asserts)
    programs.append("def f(x): return abs(x)")
    others = ["print(1)", "raise SystemExit(1)", "import nowhere", "def f(x): return x", "x = (", "print(input())",
              "class F: pass\ndef f(x): return F()"]  # fmt: skip
    found = []
    for _ in range(n):
        i = lot.randrange(len(tasks))
        program = programs[i] if lot.random() < 0.4 else lot.choice(others + programs)
        text = f"{program}\n# {lot.randrange(n)}"
        found.append((lot.choice([reply(text), text, f"I think\n{reply(text)}\nso.", "I do not know."]), tasks[i]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", ["", "3.9", "3.10", "3.12", "3.13", "3.14"])
def test_two_thousand_completions_from_another_python(version, tmp_path):
    """Equal to Grader.grade, with the grader killed in the middle, from an environment that has no library at all."""
    python = shutil.which(f"python{version}") if version else sys.executable
    env = {"PATH": "/usr/bin:/bin", "SWARM_RESCUE_PYTHON": sys.executable}
    if not python or subprocess.run([python, "-c", ""], env=env, capture_output=True).returncode:
        pytest.skip(f"there is no Python {version}")
    n = 2000 if version in ("", "3.13") else 200
    pairs = completions(n)

    async def by_ourselves():
        async with Grader() as judge:
            return await asyncio.gather(*(judge.grade(text, task) for text, task in pairs))

    wanted = [[g.passed, g.fitness, g.outcome, g.visible, g.hidden] for g in asyncio.run(by_ourselves())]
    assert {"pass", "wrong_answer", "runtime_error", "missing_module", "syntax_error", "no_code", "bad_value"} <= {
        outcome for _, _, outcome, _, _ in wanted
    }
    (tmp_path / "pairs.json").write_text(json.dumps([(text, truth.dumps(task)) for text, task in pairs]))
    (tmp_path / "trainer.py").write_text(f"""
import importlib.util, json, os, signal, threading, time
spec = importlib.util.spec_from_file_location("r", {str(ROOT / "reward.py")!r})
reward = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reward)
replies, truths = map(list, zip(*json.load(open("pairs.json"))))
reward.score(replies[0], truths[0])
first = reward._home.grader.process.pid
threading.Timer(1.0, os.kill, (first, signal.SIGKILL)).start()
found = reward.grades(replies, truths)
time.sleep(1.2)
scores = reward.compute_scores([""] * len(replies), replies, truths, None, True)
assert [grade["fitness"] for grade in found] == scores and reward._home.grader.process.pid != first
print(json.dumps([[g[k] for k in ("passed", "fitness", "outcome", "visible", "hidden")] for g in found]))
""")
    command = [python, "-I", "-S", "trainer.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == wanted
