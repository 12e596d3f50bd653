"""Environment diff: two multisets of instances, regardless of order and number."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.regressions.judge.environment_diff import diff_environments
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict

H100, A100 = {"gpu": "H100", "torch": "2.11.0"}, {"gpu": "A100", "torch": "2.11.0"}
INSTANCES = st.lists(
    st.dictionaries(st.sampled_from(["gpu", "torch", "driver"]), st.sampled_from(["", "a", "b"])),
    max_size=6,
)


def test_another_torch_version_is_reported_with_its_instances():
    (found,) = diff_environments([H100, H100], [H100 | {"torch": "2.12.0"}])
    assert (found.key, found.baseline, found.candidate) == (
        "torch",
        (("2.11.0", 2),),
        (("2.12.0", 1),),
    )


def test_another_mix_of_the_same_gpus_is_a_difference():
    (found,) = diff_environments([H100, H100, A100], [H100, A100, A100])
    assert (found.key, found.baseline) == ("gpu", (("H100", 2), ("A100", 1)))
    assert not diff_environments([H100, A100], [H100, H100, A100, A100])


def test_an_unset_variable_on_one_side_is_reported_as_unset():
    bare = H100 | {"cache folder access": "read and write"}
    (found,) = diff_environments([bare], [bare | {"inductor_config max_autotune": "9f"}])
    assert (found.baseline, found.candidate) == ((("", 1),), (("9f", 1),))


def test_a_value_that_an_older_agent_does_not_report_is_no_difference():
    tells = H100 | {
        "driver": "580",
        "cache folder": "aa",
        "inductor_config max_autotune": "9f",
        "env TORCHINDUCTOR_FREEZING": "1b",
    }
    assert diff_environments([H100], [tells]) == () == diff_environments([tells], [H100, H100])
    (found,) = diff_environments([tells, H100], [tells | {"driver": "570"}, H100])
    assert (found.key, found.baseline, found.candidate) == (
        "driver",
        (("580", 1),),
        (("570", 1),),
    ), "over the instances that report it"


def test_hosts_come_before_configuration():
    found = diff_environments(
        [{"a config": "1", "driver": "570", "gpu": "H100"}],
        [{"a config": "2", "driver": "580", "gpu": "A100"}],
    )
    assert [one.key for one in found] == ["gpu", "driver", "a config"]


@given(baseline=INSTANCES, candidate=INSTANCES)
def test_order_and_number_change_nothing(
    baseline: list[dict[str, str]], candidate: list[dict[str, str]]
):
    found = diff_environments(baseline, candidate)
    assert diff_environments(baseline[::-1], candidate[::-1]) == found
    assert not diff_environments(baseline, baseline * 2)
    assert [one.key for one in diff_environments(candidate, baseline)] == [one.key for one in found]


@pytest.mark.django_db
def test_the_verdict_stores_the_differences(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
):
    for one in side_by_side:
        one.identity.driver = "575.51"
        if one.rollout.version == "2026.11.3":
            one.identity.torch, one.identity.driver = "2.12.0", "580.65"
        send(one)
    deployments_judge()
    evidence = Verdict.objects.get(current=True, deployment__version__name="2026.11.3").evidence
    assert evidence["environment"] == [
        {"key": "driver", "baseline": [["575.51", 3]], "candidate": [["580.65", 3]]},
        {"key": "torch", "baseline": [["2.11.0", 3]], "candidate": [["2.12.0", 3]]},
    ]
