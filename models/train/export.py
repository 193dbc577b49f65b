"""Writes a checkpoint as a model folder: weights, tokenizer, reference data."""

import argparse
import json
import os
import struct

import torch

import ledger
import task
from decode import Decoder, generate_greedy
from model import Config, Reasoner

TASKS = {"trace": task, "ledger": ledger}
GOLDEN_TOKENS = 64
WEIGHTS = "model.safetensors"


def write_safetensors(path, tensors):
    header, offset, data = {"__metadata__": {"format": "pt"}}, 0, []
    for name, tensor in sorted(tensors.items()):
        raw = tensor.detach().bfloat16().contiguous().view(torch.int16).numpy()
        raw = raw.astype("<i2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
        data.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.bfloat16, offset=begin,
                                count=(end - begin) // 2)
        tensors[name] = flat.view(entry["shape"]).float()
    return tensors


def load_exported(folder):
    model = Reasoner()
    tensors = read_safetensors(os.path.join(folder, WEIGHTS))
    model.load_state_dict(tensors)
    return model.eval()


def model_config(c):
    return {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
        "vocab_size": c.vocab_size, "hidden_size": c.hidden_size,
        "intermediate_size": c.ffn_size, "num_hidden_layers": c.num_layers,
        "num_attention_heads": c.num_heads,
        "num_key_value_heads": c.num_kv_heads, "head_dim": c.head_dim,
        "hidden_act": "silu", "max_position_embeddings": c.max_positions,
        "rms_norm_eps": c.norm_eps, "rope_theta": c.rope_theta,
        "rope_scaling": None, "attention_bias": False, "attention_dropout": 0.0,
        "use_sliding_window": False, "sliding_window": None,
        "tie_word_embeddings": True, "torch_dtype": "bfloat16",
        "bos_token_id": task.BOS, "eos_token_id": task.EOS,
        "pad_token_id": task.PAD, "use_cache": True,
    }


def tokenizer_config(ids):
    added = [{"id": i, "content": s, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": True}
             for s, i in task.SPECIALS.items()]
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": added, "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, "decoder": {"type": "Fuse"},
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False,
                      "byte_fallback": False,
                      "vocab": {**ids, **task.SPECIALS}, "merges": []}}


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def write_heldout(folder, module):
    for name, lines in module.heldout_files():
        with open(os.path.join(folder, name), "w") as file:
            for line in lines:
                file.write(json.dumps(line) + "\n")


def write_golden(folder, model):
    """Logits of f32 arithmetic on the exported weights, to compare a worker."""
    rng = task.rng_for(task.HELDOUT_STREAM, 0)
    prompt, completion = task.generate_mixed(rng, 1, task.HELDOUT[0][2])[0]
    ids = torch.tensor([prompt])
    logits = Decoder(model).logits(ids)[0]
    last = len(prompt) - 1
    positions = [0, 10, last // 2, last - 1, last]
    write_json(os.path.join(folder, "golden.json"), {
        "ids": prompt, "positions": positions,
        "logits": [[round(v, 6) for v in logits[p].tolist()]
                   for p in positions],
        "greedy_ids": generate_greedy(model, ids, GOLDEN_TOKENS)[0].tolist(),
        "expected_ids": completion[:GOLDEN_TOKENS]})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=TASKS, default="trace")
    parser.add_argument("checkpoint")
    parser.add_argument("folder")
    options = parser.parse_args()
    module = TASKS[options.task]
    os.makedirs(options.folder, exist_ok=True)
    state = torch.load(options.checkpoint, map_location="cpu")["model"]
    write_safetensors(os.path.join(options.folder, WEIGHTS), state)
    for name, value in (("config.json", model_config(Config())),
                        ("tokenizer.json", tokenizer_config(module.ID))):
        write_json(os.path.join(options.folder, name), value)
    write_heldout(options.folder, module)
    if module is task:
        write_golden(options.folder, load_exported(options.folder))


if __name__ == "__main__":
    main()
