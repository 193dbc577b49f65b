"""Makes the seeds of corpus/model_weights: models of one layer.

usage: make_model_weights.py     (needs nothing)

Each is a GGUF, or the length of a config.json, the config and a safetensors
file (model_input.h). The seeds of WELL_FORMED load; in each other one a model
that would load has one thing wrong, named by the seed. corpus_test.cc says the
same of them.
"""

import json
import os
import random
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
F32, F16, Q4_0, Q8_0, IQ4_NL, I32 = 0, 1, 2, 8, 20, 26  # as GGUF numbers them
GROUPS = {F32: (1, 4), F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34),
          IQ4_NL: (32, 18), I32: (1, 4)}
VOCAB = 5


def size_of(kind, shape):
    """Bytes of a tensor."""
    elements, group_bytes = GROUPS[kind]
    count = 1
    for extent in shape:
        count *= extent
    return count // elements * group_bytes


def shapes(width, layer):
    """Shapes of a layer of one head of 16 for each 16 of `width`, by part."""
    names = {f"{layer}.{name}": [width, width] for name in
             ("attn_q", "attn_output", "ffn_gate", "ffn_up", "ffn_down")}
    names.update({f"{layer}.{name}": [16, width]
                  for name in ("attn_k", "attn_v")})
    names.update({f"{layer}.{name}": [width]
                  for name in ("attn_norm", "ffn_norm")})
    return names


class Gguf:
    """A model with what can be wrong with it."""

    def __init__(self, arch, kind, width, tied=False):
        self.arch, self.width = arch, width
        self.values = {
            "embedding_length": width, "feed_forward_length": width,
            "block_count": 1, "context_length": 64,
            "attention.head_count": width // 16, "attention.head_count_kv": 1,
            "attention.layer_norm_rms_epsilon": 1e-5}
        self.tensors = {"token_embd.weight": (kind, [VOCAB, width]),
                        "output_norm.weight": (F32, [width])}
        if not tied:
            self.tensors["output.weight"] = (kind, [VOCAB, width])
        for name, shape in shapes(width, "blk.0").items():
            of_norm = len(shape) == 1
            self.tensors[name + ".weight"] = (F32 if of_norm else kind, shape)
        if arch == "qwen3":
            for name in ("attn_q_norm", "attn_k_norm"):
                self.tensors[f"blk.0.{name}.weight"] = (F32, [16])
        self.share = None  # two tensors at one place

    def with_values(self, **values):
        self.values.update(
            {key.replace("__", "."): value for key, value in values.items()})
        return self

    def with_tensor(self, name, kind, shape):
        self.tensors[name] = (kind, shape)
        return self

    def without(self, name):
        del self.tensors[name]
        return self

    def sharing(self, name, other):
        self.share = (name, other)
        return self

    def data(self):
        """The bytes of the file."""
        def text(value):
            return struct.pack("<Q", len(value)) + value.encode()

        values = text("general.architecture") + struct.pack("<I", 8) + text(
            self.arch)
        for key, value in self.values.items():
            values += text(f"{self.arch}.{key}")
            values += (struct.pack("<If", 6, value) if isinstance(value, float)
                       else struct.pack("<II", 4, value))
        places, payload = {}, b""
        rng = random.Random(1)
        for name, (kind, shape) in self.tensors.items():
            places[name] = len(payload)
            payload += small(rng, size_of(kind, shape))
            payload += bytes(-len(payload) % 32)
        if self.share:
            places[self.share[0]] = places[self.share[1]]
        infos = b""
        for name, (kind, shape) in self.tensors.items():
            infos += text(name) + struct.pack("<I", len(shape))
            infos += b"".join(struct.pack("<Q", e) for e in reversed(shape))
            infos += struct.pack("<IQ", kind, places[name])
        head = b"GGUF" + struct.pack(
            "<IQQ", 3, len(self.tensors), 1 + len(self.values))
        head += values + infos
        return head + bytes(-len(head) % 32) + payload


def small(rng, count):
    """Weights of a few values: such seeds are small in git."""
    return bytes(rng.choice((0, 0x3c)) for _ in range(count))


HF_NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
            "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
            "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm",
            "ffn_norm": "post_attention_layernorm"}
BYTES_OF = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I32": 4}


def folder(dtype="BF16", tied=False, config=None, tensors=None, lacks=()):
    """A config.json and a safetensors file; `tensors` replaces or adds."""
    width = 16
    fields = {"architectures": ["LlamaForCausalLM"], "hidden_size": width,
              "intermediate_size": width, "num_hidden_layers": 1,
              "num_attention_heads": 1, "num_key_value_heads": 1,
              "vocab_size": VOCAB, "max_position_embeddings": 64,
              "tie_word_embeddings": tied}
    fields.update(config or {})
    wanted = {"model.embed_tokens.weight": (dtype, [VOCAB, width]),
              "model.norm.weight": (dtype, [width])}
    if not tied:
        wanted["lm_head.weight"] = (dtype, [VOCAB, width])
    for name, shape in shapes(width, "layer").items():
        wanted[f"model.layers.0.{HF_NAMES[name[6:]]}.weight"] = (dtype, shape)
    wanted.update(tensors or {})
    rng = random.Random(2)
    header, payload = {}, b""
    for name, (kind, shape) in wanted.items():
        if name in lacks:
            continue
        count = BYTES_OF[kind]
        for extent in shape:
            count *= extent
        header[name] = {"dtype": kind, "shape": shape,
                        "data_offsets": [len(payload), len(payload) + count]}
        payload += small(rng, count)
    text = json.dumps(fields, separators=(",", ":")).encode()
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (1 - len(head) % 2)  # tensors at odd places
    return (struct.pack("<I", len(text)) + text +
            struct.pack("<Q", len(head)) + head + payload)


def llama():
    return Gguf("llama", F16, 16)


WELL_FORMED = {
    "llama_f16": llama().data(),
    "llama_q4_0": Gguf("llama", Q4_0, 32).data(),
    "qwen3_tied": Gguf("qwen3", F16, 16, tied=True).data(),
    "folder_bf16": folder(),
    "folder_f16_tied": folder("F16", tied=True),
}
MALFORMED = {
    "layers_missing": llama().with_values(block_count=40).data(),
    "layer_surplus": llama().with_tensor(
        "blk.1.attn_norm.weight", F32, [16]).data(),
    "matrix_shape": llama().with_tensor(
        "blk.0.ffn_down.weight", F16, [16, 48]).data(),
    "matrix_flat": llama().with_tensor(
        "blk.0.ffn_up.weight", F16, [256]).data(),
    "vector_deep": llama().with_tensor(
        "blk.0.ffn_norm.weight", F32, [1, 16]).data(),
    "norm_quantised": Gguf("llama", Q4_0, 32).with_tensor(
        "blk.0.attn_norm.weight", Q8_0, [32]).data(),
    "type_unknown": Gguf("llama", Q4_0, 32).with_tensor(
        "blk.0.attn_v.weight", IQ4_NL, [16, 32]).data(),
    "type_integer": llama().with_tensor(
        "blk.0.attn_k.weight", I32, [16, 16]).data(),
    "width_huge": llama().with_values(embedding_length=1 << 17,
                                      attention__key_length=16).data(),
    "inner_huge": llama().with_values(feed_forward_length=1 << 20).data(),
    "heads_huge": llama().with_values(attention__head_count=1024,
                                      attention__key_length=512).data(),
    "final_norm_missing": llama().without("output_norm.weight").data(),
    "bias_of_one": llama().with_tensor("blk.0.attn_q.bias", F32, [16]).data(),
    "head_norm_missing": Gguf("qwen3", F16, 16).without(
        "blk.0.attn_k_norm.weight").data(),
    "tensors_share": llama().sharing("blk.0.attn_k.weight",
                                     "blk.0.attn_v.weight").data(),
    "truncated": llama().data()[:-40],
    "folder_layers": folder(config={"num_hidden_layers": 40}),
    "folder_vocabulary": folder(config={"vocab_size": 1 << 22}),
    "folder_integer": folder(tensors={"model.norm.weight": ("I32", [16])}),
    "folder_f64": folder("F64"),
    "folder_shape": folder(
        tensors={"model.layers.0.mlp.up_proj.weight": ("BF16", [256])}),
    "folder_surplus": folder(
        tensors={"model.layers.0.mlp.up_proj.bias": ("BF16", [16])}),
    "folder_no_output": folder(lacks=("lm_head.weight", )),
    "folder_truncated": folder()[:-9],
    "folder_length": b"\xff\xff\xff\xff" + folder()[4:],
}


def main():
    place = os.path.join(HERE, "corpus", "model_weights")
    os.makedirs(place, exist_ok=True)
    for name, data in {**WELL_FORMED, **MALFORMED}.items():
        with open(os.path.join(place, name), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
