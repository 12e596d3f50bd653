"""Hugging Face generate with a static cache: the model's own code hands the decoding step to
torch.compile."""

import torch
from transformers import CompileConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
shape = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 64,
}
model = LlamaForCausalLM(LlamaConfig(**shape, max_position_embeddings=64)).eval()
settings = GenerationConfig(
    max_new_tokens=6,
    do_sample=False,
    cache_implementation="static",
    pad_token_id=0,
    compile_config=CompileConfig(backend="aot_eager", fullgraph=True, mode=None),
)
settings.compile_config._compile_all_devices = True
for _ in range(2):
    model.generate(
        torch.ones(1, 4, dtype=torch.long),
        attention_mask=torch.ones(1, 4, dtype=torch.long),
        generation_config=settings,
    )
