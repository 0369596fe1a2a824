"""Exports in the libraries that they are for, and the example that trains: in a virtual environment of their own.

With TRAINERS=1 the environment is made for this file from the package index that pip uses, and goes with it; nothing is
installed into the one that runs the tests. TRAINERS_PYTHON names a Python that has torch, datasets, trl, peft and verl.
Left out: a GPU, a real model, any claim that training helps.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import export
from tests.support.mock_endpoint import serving
from tests.test_run import stdio_row, task_file

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tests" / "support" / "with_trainers.py"
NEEDS = ["datasets", "trl", "peft", "gguf", "transformers<5.11"]  # the last for verl
OF_VERL = ["ray", "omegaconf", "tensordict", "codetiming", "pillow"]  # what its data sets import; whole it is gigabytes
SYSTEM = "You write Python programs that solve programming problems."


def pip(python: Path | str, *words: str) -> str:
    """What pip says; the test is skipped where it cannot."""
    call = [str(python), "-m", "pip", *words]
    done = subprocess.run(call, capture_output=True, text=True, timeout=1500)
    if done.returncode:
        why = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        pytest.skip(f"pip {' '.join(words[:1])} does not give {words[-1]}: {(why or ['no reason'])[-1]}")
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the trainers, on a CPU build of torch: the other one brings gigabytes for a GPU."""
    if there := os.environ.get("TRAINERS_PYTHON"):
        return Path(there)
    if "TRAINERS" not in os.environ:
        pytest.skip("TRAINERS=1 makes an environment of 1.6 GB for this, in three minutes or more")
    if not (platform.system() == "Darwin" or "+cpu" in (found := pip(sys.executable, "index", "versions", "torch"))):
        pytest.skip("pip sees no CPU build of torch: name an index or a folder that has one in pip's settings")
    torch = "torch" if platform.system() == "Darwin" else "torch==" + re.findall(r"[\d.]+\+cpu", found)[0]
    folder = tmp_path_factory.mktemp("trainers")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    made = folder / "venv" / "bin" / "python"
    pip(made, "install", "--quiet", "--no-compile", torch, *NEEDS)
    return made


@pytest.fixture(scope="module")
def ask(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict]:
    """What the libraries say of a folder of exports."""
    env = {**os.environ, "HF_HOME": str(tmp_path_factory.mktemp("cache")), "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}

    def asking(what: str, folder: Path) -> dict:
        call = [python, SCRIPT, what, folder]
        done = subprocess.run(call, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return asking


def command(script: str, *words: str | Path, cwd: Path, url: str = "", python: Path | str = sys.executable) -> str:
    env = {
        **os.environ,
        "OPENAI_BASE_URL": url,
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HOME": str(cwd / "hf"),
    }
    done = subprocess.run(
        [python, ROOT / script, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of eight tasks, of which every second is rescued: with a system prompt, and without."""
    folder = tmp_path_factory.mktemp("runs")
    tasks = task_file(folder / "t.jsonl", [stdio_row(f"t{k}", k + 2) for k in range(8)])
    (folder / "none.txt").write_text("")

    def reply(request):
        factor = int(request.prompt.split("print ")[1].split()[0])
        is_right = "shown test" in request.prompt and (factor % 2 == 0)
        return f"```python\nprint(int(input()) * {factor if is_right else 100 + request.dice().randrange(10**6)})\n```"

    few = ["--tasks", tasks, "--base-samples", "4", "--particles", "2", "--rounds", "2", "--arms", "resample,star"]
    with serving(reply=reply) as mock:
        command("run.py", *few, "--out", "one", cwd=folder, url=mock.url)
        command("run.py", *few, "--out", "two", "--system", "none.txt", "--seed", "1", cwd=folder, url=mock.url)
    for name in export.FORMATS:
        for run in ("one", "two"):
            assert (
                export.main(["--out", str(folder / run), "--format", name, "--to", str(folder / "x" / run / name)]) == 0
            )
    return folder


def once(text: str, part: str) -> bool:
    return text.count(part) == 1


def test_two_runs_load_together_in_either_order(ask, runs):
    told = ask("datasets", runs / "x")
    assert set(told) == set(export.FORMATS)
    for name, of in told.items():
        both = sum(
            len((runs / "x" / run / name / "train.jsonl").read_text().splitlines()) for run in ("one", "two")
        ) if not name.startswith("verl") else of["rows"][0]  # fmt: skip
        assert of == {"rows": [both] * 3, "same": True, "null": []} and both > 0, name


def test_trl_makes_one_assistant_turn_behind_the_system_prompt(ask, runs):
    told = ask("trl", runs / "x" / "one")
    rows = [json.loads(line) for line in (runs / "x" / "one" / "trl" / "train.jsonl").read_text().splitlines()]
    program = rows[0]["completion"][0]["content"]
    for name in ("trl", "messages"):
        text = told["sft"][name]["text"]
        assert text.startswith(f"<|system|>\n{SYSTEM}<|end|>\n<|user|>\nTask t") and told["sft"][name]["rows"] == len(
            rows
        )
        assert once(text, "<|assistant|>") and once(text, "<|user|>") and text.rstrip().endswith(f"{program}<|end|>")
    assert told["sft"]["trl"]["learned"].rstrip() == f"{program}<|end|>"  # the prompt is read, and not learned
    pair = told["dpo"]
    assert (
        SYSTEM in pair["prompt_ids"]
        and pair["chosen_ids"].startswith(program)
        and pair["rejected_ids"] != pair["chosen_ids"]
    )
    assert json.loads(told["grpo"]["ground_truth"])["hidden"] and told["grpo"]["base_passes"] == 0


def test_verls_own_data_sets_read_the_parquet(ask, runs, python):
    if "TRAINERS_PYTHON" not in os.environ:
        pip(python, "install", "--quiet", "--no-compile", *OF_VERL)
        pip(python, "install", "--quiet", "--no-compile", "--no-deps", "verl")
    told = ask("verl", runs / "x" / "one")
    tuned, rewarded = told["rows"]
    assert rewarded == 8 and tuned > 0
    assert told["text"].startswith(f"<|system|>\n{SYSTEM}<|end|>\n<|user|>\nTask t") and once(
        told["text"], "<|assistant|>"
    )
    assert told["learned"].startswith("```python\n") and "Task t" not in told["learned"]
    assert told["rl"]["raw_prompt"][0]["content"] == SYSTEM and told["rl"]["data_source"] == "t"
    assert json.loads(told["rl"]["reward_model"]["ground_truth"])["kind"] == "stdio"


def test_an_adapter_for_a_gguf_model_has_the_names_that_llama_cpp_looks_for(ask, tmp_path):
    """By the source of llama.cpp: blk.N.TENSOR.weight.lora_a of (rank, in) and .lora_b of (out, rank)."""
    told = ask("adapter", tmp_path)
    fields = ("general.architecture", "general.type", "adapter.type", "adapter.lora.alpha")
    assert [told["fields"][name] for name in fields] == ["qwen2", "adapter", "lora", 6.0]
    layer = {"attn_q": (16, 16), "attn_k": (8, 16), "attn_v": (8, 16), "attn_output": (16, 16),
             "ffn_gate": (24, 16), "ffn_up": (24, 16), "ffn_down": (16, 24)}  # fmt: skip
    want = {}
    for name, (out, into) in ((f"blk.{n}.{name}", shape) for n in range(2) for name, shape in layer.items()):
        want |= {f"{name}.weight.lora_a": [3, into], f"{name}.weight.lora_b": [out, 3]}
    assert {name: shape for name, (shape, _) in told["read"].items()} == want
    first = told["written"]["base_model.model.model.layers.1.mlp.down_proj.lora_A.weight"]
    assert told["read"]["blk.1.ffn_down.weight.lora_a"] == first


def test_the_example_tunes_and_the_tuned_model_is_asked_again(ask, python, runs, tmp_path):
    """A tiny random model: the mechanics alone, from rows to the table."""
    ask("model", tmp_path / "tiny")
    rows = tmp_path / "rows"
    assert export.main(["--out", str(runs / "one"), "--held-back", "40", "--to", str(rows)]) == 0
    said = command(
        "examples/train.py", "tune", rows, "--model", tmp_path / "tiny", "--to", tmp_path / "tuned", "--epochs", "1",
        "--rank", "2", cwd=tmp_path, python=python,
    )  # fmt: skip
    n = len((rows / "train.jsonl").read_text().splitlines())
    assert f"{n} rows, 1 epochs, loss " in said
    assert json.loads((tmp_path / "tuned" / "tuned.json").read_text())["rows"] == n
    server = subprocess.Popen([python, SCRIPT, "serve", tmp_path / "tuned"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        words = [
            "--tasks",
            runs / "t.jsonl",
            "--base-samples",
            "4",
            "--arms",
            "resample",
            "--particles",
            "1",
            "--rounds",
            "1",
        ]
        command("run.py", *words, "--max-tokens", "4", "--out", "after", cwd=tmp_path, url=url)
    finally:
        server.kill()
        server.communicate()
    told = command("examples/train.py", "compare", runs / "one", "after", "--rows", rows, cwd=tmp_path).splitlines()
    table = {line[:12].strip(): line[12:].split() for line in told[1:4]}
    held = {json.loads(line)["task_id"] for line in (rows / "test.jsonl").read_text().splitlines()}
    assert int(table["trained on"][0]) + len(held) == 4 and int(table["neither"][0]) == 4
    assert table["trained on"][1:3] == table["neither"][1:3] == ["0.0%", "0.0%"]  # nobody passes: a table all the same
