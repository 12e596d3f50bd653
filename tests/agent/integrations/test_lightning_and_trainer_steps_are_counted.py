"""Steps that Lightning and the Trainer of transformers run through a watched module are counted: as
many as the framework ran."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

LIGHTNING = """
import json, warnings
warnings.simplefilter("ignore")
import compilewatch
compilewatch.init(model="m", interval=200, kind="training")
import torch, lightning

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = compilewatch.compile(torch.nn.Linear(8, 1), backend="eager")
        self.steps = 0
    def training_step(self, batch, number):
        self.steps += 1
        with compilewatch.region("step"):
            return self.net(batch[0]).pow(2).mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

model = Model()
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(40, 8)), batch_size=4)
silent = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
lightning.Trainer(max_epochs=2, accelerator="cpu", **silent).fit(model, data)
print("STEPS", json.dumps(model.steps))
"""
TRAINER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import compilewatch
compilewatch.init(model="m", interval=200, kind="training")
import torch, transformers

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = compilewatch.compile(torch.nn.Linear(8, 1), backend="eager")
        self.steps = 0
    def forward(self, x, labels=None):
        self.steps += 1
        with compilewatch.region("step"):
            return {"loss": (self.net(x).squeeze(-1) - labels).pow(2).mean()}

rows = [{"x": torch.randn(8), "labels": torch.tensor(1.0)} for _ in range(40)]
model = Model()
settings = transformers.TrainingArguments(
    sys.argv[1], per_device_train_batch_size=4, num_train_epochs=2, report_to=[], use_cpu=True, save_strategy="no", disable_tqdm=True
)
transformers.Trainer(model=model, args=settings, train_dataset=rows).train()
print("STEPS", json.dumps(model.steps))
"""
UNWRAPPED = (
    LIGHTNING.replace(
        'compilewatch.compile(torch.nn.Linear(8, 1), backend="eager")', "torch.nn.Linear(8, 1)"
    )
    .replace('with compilewatch.region("step"):', "if True:")
    .replace("fit(model, data)", 'fit(compilewatch.compile(model, backend="eager"), data)')
)


@pytest.mark.parametrize("program", [LIGHTNING, TRAINER], ids=["Lightning", "Trainer"])
def test_the_count_of_steps_is_the_frameworks(
    dashboard: Dashboard, tmp_path: Path, program: str
) -> None:
    done = run(program, str(tmp_path), ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    steps = json.loads(done.stdout.partition("STEPS ")[2])
    assert steps == 20 == dashboard.calls("step")
    assert (
        sum(
            region.calls
            for report in dashboard.reports()
            for region in report.regions
            if region.name != "step"
        )
        == steps
    )


def test_a_module_that_the_trainer_unwraps_is_a_finding(dashboard: Dashboard) -> None:
    done = run(UNWRAPPED, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    reports = dashboard.reports()
    assert [region.name for report in reports for region in report.regions] == []
    [finding] = [
        one for report in reports for one in report.findings if one.kind == "wrapper_not_entered"
    ]
    assert "Model.training_step" in finding.text and "`Model`" in finding.text
