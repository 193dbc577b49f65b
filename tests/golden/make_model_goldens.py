#!/usr/bin/env python3
"""Makes models/: small checkpoints of every architecture and what the reference
implementation computes with them.

    python3 -m venv VENV && VENV/bin/pip install torch transformers safetensors
    VENV/bin/python tests/golden/make_model_goldens.py [CASE ...]

With cases it makes those and leaves the others as they are.

Weights come from NumPy's generator with a seed per tensor name, large enough
for attention to be far from uniform: a wrong rotation, bias or group would
change the logits well beyond the test's tolerance, which `check_effect`
asserts. Logits are those of transformers on the CPU in float32, eager
attention. models/<weights>/ has the weight files, models/<case>.json the
config.json of a case, its tokens, logits behind some positions and the
frequencies of its rotary embedding.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import zlib

import numpy as np
import safetensors.torch
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent / "models"
VOCAB = 96
LENGTH = 200
POSITIONS = [0, 5, 63, 64, 130, 199]
ORIGINAL = 64  # tokens before scaling, where a case has any

BASE = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "hidden_act": "silu",
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
LLAMA = BASE | {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
MISTRAL = BASE | {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "rope_theta": 1000000.0,
    "sliding_window": None,
}
QWEN2 = BASE | {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "rope_theta": 1000000.0,
    "rms_norm_eps": 1e-6,
    "use_sliding_window": False,
    "sliding_window": 32,
    "max_window_layers": 1,
}
QWEN3 = BASE | {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "rope_theta": 1000000.0,
    "rms_norm_eps": 1e-6,
    "num_key_value_heads": 2,
    "attention_bias": False,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "sliding_window": None,
    "max_window_layers": 2,
}


def scaled(config, **fields):
    return config | {"rope_scaling": fields}


def without(config, *fields):
    return {k: v for k, v in config.items() if k not in fields}


# Case: (weights, config). Groups of 1, 2, 3, 4 and 7 query heads per KV head.
CASES = {
    "llama": ("llama", LLAMA),
    "llama-linear": ("llama", scaled(
        LLAMA | {"max_position_embeddings": ORIGINAL},
        type="linear", factor=4.0)),
    "llama-dynamic": ("llama", scaled(
        LLAMA | {"max_position_embeddings": ORIGINAL},
        rope_type="dynamic", factor=4.0)),
    "llama-yarn": ("llama", scaled(
        LLAMA, type="yarn", factor=4.0,
        original_max_position_embeddings=ORIGINAL)),
    "llama-yarn-mscale": ("llama", without(LLAMA, "rope_theta") | {
        "rope_parameters": {
            "rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0,
            "original_max_position_embeddings": ORIGINAL, "beta_fast": 8,
            "beta_slow": 0.5, "mscale": 1.0, "mscale_all_dim": 0.4,
            "truncate": False}}),
    "llama-yarn-attention-factor": ("llama", scaled(
        LLAMA, rope_type="yarn", factor=4.0, attention_factor=1.4,
        original_max_position_embeddings=ORIGINAL)),
    "llama3": ("llama", scaled(
        LLAMA | {"rope_theta": 500000.0, "eos_token_id": [2, 3]},
        rope_type="llama3", factor=8.0, low_freq_factor=1.0,
        high_freq_factor=4.0, original_max_position_embeddings=ORIGINAL)),
    "llama-mha-biased": ("llama-mha-biased", without(LLAMA, "head_dim") | {
        "num_attention_heads": 2, "num_key_value_heads": 2,
        "attention_bias": True, "mlp_bias": True}),
    "smollm2": ("smollm2", without(LLAMA, "head_dim") | {
        "hidden_size": 48, "num_attention_heads": 3,
        "tie_word_embeddings": True, "rope_theta": 100000.0}),
    "mistral": ("llama", MISTRAL),
    "mistral-window": ("llama", MISTRAL | {"sliding_window": 129}),
    "qwen2": ("qwen2", QWEN2 | {
        "num_attention_heads": 7, "tie_word_embeddings": True}),
    "qwen2-yarn": ("qwen2", scaled(
        QWEN2 | {"num_attention_heads": 7, "tie_word_embeddings": True,
                 "max_position_embeddings": ORIGINAL},
        type="yarn", factor=4.0, original_max_position_embeddings=ORIGINAL)),
    "r1-distill-qwen-bf16": ("r1-distill-qwen-bf16", QWEN2 | {
        "num_attention_heads": 6, "num_key_value_heads": 2,
        "rope_theta": 10000.0, "torch_dtype": "bfloat16"}),
    "r1-distill-qwen": ("r1-distill-qwen", QWEN2 | {
        "num_attention_heads": 6, "num_key_value_heads": 2,
        "rope_theta": 10000.0}),
    "qwen3": ("qwen3", QWEN3),
}


def values(name, shape):
    """Normal numbers of a size that suits the tensor."""
    draw = np.random.default_rng(zlib.crc32(name.encode())).standard_normal
    numbers = draw(shape)
    if name.endswith("norm.weight"):
        numbers = 1.0 + 0.2 * numbers
    elif name.endswith(".bias"):
        numbers = 0.3 * numbers
    elif "embed" not in name:
        gain = 1.5 if "q_proj" in name or "k_proj" in name else 1.0
        numbers *= gain / np.sqrt(shape[1])
    return torch.tensor(numbers, dtype=torch.float32)


def make_weights(name, config):
    folder = HERE / name
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as temporary:
        write_config(temporary, config)
        model = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.from_pretrained(temporary))
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(values(key, tuple(parameter.shape)))
    model.to(getattr(torch, config["torch_dtype"]))
    if name == "qwen3":  # several shards and an index
        model.save_pretrained(folder, max_shard_size="40KB")
        for path in folder.glob("*config.json"):
            path.unlink()
        return
    tensors = dict(model.named_parameters())  # a tied one comes once
    safetensors.torch.save_file(tensors, folder / "model.safetensors")


def write_config(folder, config):
    pathlib.Path(folder, "config.json").write_text(json.dumps(config))


def load(folder, config):
    write_config(folder, config)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager")
    return model.eval()


def whole_pass(model, tokens):
    return model(torch.tensor([tokens])).logits[0]


def token_by_token(model, tokens):
    """As a generation with a KV cache; rows stay as they were rotated."""
    cache, rows = None, []
    for token in tokens:
        out = model(torch.tensor([[token]]), past_key_values=cache,
                    use_cache=True)
        cache = out.past_key_values
        rows.append(out.logits[0, 0])
    return torch.stack(rows)


def difference(a, b):
    return float((a - b).abs().max() / b.abs().max())


def frequencies(model, num_tokens):
    rotary = model.model.rotary_emb
    rotary(torch.zeros(1), torch.tensor([[num_tokens - 1]]))
    return {"num_tokens": num_tokens,
            "values": [float(f"{v:.9g}") for v in rotary.inv_freq.tolist()]}


def check_effect(case, folder, config, tokens, logits):
    """What the case is about must show in the logits."""
    plain = without(config, "rope_scaling", "rope_parameters")
    if plain == config:
        return
    effect = difference(
        whole_pass(load(folder, plain), tokens)[-1], logits[-1])
    print(f"{case}: scaling changes the last logits by {effect:.2f}")
    assert effect > 0.05, case


def make_case(case, weights, config):
    rng = np.random.default_rng(zlib.crc32(case.encode()))
    # Within the window it is the same as full attention, which we have.
    length = 128 if case == "mistral-window" else LENGTH
    tokens = rng.integers(0, VOCAB, length).tolist()
    positions = [p for p in POSITIONS if p < length - 1] + [length - 1]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for path in (HERE / weights).iterdir():
            shutil.copy(path, folder)
        logits = token_by_token(load(folder, config), tokens)
        if case != "llama-dynamic":
            whole = whole_pass(load(folder, config), tokens)
            apart = difference(whole, logits)
            assert apart < 1e-5, (case, apart)
        check_effect(case, folder, config, tokens, logits)
        model = load(folder, config)
        rope = {
            "attention_factor": float(model.model.rotary_emb.attention_scaling),
            "frequencies": [frequencies(model, n) for n in (1, 65, 200)]}
    rows = [[float(f"{v:.7g}") for v in logits[p].tolist()] for p in positions]
    (HERE / f"{case}.json").write_text(json.dumps({
        "made_with": f"transformers {transformers.__version__}, "
                     f"torch {torch.__version__.split('+')[0]}",
        "weights": weights, "config": config, "tokens": tokens,
        "positions": positions, "rope": rope, "logits": rows}) + "\n")


def main():
    torch.set_num_threads(1)
    wanted = sys.argv[1:] or list(CASES)
    if not sys.argv[1:] and HERE.exists():
        shutil.rmtree(HERE)
    for case in wanted:
        weights, config = CASES[case]
        if not (HERE / weights).exists():
            make_weights(weights, config)
        make_case(case, weights, config)


if __name__ == "__main__":
    main()
