"""A mapping object that is not a dict (like a tokenizer result) is passed with ** and a config-built transformer runs;
input names must be the keyword names.
"""

from __future__ import annotations

import torch
from transformers import BatchEncoding, GPT2Config, GPT2LMHeadModel


def case():
    torch.manual_seed(0)
    cfg = GPT2Config(vocab_size=50, n_positions=16, n_embd=8, n_layer=2, n_head=2, attn_implementation="eager")
    enc = BatchEncoding(
        {"input_ids": torch.randint(0, 50, (1, 5)), "attention_mask": torch.ones(1, 5, dtype=torch.long)}
    )
    return GPT2LMHeadModel(cfg).eval(), (), dict(enc.items())


EXPECT = {
    "n_inputs": 2,
    "inputs": ["input_ids", "attention_mask"],
    "calls": {"transformer.h.0": 1, "transformer.h.1.attn": 1, "lm_head": 1},
    "min_ops": {"softmax": 2, "layer_norm": 5},
}
