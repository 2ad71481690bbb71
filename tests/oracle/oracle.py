#!/usr/bin/env python3
"""The truth that the engine is tested against: a llama forward pass in numpy, f32 throughout.

usage: tests/oracle/oracle.py MODEL.gguf PROMPTS.json [--tokens 64] [--only NAME] > EXPECTED.json

For each prompt of token ids: the greedy continuation, the smallest margin between the best and the
second-best logit on the way (a near-tie would make "identical tokens" a matter of luck), and the
first token's most probable ids with their log-probabilities.
"""
import argparse
import json
import sys

import numpy as np

from gguf_numpy import Gguf

TOP = 64  # log-probabilities recorded a prompt


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def silu(x):
    return x / (1 + np.exp(-x))


class Llama:
    def __init__(self, path):
        gguf = Gguf(path)
        meta = {k.removeprefix("llama."): v for k, v in gguf.metadata.items()}
        self.layers = meta["block_count"]
        self.heads = meta["attention.head_count"]
        self.kv_heads = meta.get("attention.head_count_kv", self.heads)
        self.eps = np.float32(meta["attention.layer_norm_rms_epsilon"])
        self.head_dim = meta["embedding_length"] // self.heads
        self.rope_dims = meta.get("rope.dimension_count", self.head_dim)
        pairs = np.arange(0, self.rope_dims, 2, dtype=np.float64)
        self.inverse_freq = meta.get("rope.freq_base", 10000.0) ** (-pairs / self.rope_dims)
        self.weights = {name: gguf.tensor(name) for name in gguf.heads}
        self.embedding = self.weights["token_embd.weight"]
        self.output = self.weights.get("output.weight", self.embedding)
        self.reset()

    def reset(self):
        empty = np.zeros((self.kv_heads, 0, self.head_dim), np.float32)
        self.k = [empty] * self.layers
        self.v = [empty] * self.layers

    def rope(self, x, first):
        """Rotates the pairs (0,1), (2,3), ... of x [heads, tokens, head_dim]."""
        positions = np.arange(first, first + x.shape[1])
        angle = positions[:, None] * self.inverse_freq[None, :]
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        out = x.copy()
        even, odd = x[..., 0:self.rope_dims:2], x[..., 1:self.rope_dims:2]
        out[..., 0:self.rope_dims:2] = even * cos - odd * sin
        out[..., 1:self.rope_dims:2] = even * sin + odd * cos
        return out

    def attention(self, layer, x):
        def project(name, heads):
            y = x @ self.weights[f"blk.{layer}.attn_{name}.weight"].T
            return y.reshape(len(x), heads, self.head_dim).transpose(1, 0, 2)

        first = self.k[layer].shape[1]
        q = self.rope(project("q", self.heads), first)
        k = self.rope(project("k", self.kv_heads), first)
        self.k[layer] = np.concatenate([self.k[layer], k], axis=1)
        self.v[layer] = np.concatenate([self.v[layer], project("v", self.kv_heads)], axis=1)
        group = self.heads // self.kv_heads
        keys = np.repeat(self.k[layer], group, axis=0)
        values = np.repeat(self.v[layer], group, axis=0)
        scores = q @ keys.transpose(0, 2, 1) / np.float32(np.sqrt(self.head_dim))
        ahead = np.arange(keys.shape[1])[None, :] > first + np.arange(len(x))[:, None]
        scores[:, ahead] = -np.inf
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ values).transpose(1, 0, 2).reshape(len(x), -1)
        return mixed @ self.weights[f"blk.{layer}.attn_output.weight"].T

    def feed_forward(self, layer, x):
        gate, up, down = (self.weights[f"blk.{layer}.ffn_{n}.weight"] for n in ("gate", "up", "down"))
        return (silu(x @ gate.T) * (x @ up.T)) @ down.T

    def logits(self, tokens):
        """Appends `tokens` to the sequence; logits [vocabulary] after the last one."""
        x = self.embedding[tokens]
        for layer in range(self.layers):
            norm = self.weights[f"blk.{layer}.attn_norm.weight"]
            x = x + self.attention(layer, rms_norm(x, norm, self.eps))
            norm = self.weights[f"blk.{layer}.ffn_norm.weight"]
            x = x + self.feed_forward(layer, rms_norm(x, norm, self.eps))
        return rms_norm(x[-1], self.weights["output_norm.weight"], self.eps) @ self.output.T


def run(model, prompt, n_tokens):
    model.reset()
    logits = model.logits(prompt["tokens"])
    shifted = logits.astype(np.float64) - logits.max()
    log_probs = shifted - np.log(np.exp(shifted).sum())
    top = np.argsort(-log_probs, kind="stable")[:TOP]
    greedy, margin = [], np.inf
    while True:
        second, first = np.partition(logits, -2)[-2:]
        margin = min(margin, float(first - second))
        greedy.append(int(logits.argmax()))
        if len(greedy) == n_tokens:
            break
        logits = model.logits(greedy[-1:])
    return {"name": prompt["name"], "tokens": prompt["tokens"], "greedy": greedy,
            "margin_min": round(margin, 6),
            "top": [[int(i), round(float(log_probs[i]), 6)] for i in top]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("prompts")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--only", help="the prompt of this name alone")
    args = parser.parse_args()
    with open(args.prompts, encoding="utf-8") as file:
        prompts = [p for p in json.load(file) if args.only in (None, p["name"])]
    model = Llama(args.model)
    rows = []
    for prompt in prompts:
        rows.append(run(model, prompt, args.tokens))
        print(f"{prompt['name']}: margin {rows[-1]['margin_min']}", file=sys.stderr)
    print("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]")


if __name__ == "__main__":
    main()
