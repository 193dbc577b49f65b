"""Greedy generation with a KV cache, in f32 or with bf16 operands."""

import torch
from torch.nn import functional as F

from model import causal_attention, rotate


def to_bf16(x):
    return x.bfloat16().float()


def exact(x):
    return x


class Decoder:
    """Runs a batch of equally long rows; `rounding` meets every matmul input.

    With `to_bf16` this is what a worker computes that keeps weights and KV in
    bf16 and accumulates in f32.
    """

    def __init__(self, model, rounding=exact):
        self.config = model.config
        self.model = model.model
        self.rope = model.cos, model.sin
        self.rounding = rounding
        self.cache = [None] * self.config.num_layers
        self.position = 0

    def _attend(self, index, attention, x):
        c, r = self.config, self.rounding
        batch, length, _ = x.shape
        end = self.position + length
        cos, sin = (t[self.position:end, None] for t in self.rope)
        q, k, v = (
            project(x).view(batch, length, -1, c.head_dim) for project in
            (attention.q_proj, attention.k_proj, attention.v_proj))
        q = rotate(attention.q_norm(q), cos, sin)
        k = rotate(attention.k_norm(k), cos, sin)
        k, v = r(k).transpose(1, 2), r(v).transpose(1, 2)
        if self.cache[index] is not None:
            k = torch.cat([self.cache[index][0], k], dim=2)
            v = torch.cat([self.cache[index][1], v], dim=2)
        self.cache[index] = k, v
        q = r(q).transpose(1, 2).unflatten(1, (c.num_kv_heads, -1))
        out = causal_attention(q * c.head_dim ** -0.5, k, v)
        return attention.o_proj(r(out.flatten(1, 2).transpose(1, 2).flatten(2)))

    def _feed_forward(self, mlp, x):
        hidden = F.silu(mlp.gate_proj(x)) * mlp.up_proj(x)
        return mlp.down_proj(self.rounding(hidden))

    @torch.no_grad()
    def logits(self, ids):
        """Appends `ids` [batch, length] and returns logits for each of them."""
        r = self.rounding
        x = self.model.embed_tokens(ids)
        for i, layer in enumerate(self.model.layers):
            normed = r(layer.input_layernorm(x))
            x = x + self._attend(i, layer.self_attn, normed)
            normed = r(layer.post_attention_layernorm(x))
            x = x + self._feed_forward(layer.mlp, normed)
        self.position += ids.shape[1]
        return F.linear(r(self.model.norm(x)), self.model.embed_tokens.weight)


def generate_greedy(model, prompts, num_tokens, rounding=exact, forced=None):
    """Continuations [batch, num_tokens] of prompts [batch, length].

    `forced` [batch, num_tokens] replaces what was chosen where it is not
    negative.
    """
    decoder = Decoder(model, rounding)
    tokens, rows = [], prompts
    for i in range(num_tokens):
        token = decoder.logits(rows)[:, -1:].argmax(-1)
        if forced is not None:
            given = forced[:, i:i + 1]
            token = torch.where(given < 0, token, given)
        tokens.append(token)
        rows = token
    return torch.cat(tokens, dim=1)
