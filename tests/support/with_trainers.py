"""What the trainers' own libraries make of exports: run by a Python that has them, which is never this project's.

    PYTHON tests/support/with_trainers.py datasets|trl|verl FOLDER      facts as one line of JSON, the last one
    PYTHON tests/support/with_trainers.py model FOLDER                  a tiny random model and its tokenizer
    PYTHON tests/support/with_trainers.py adapter FOLDER                an adapter of the example, read back
    PYTHON tests/support/with_trainers.py serve FOLDER                  that model behind a URL, which it prints

FOLDER holds exports by format (`trl/`, `pairs/`, ...), for `datasets` of two runs (`one/trl/`, `two/trl/`).
Left out: any judgement of the facts (tests/test_trainers.py).
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}

# As in many models, and with the mark that TRL needs to see where an answer is.
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def tokenizer():
    """One token a byte, so that every text comes back as it was."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {char: i for i, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(vocab=words, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    roles = ["<|system|>", "<|user|>", "<|assistant|>"]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|end|>", pad_token="<|pad|>", extra_special_tokens=roles
    )  # fmt: skip
    fast.chat_template = TEMPLATE
    return fast


def model(vocabulary: int):
    """Some thousand weights, drawn with one seed."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=vocabulary, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=8192,
    ))  # fmt: skip


def saved(folder: Path) -> Path:
    if not (folder / "config.json").exists():
        words = tokenizer()
        words.save_pretrained(folder)
        model(len(words)).save_pretrained(folder)
    return folder


def load(folder: Path):
    """With the types that the card names. Into a cache of its own: the library takes folders of one name for one."""
    from datasets import load_dataset

    return load_dataset(str(folder), split="train", cache_dir=str(folder / ".cache"))


def datasets(folder: Path) -> dict:
    """Each format of two runs in one data set, in either order: from the files, and from folders with their cards."""
    from datasets import concatenate_datasets, load_dataset

    told = {}
    for one in sorted((folder / "one").iterdir()):
        kind = "parquet" if (one / "train.parquet").exists() else "json"
        files = [
            str(folder / run / one.name / f"train.{'jsonl' if kind == 'json' else kind}") for run in ("one", "two")
        ]
        there, back = (load_dataset(kind, data_files=order, split="train") for order in (files, files[::-1]))
        carded = concatenate_datasets([load(folder / run / one.name) for run in ("two", "one")])
        told[one.name] = {
            "rows": [len(there), len(back), len(carded)],
            "same": there.features == back.features and set(there.features) == set(carded.features),
            "null": [name for name, of in there.features.items() if "null" in str(of)],
        }
    return told


def sft(folder: Path) -> dict:
    """The text that TRL's SFTTrainer would train on, and which part of it counts."""
    from trl import SFTConfig, SFTTrainer

    words = tokenizer()
    args = SFTConfig(output_dir=str(folder / "sft"), max_length=None, use_cpu=True, report_to=[], bf16=False)
    told = {}
    for name in ("trl", "messages"):
        trainer = SFTTrainer(model(len(words)), args, train_dataset=load(folder / name), processing_class=words)
        row = trainer.train_dataset[0]
        told[name] = {
            "text": words.decode(row["input_ids"]),
            "learned": words.decode([token for token in row["labels"] if token != -100]),
            "rows": len(trainer.train_dataset),
        }
    return told


def dpo(folder: Path) -> dict:
    """The two texts of a pair, as TRL's DPOTrainer has them."""
    from trl import DPOConfig, DPOTrainer

    words = tokenizer()
    args = DPOConfig(output_dir=str(folder / "dpo"), max_length=None, use_cpu=True, report_to=[], bf16=False)
    tiny = str(saved(folder / "tiny"))
    trainer = DPOTrainer(tiny, args=args, train_dataset=load(folder / "pairs"), processing_class=words)
    row = trainer.train_dataset[0]
    return {name: words.decode(row[name]) for name in ("prompt_ids", "chosen_ids", "rejected_ids")}


def grpo(folder: Path) -> dict:
    """One step of TRL's GRPOTrainer: what its reward function is handed."""
    from trl import GRPOConfig, GRPOTrainer

    words, seen = tokenizer(), []

    def reward(prompts, completions, **columns):
        seen.append({name: columns[name][0] for name in ("ground_truth", "task_id", "base_passes")})
        return [0.5 * (i % 2) for i in range(len(completions))]

    args = GRPOConfig(
        output_dir=str(folder / "grpo-out"), max_steps=1, per_device_train_batch_size=2, num_generations=2,
        max_completion_length=4, use_cpu=True, report_to=[], bf16=False,
    )  # fmt: skip
    GRPOTrainer(model(len(words)), reward, args, train_dataset=load(folder / "grpo"), processing_class=words).train()
    return seen[0]


def trl(folder: Path) -> dict:
    return {"sft": sft(folder), "dpo": dpo(folder), "grpo": grpo(folder)}


def adapter(folder: Path) -> dict:
    """Names, shapes and numbers of the LoRA weights of a tiny model, before they were written and as they are read."""
    import torch
    from gguf import GGUFReader
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
    from transformers import Qwen2Config, Qwen2ForCausalLM

    sys.path.insert(0, str(Path(__file__).parents[2]))
    from examples.train import write_adapter

    torch.manual_seed(0)
    sizes = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    plain = Qwen2ForCausalLM(Qwen2Config(**sizes, num_attention_heads=2, num_key_value_heads=1))
    tuned = get_peft_model(plain, LoraConfig(r=3, target_modules="all-linear", task_type="CAUSAL_LM"))
    write_adapter(tuned, 6, folder / "adapter.gguf")
    read = GGUFReader(folder / "adapter.gguf")
    return {
        "fields": {name: field.contents() for name, field in read.fields.items() if not name.startswith("GGUF")},
        "read": {t.name: [list(t.data.shape), float(t.data.sum())] for t in read.tensors},
        "written": {
            name: [list(weight.shape), float(weight.numpy().sum())]
            for name, weight in get_peft_model_state_dict(tuned).items()
        },
    }


def verl(folder: Path) -> dict:
    """A row of verl's own data set classes."""
    from omegaconf import OmegaConf
    from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
    from verl.utils.dataset.rl_dataset import RLHFDataset

    words = tokenizer()
    config = OmegaConf.create({"max_length": 8192, "truncation": "error", "pad_mode": "no_padding"})
    tuned = MultiTurnSFTDataset(str(folder / "verl-sft" / "train.parquet"), words, config)
    row = tuned[0]
    ids, mask = row["input_ids"].tolist(), row["loss_mask"].tolist()
    config = OmegaConf.create({"cache_dir": str(folder / "cache"), "prompt_key": "prompt", "max_prompt_length": 8192,
                               "filter_overlong_prompts": True, "filter_overlong_prompts_workers": 1})  # fmt: skip
    rewarded = RLHFDataset(str(folder / "verl-rl" / "train.parquet"), words, config)
    one = rewarded[0]
    return {
        "text": words.decode(ids),
        "learned": words.decode([token for token, kept in zip(ids, mask, strict=True) if kept]),
        "rows": [len(tuned), len(rewarded)],
        "rl": {name: one[name] for name in ("raw_prompt", "data_source", "reward_model", "index")},
    }


def serve(folder: Path) -> None:
    """As much of an OpenAI-compatible server as run.py asks for, one request at a time."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    words, weights = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    turn = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send({"object": "list", "data": [{"id": folder.name, "object": "model"}]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            ids = words.apply_chat_template(asked["messages"], add_generation_prompt=True, return_tensors="pt")
            ids = ids if isinstance(ids, torch.Tensor) else ids["input_ids"]
            with turn:
                torch.manual_seed(asked.get("seed") or 0)
                made = weights.generate(ids, max_new_tokens=asked["max_tokens"], do_sample=True, pad_token_id=0)[0][
                    ids.shape[1] :
                ]
            message = {"role": "assistant", "content": words.decode(made, skip_special_tokens=True)}
            self.send({
                "id": "1", "object": "chat.completion", "created": 0, "model": folder.name,
                "choices": [{"index": 0, "message": message, "finish_reason": "length"}],
                "usage": {"prompt_tokens": ids.shape[1], "completion_tokens": len(made), "total_tokens": 0},
            })  # fmt: skip

        def send(self, row: dict) -> None:
            content = json.dumps(row).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *parts: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "serve":
        serve(where)
    elif what == "model":
        print(json.dumps(str(saved(where))))
    else:
        print(json.dumps(globals()[what](where), default=str))
