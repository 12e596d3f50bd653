"""A small UNet sampled for a few steps, its repeated blocks compiled in place by inductor."""

import torch


class Block(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.time = torch.nn.Linear(4, channels)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        return x + torch.nn.functional.silu(self.convolution(x) + self.time(time)[:, :, None, None])


class UNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.down = torch.nn.ModuleList([Block(8) for _ in range(2)])
        self.up = torch.nn.ModuleList([Block(8) for _ in range(2)])
        self.leave = torch.nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        x = self.enter(x)
        for block in self.down:
            x = torch.nn.functional.avg_pool2d(block(x, time), 2)
        for block in self.up:
            x = torch.nn.functional.interpolate(block(x, time), scale_factor=2)
        return self.leave(x)


model = UNet().eval()
for block in (*model.down, *model.up):
    block.compile()
with torch.no_grad():
    image = torch.randn(1, 3, 16, 16)
    for step in range(4):
        image = image - 0.1 * model(image, torch.full((1, 4), step / 4))
