"""A GPT-2 of four layers, replayed as CUDA graphs."""

import compilewatch
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=4, use_cache=False)).cuda().eval()
compiled = compilewatch.compile(model, name="gpt2", mode="reduce-overhead")
tokens = torch.randint(0, 50000, (1, 64), device="cuda")
with torch.no_grad():
    for _ in range(6):
        compiled(tokens)
torch.cuda.synchronize()
