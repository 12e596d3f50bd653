"""Cells of a notebook: IPython runs them, and the place of what they compile is the cell."""

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
cells = (
    """
import torch

@torch.compile(backend="eager", dynamic=False)
def cell(x):
    x = x + 1
    print(end="")
    return x * 2
""",
    "first = cell(torch.ones(3))",
    "second = cell(torch.ones(4))",
)
for text in cells:
    shell.run_cell(text, store_history=True).raise_error()
