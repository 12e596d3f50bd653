"""Names in one manifest exist in another manifest, in the image or in the dashboard: labels, ports,
paths, roles, settings, sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from django.urls import resolve

from dashboard.common.outbound.url import ALLOWED_PORTS
from dashboard.common.probe_hosts import PROBE_PATHS
from dashboard.environment.settings import env_read
from dashboard.projects.services import key_create, project_create
from tests.dashboard.test_a_wrong_setting_is_one_sentence import FULL
from tests.image.recipe import instructions
from tests.image.test_the_deployed_manifests_are_valid import DOCKER, MANIFESTS, REPOSITORY

OBJECTS = [
    each
    for file in MANIFESTS
    if file.name != "kustomization.yaml"
    for each in yaml.safe_load_all(file.read_text())
]
NAMED = {(each["kind"], each["metadata"]["name"]): each for each in OBJECTS}
PODS = {
    name: each["spec"]["template"]
    for (kind, name), each in NAMED.items()
    if kind in ("Deployment", "Job")
}
RECIPE = list(instructions((DOCKER / "Dockerfile").read_text()))
ENTRYPOINT = (DOCKER / "entrypoint").read_text()
OPERATIONS = REPOSITORY / "dashboard/docs/operations"
GUIDE = "\n".join(page.read_text() for page in sorted(OPERATIONS.glob("*.md")))


def of_kind(kind: str) -> Iterator[tuple[str, Any]]:
    """Names and specifications of a kind."""
    return ((name, each["spec"]) for (its, name), each in NAMED.items() if its == kind)


def chosen(labels: dict[str, str]) -> set[str]:
    """The pods that a selector finds."""
    return {
        name for name, pod in PODS.items() if labels.items() <= pod["metadata"]["labels"].items()
    }


def container(name: str) -> Any:
    """The only container of a pod."""
    [only] = PODS[name]["spec"]["containers"]
    return only


def environment_of_the_image() -> dict[str, str]:
    return dict(
        part.split("=", 1) for word, rest in RECIPE if word == "ENV" for part in rest.split()
    )


@pytest.mark.parametrize("kind", ["Deployment", "Service", "PodDisruptionBudget"])
def test_each_selector_finds_exactly_its_own_pods(kind: str) -> None:
    found = dict(of_kind(kind))
    assert found
    for name, spec in found.items():
        assert chosen(spec["selector"].get("matchLabels", spec["selector"])) == {name}


def test_every_network_policy_finds_pods() -> None:
    found = {
        name: chosen(spec["podSelector"].get("matchLabels", {}))
        for name, spec in of_kind("NetworkPolicy")
    }
    everyone = set(PODS)
    assert found == {
        "nothing": everyone,
        "to-web": {"web"},
        "to-database-redis-and-names": everyone,
        "worker-to-channels": {"worker"},
        "web-to-sign-in-and-mail": {"web"},
    }


def test_the_service_leads_to_the_port_that_the_entrypoint_listens_on() -> None:
    ports = {port["name"]: port["containerPort"] for port in container("web")["ports"]}
    listens = int(environment_of_the_image()["COMPILEWATCH_PORT"])
    assert ports == {"http": listens}
    assert [port["targetPort"] for port in NAMED["Service", "web"]["spec"]["ports"]] == ["http"]
    assert ("EXPOSE", str(listens)) in RECIPE
    assert "COMPILEWATCH_PORT" not in NAMED["ConfigMap", "compilewatch"]["data"]
    # Not 127.0.0.1, which is unreachable from outside the pod.
    assert 'web --host "${COMPILEWATCH_LISTEN:-0.0.0.0}"' in ENTRYPOINT


def test_web_is_reachable_at_its_port_and_each_pod_reaches_its_servers() -> None:
    rules = {name: ports(spec) for name, spec in of_kind("NetworkPolicy")}
    assert rules["to-web"] == {"http"}
    needed = env_read(
        FULL
        | {
            "COMPILEWATCH_EMAIL_HOST": "mail.example.com",
            "COMPILEWATCH_EMAIL_FROM": "cw@example.com",
        }
    )
    assert needed.mail is not None
    assert rules["to-database-redis-and-names"] == {5432, 6379, 53}
    assert rules["worker-to-channels"] == {*ALLOWED_PORTS, needed.mail.port}
    assert rules["web-to-sign-in-and-mail"] == {443, needed.mail.port}


def ports(policy: Any) -> set[int | str]:
    """The ports that a policy opens."""
    return {
        port["port"]
        for way in ("ingress", "egress")
        for rule in policy.get(way, ())
        for port in rule["ports"]
    }


def probes() -> Iterator[tuple[str, str, Any]]:
    for name in PODS:
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            if kind in container(name):
                yield name, kind, container(name)[kind]


@pytest.mark.django_db
def test_every_probe_has_an_existing_target(client: Client) -> None:
    asked = {(name, kind): probe for name, kind, probe in probes()}
    assert set(asked) == {
        ("web", "startupProbe"),
        ("web", "livenessProbe"),
        ("web", "readinessProbe"),
        ("worker", "livenessProbe"),
    }
    for (name, _), probe in asked.items():
        if name == "web":
            path = probe["httpGet"]["path"]
            assert probe["httpGet"]["port"] == "http" and path in PROBE_PATHS and resolve(path)
            headers = {
                header["name"]: header["value"] for header in probe["httpGet"]["httpHeaders"]
            }
            assert client.get(path, headers=headers).status_code == 200
        else:
            program, word = probe["exec"]["command"]
            assert ("ENTRYPOINT", f'["{program}"]') in RECIPE and re.search(
                rf"^  {word}\)", ENTRYPOINT, re.MULTILINE
            )


def test_a_slow_response_does_not_end_a_process() -> None:
    for name, kind, probe in probes():
        # The dashboard's own wait for an unresponsive database is shorter than this.
        assert kind == "startupProbe" or probe["timeoutSeconds"] >= 4, (name, kind)


def test_every_pod_runs_a_role_as_the_account_of_the_image() -> None:
    [account] = [rest for word, rest in RECIPE if word == "USER"]
    for name, pod in PODS.items():
        assert container(name)["args"] == [name] and re.search(
            rf"^  {name}\)", ENTRYPOINT, re.MULTILINE
        )
        security = pod["spec"]["securityContext"]
        assert f"{security['runAsUser']}:{security['runAsGroup']}" == account
        mounted = {mount["name"]: mount["mountPath"] for mount in container(name)["volumeMounts"]}
        assert mounted == {volume["name"]: "/tmp" for volume in pod["spec"]["volumes"]}


def test_no_kubernetes_service_can_change_a_setting() -> None:
    # A Service named compilewatch would make Kubernetes set COMPILEWATCH_PORT=tcp://10.0.0.1:80,
    # and no process starts with that value.
    assert set(PODS) == {"web", "worker", "migrate"}
    assert all(pod["spec"]["enableServiceLinks"] is False for pod in PODS.values())


def test_a_pod_requests_the_memory_that_the_guide_measured() -> None:
    measured = {
        name: int(most)
        for name, most in re.findall(
            r"^\| (web|worker)[^|]*\| (?:\d+ to )?(\d+) MiB", GUIDE, re.MULTILINE
        )
    }
    assert set(measured) == {"web", "worker"}
    for name, mebibytes in measured.items():
        resources = container(name)["resources"]
        assert (
            mebibytes
            < _mebibytes(resources["requests"]["memory"])
            <= _mebibytes(resources["limits"]["memory"])
        ), name


def _mebibytes(text: str) -> int:
    return int(text[:-2]) * {"Mi": 1, "Gi": 1024}[text[-2:]]


def test_each_scaled_deployment_exists_and_keeps_a_pod_during_a_disruption() -> None:
    for name, spec in of_kind("HorizontalPodAutoscaler"):
        target = spec["scaleTargetRef"]
        deployment = NAMED[target["kind"], target["name"]]
        assert target["apiVersion"] == deployment["apiVersion"]
        # A number in the deployment would reset the autoscaler whenever the manifests are applied.
        assert "replicas" not in deployment["spec"]
        assert spec["minReplicas"] > NAMED["PodDisruptionBudget", name]["spec"]["maxUnavailable"]


@pytest.mark.django_db
def test_every_metric_of_an_autoscaler_is_exported(client: Client) -> None:
    _, key = key_create(
        project=project_create(name="Flow", slug="flow"), kind="api", name="autoscaler"
    )
    measured = set(
        re.findall(
            r"^# TYPE (\S+)",
            client.get("/metrics", headers={"authorization": f"Bearer {key}"}).content.decode(),
            re.M,
        )
    )
    metrics = [
        metric for _, spec in of_kind("HorizontalPodAutoscaler") for metric in spec["metrics"]
    ]
    external = {
        metric["external"]["metric"]["name"] for metric in metrics if metric["type"] == "External"
    }
    assert external == {"compilewatch_inbox_age_seconds"} <= measured
    for metric in metrics:
        if metric["type"] == "Resource":
            # Utilization is only defined if the container has a request.
            assert metric["resource"]["name"] in container("web")["resources"]["requests"]


def test_the_adapter_rule_of_the_guide_matches_the_autoscaler_metric() -> None:
    scraped, adapter = (
        yaml.safe_load(block)
        for block in re.findall(r"```\n((?:scrape_configs|externalRules):.*?)```", GUIDE, re.DOTALL)
    )
    [metric] = NAMED["HorizontalPodAutoscaler", "worker"]["spec"]["metrics"]
    name = metric["external"]["metric"]["name"]
    assert adapter["externalRules"] == [
        {
            "seriesQuery": f'{{__name__="{name}"}}',
            "metricsQuery": f"max({name})",
            "resources": {"namespaced": False},
        }
    ]
    [job] = scraped["scrape_configs"]
    [address] = [target for group in job["static_configs"] for target in group["targets"]]
    assert (job["scheme"], address) == (
        "https",
        NAMED["ConfigMap", "compilewatch"]["data"]["COMPILEWATCH_HOSTS"],
    )


def test_the_guide_fills_the_node_of_a_job_from_its_pod() -> None:
    blocks = re.findall(r"```yaml\n(env:.*?)```", GUIDE, re.DOTALL)
    assert [yaml.safe_load(block) for block in blocks] == [
        {
            "env": [
                {
                    "name": "COMPILEWATCH_NODE",
                    "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
                }
            ]
        }
    ]


def test_every_setting_in_the_manifests_exists_and_every_pod_has_all() -> None:
    explained = set(
        re.findall(r"^#? ?(COMPILEWATCH_\w+)=", (DOCKER / "env.example").read_text(), re.MULTILINE)
    )
    configured = NAMED["ConfigMap", "compilewatch"]["data"]
    secret = set(
        re.findall(
            r"COMPILEWATCH_\w+", (DOCKER / "k8s/config.yaml").read_text().split("apiVersion")[0]
        )
    )
    assert set(configured) | secret <= explained
    assert (
        env_read({name: FULL[name] for name in secret} | configured).mode == "full"
    )  # no required setting is missing
    for name in PODS:
        refers = [
            reference for source in container(name)["envFrom"] for reference in source.items()
        ]
        assert refers == [
            ("configMapRef", {"name": "compilewatch"}),
            ("secretRef", {"name": "compilewatch"}),
        ]
    assert "kubectl create secret generic compilewatch --namespace compilewatch" in GUIDE


def test_every_setting_of_the_compose_file_exists_and_none_is_missing() -> None:
    explained = set(
        re.findall(r"^#? ?(COMPILEWATCH_\w+)=", (DOCKER / "env.example").read_text(), re.MULTILINE)
    )
    configured = yaml.safe_load((DOCKER / "compose.yml").read_text())["x-dashboard"]["environment"]
    # The image sets the listen address and the data folder, and tracebacks must stay hidden.
    assert explained - set(configured) == {
        f"COMPILEWATCH_{name}" for name in ("DATA", "LISTEN", "PORT", "DEBUG")
    }
    assert set(configured) <= explained
    mine = {
        "COMPILEWATCH_HOST": "watch.example.com",
        "POSTGRES_PASSWORD": "letters",
        "COMPILEWATCH_SECRET_KEY": "s" * 32,
    }
    env = env_read(interpolated(configured, mine | {"COMPILEWATCH_KEY_PEPPER": "p" * 32}))
    assert (env.hosts, env.base_url, env.mail, env.oidc) == (
        ("watch.example.com",),
        "https://watch.example.com",
        None,
        None,
    )
    mail = {
        "COMPILEWATCH_EMAIL_HOST": "mail.example.com",
        "COMPILEWATCH_EMAIL_FROM": "cw@example.com",
        "COMPILEWATCH_SCHEME": "http",
    }
    mine |= {"COMPILEWATCH_ALLOW_HTTP": "1"}
    env = env_read(interpolated(configured, mine | {"COMPILEWATCH_KEY_PEPPER": "p" * 32} | mail))
    assert env.mail and (env.mail.port, env.base_url) == (587, "http://watch.example.com")


def test_the_guide_lists_the_source_of_each_setting_of_the_compose_file() -> None:
    explained = set(
        re.findall(r"^#? ?(COMPILEWATCH_\w+)=", (DOCKER / "env.example").read_text(), re.MULTILINE)
    )
    text = (DOCKER / "compose.yml").read_text()
    configured = yaml.safe_load(text)["x-dashboard"]["environment"]
    mine = set(re.findall(r"\$\{(\w+)", text))
    assert guide_row("`docker/.env`", explained) == mine
    assert guide_row("compose.yml", explained) == set(configured) - mine
    assert guide_row("the image", explained) | guide_row("not set", explained) == explained - set(
        configured
    )


def guide_row(source: str, explained: set[str]) -> set[str]:
    """The settings in a row of the guide's table; a name with a final star is a prefix."""
    text = (OPERATIONS / "settings.md").read_text().split("## Settings of the compose file")[1]
    [row] = re.findall(rf"^\| {re.escape(source)} \| (.*) \|$", text, re.MULTILINE)
    named = set(re.findall(r"`([A-Z_]+\*?)`", row))
    return {
        one
        for name in named
        for one in (explained if name.endswith("*") else [name])
        if one.startswith(name.rstrip("*"))
    }


def test_no_container_of_the_compose_file_may_gain_privileges_and_only_the_database_may_write() -> (
    None
):
    services = yaml.safe_load((DOCKER / "compose.yml").read_text())["services"]
    assert {name for name, service in services.items() if not service.get("read_only")} == {
        "postgres"
    }
    for name in ("proxy", "migrate", "web", "worker"):
        assert services[name]["cap_drop"] == ["ALL"] and services[name]["security_opt"] == [
            "no-new-privileges:true"
        ]
    # Caddy listens on 80 and 443.
    assert {
        name: service["cap_add"] for name, service in services.items() if "cap_add" in service
    } == {"proxy": ["NET_BIND_SERVICE"]}


def interpolated(configured: dict[str, str], mine: dict[str, str]) -> dict[str, str]:
    """Substitutes the known variables like compose, and uses the default for the others."""

    def value(found: re.Match[str]) -> str:
        return mine.get(found[1]) or found[2] or ""

    return {
        name: re.sub(r"\$\{(\w+)(?::?[-?]([^}]*))?\}", value, text)
        for name, text in configured.items()
    }


def test_secrets_of_the_compose_file_may_come_from_files(tmp_path: Path) -> None:
    first, second = (
        yaml.safe_load((DOCKER / name).read_text())
        for name in ("compose.yml", "compose.secrets.yml")
    )
    elsewhere = dict.fromkeys(
        ("POSTGRES_PASSWORD", "COMPILEWATCH_SECRET_KEY", "COMPILEWATCH_KEY_PEPPER"), "file"
    )
    assert {
        name for name in elsewhere if f"${{{name}:?" in (DOCKER / "compose.yml").read_text()
    } == set(elsewhere)
    contents = {
        "database_url": "postgresql://compilewatch:letters@postgres/compilewatch",
        "secret_key": "s" * 32,
        "key_pepper": "p" * 32,
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(f"{text}\n")
    assert set(second["secrets"]) == set(contents) | {"postgres_password"}
    for role in ("migrate", "web", "worker"):
        configured = interpolated(
            first["x-dashboard"]["environment"],
            {**elsewhere, "COMPILEWATCH_HOST": "watch.example.com"},
        )
        configured |= {
            name: text.replace("/run/secrets", str(tmp_path))
            for name, text in second["services"][role]["environment"].items()
        }
        assert set(second["services"][role]["secrets"]) == set(contents)
        env = env_read(configured)
        assert (env.database.password, env.secret_key, env.key_pepper) == (
            "letters",
            "s" * 32,
            "p" * 32,
        )


def test_the_kustomization_names_the_image_of_the_pods() -> None:
    kustomization = yaml.safe_load((DOCKER / "k8s/kustomization.yaml").read_text())
    assert {container(name)["image"] for name in PODS} == {
        image["name"] for image in kustomization["images"]
    }
    assert ("Namespace", kustomization["namespace"]) in NAMED
