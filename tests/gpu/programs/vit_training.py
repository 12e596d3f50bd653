"""Three training steps of a tiny ViT: forward and backward are compiled, with separate records or a
common one."""

import compilewatch
import timm
import torch

model = timm.create_model("vit_tiny_patch16_224", pretrained=False).cuda().train()
compiled = compilewatch.compile(model, name="vit")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    images, labels = (
        torch.randn(4, 3, 224, 224, device="cuda"),
        torch.randint(0, 1000, (4,), device="cuda"),
    )
    torch.nn.functional.cross_entropy(compiled(images), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
