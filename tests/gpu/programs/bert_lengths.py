"""A BERT of four layers with texts of different lengths: torch recompiles the model with a symbolic
length."""

import compilewatch
import torch
from transformers import BertConfig, BertModel

model = BertModel(BertConfig(num_hidden_layers=4)).cuda().eval()
compiled = compilewatch.compile(model, name="bert")
with torch.no_grad():
    for length in (16, 24, 40, 64, 96, 128):
        compiled(torch.randint(0, 30000, (2, length), device="cuda"))
torch.cuda.synchronize()
