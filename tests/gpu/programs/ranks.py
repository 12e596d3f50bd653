"""One rank of a DDP job: three steps with its own cache folder, which the caller may have
emptied."""

import os
from pathlib import Path

import compilewatch
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    """A class of the job: behind the graph break in DDP, torch leaves a bare `Sequential` eager."""

    def __init__(self) -> None:
        super().__init__()
        layers = [layer for _ in range(4) for layer in (torch.nn.Linear(256, 256), torch.nn.GELU())]
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(os.environ["RANK_CACHES"]) / os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
torch.distributed.init_process_group("nccl", device_id=device)
model = DistributedDataParallel(Net().to(device))
step = compilewatch.compile(model, name="step")
for _ in range(3):
    step(torch.randn(32, 256, device=device)).square().mean().backward()
torch.cuda.synchronize()
compilewatch.ready()
torch.distributed.barrier()
torch.distributed.destroy_process_group()
