"""timm's resnet50 with random weights, three batches."""

import compilewatch
import timm
import torch

model = timm.create_model("resnet50", pretrained=False).cuda().eval()
compiled = compilewatch.compile(model, name="resnet50")
with torch.inference_mode():
    for _ in range(3):
        compiled(torch.randn(4, 3, 224, 224, device="cuda"))
torch.cuda.synchronize()
compilewatch.ready()
