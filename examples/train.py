"""Fine-tune on rescued rows, and ask the same model again: TRL and PEFT, one file to copy and change.

    python export.py --out out --held-back 20 --per-task 4                              out/export/trl, train and test
    python examples/train.py tune out/export/trl --model Qwen/Qwen3-4B --to tuned       LoRA, merged into tuned/
    vllm serve tuned                                                                    or any other server
    python run.py --base-url http://localhost:8000/v1 --out after ...                   the flags of the first run
    python examples/train.py compare out after --rows out/export/trl                    pass shares before and after

Of a model in a GGUF file the adapter is kept instead, for the same server beside the same file:

    python examples/train.py tune out/export/trl --model model.gguf --to tuned          tuned/adapter.gguf
    llama-server -m model.gguf --lora tuned/adapter.gguf

`tune` needs torch, trl and peft, and gguf for such a file, which are none of this project's dependencies: use an
environment of their own. `compare` needs nothing but this project. Pass shares are of base groups, so `--arms resample
--rounds 1` is enough for the second run. Tasks of the rows are one line, tasks that were held back another: only the
second says anything about other tasks.

Left out: a search over settings, several devices, a run long enough to be good for anything.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peft import PeftModel


def tune(rows: Path, model: str, to: Path, epochs: float, rate: float, rank: int, longest: int) -> None:
    """LoRA on the programs alone: prompts are read and not learned. What it was asked for stands beside the weights."""
    import torch
    from datasets import load_dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    is_gguf = model.endswith(".gguf")
    where = {"gguf_file": Path(model).name} if is_gguf else {}
    source = str(Path(model).parent) if is_gguf else model
    on_gpu = torch.cuda.is_available()
    args = SFTConfig(
        output_dir=str(to.with_name(f"{to.name}-steps")),
        num_train_epochs=epochs,
        learning_rate=rate,
        max_length=longest,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        use_cpu=not on_gpu,
        bf16=on_gpu,
        save_strategy="no",
        report_to=[],
        seed=0,
    )
    data = load_dataset("json", data_files=str(rows / "train.jsonl"), split="train")
    lora = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    words = AutoTokenizer.from_pretrained(source, **where)
    weights = model
    if is_gguf:
        weights = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32, **where)
        architecture(weights.config.model_type)  # says so before hours are spent, not after
        to.mkdir(parents=True, exist_ok=True)
    trainer = SFTTrainer(model=weights, args=args, train_dataset=data, processing_class=words, peft_config=lora)
    done = trainer.train()
    if is_gguf:
        write_adapter(trainer.model, 2 * rank, to / "adapter.gguf")
    else:
        trainer.model.merge_and_unload().save_pretrained(to)
        words.save_pretrained(to)
    told = {"model": model, "rows": len(data), "epochs": epochs, "rate": rate, "rank": rank, "loss": done.training_loss}
    (to / "tuned.json").write_text(json.dumps(told) + "\n")
    print(f"{to}: {len(data)} rows, {epochs:g} epochs, loss {done.training_loss:.3f}")


def architecture(kind: str) -> int:
    """By its name in a GGUF file; exits where its adapters cannot be written."""
    import gguf

    arch = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}.get(kind)
    if arch is None or kind == "llama":  # whose rows of attention lie in another order in the file
        sys.exit(f"no adapter for GGUF is written for models of the kind {kind}: tune the model's own folder instead")
    return arch


def write_adapter(tuned: PeftModel, alpha: float, at: Path) -> None:
    """The LoRA weights alone, under the names that llama.cpp has for the tensors of the model."""
    import gguf
    from peft import get_peft_model_state_dict

    kind = tuned.config.model_type
    names = gguf.get_tensor_name_map(architecture(kind), tuned.config.num_hidden_layers)
    writer = gguf.GGUFWriter(at, kind)
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, alpha)
    for name, weight in get_peft_model_state_dict(tuned).items():
        layer, side = name.removeprefix("base_model.model.").removesuffix(".weight").split(".lora_")
        writer.add_tensor(f"{names[layer]}.weight.lora_{side.lower()}", weight.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def compare(before: Path, after: Path, rows: Path) -> str:
    """A table of pass shares, before and after, on the tasks of the rows, on those held back and on all others."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import numpy as np

    from records import Folder
    from rows.found import Choice, Run
    from stats import compare_paired

    runs = {name: Run.read(Folder(path)) for name, path in (("before", before), ("after", after))}
    passes: dict[str, dict[str, tuple[int, int]]] = {}
    for name, run in runs.items():
        passes[name] = {a.task.digest: (a.base_passes, a.base_attempts) for a in Choice([run]).tasks() if a.whole}
    names = {task.digest: task.id for task in runs["before"].cards.values()}
    both = passes["before"].keys() & passes["after"].keys()
    trained, held = _tasks(rows / "train.jsonl"), _tasks(rows / "test.jsonl")
    groups: Mapping[str, list[str]] = {
        "trained on": sorted(d for d in both if names[d] in trained),
        "held back": sorted(d for d in both if names[d] in held),
        "neither": sorted(d for d in both if names[d] not in trained | held),
    }
    lines = [f"{'tasks':<12}{'n':>6}{'before':>9}{'after':>9}   change [95%], points"]
    for group, tasks in groups.items():
        if not tasks:
            lines.append(f"{group:<12}{0:>6}")
            continue
        old, new = (np.array([passes[name][d][0] / passes[name][d][1] for d in tasks]) for name in runs)
        got = compare_paired(old, new, method="bootstrap")
        change = f"{100 * got.delta:+.1f} [{100 * got.lo:+.1f}, {100 * got.hi:+.1f}]" if len(tasks) > 1 else "one task"
        lines.append(f"{group:<12}{len(tasks):>6}{old.mean():>9.1%}{new.mean():>9.1%}   {change}")
    lines += [
        "",
        "Shares of base attempts that pass, the mean over tasks; the interval is over tasks, paired. `trained on` is",
        "what was learned by heart. Tasks whose whole group failed before can only rise, and do by chance on a second",
        "draw: hold the change against that of a second run of the untuned model.",
    ]
    return "\n".join(lines)


def _tasks(path: Path) -> set[str]:
    return {json.loads(line)["task_id"] for line in path.read_text().splitlines()} if path.exists() else set()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    tuning = verbs.add_parser("tune", help="LoRA on rows", allow_abbrev=False)
    tuning.add_argument("rows", type=Path, help="an export in the format trl")
    tuning.add_argument("--model", required=True, help="a folder, a name on the hub, or a GGUF file")
    tuning.add_argument("--to", type=Path, required=True, help="where the merged model goes, or the adapter")
    tuning.add_argument("--epochs", type=float, default=2.0)
    tuning.add_argument("--rate", type=float, default=1e-4, help="learning rate (default: 1e-4)")
    tuning.add_argument("--rank", type=int, default=16, help="of LoRA (default: 16)")
    tuning.add_argument("--longest", type=int, default=4096, help="tokens of a row (default: 4096)")
    comparing = verbs.add_parser("compare", help="pass shares before and after", allow_abbrev=False)
    comparing.add_argument("before", type=Path, help="the folder of the first run")
    comparing.add_argument("after", type=Path, help="the folder of the run with the tuned model")
    comparing.add_argument("--rows", type=Path, required=True, help="what it was tuned on")
    args = vars(parser.parse_args(argv))
    if not (args["rows"] / "train.jsonl").exists():
        parser.error(f"{args['rows']} holds no train.jsonl: name an export in the format trl")
    if args.pop("verb") == "tune":
        tune(**args)
    else:
        print(compare(**args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
