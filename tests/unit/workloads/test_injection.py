"""The profiler in the pod: what is added, in which order, and which user fields are kept."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rightpool import contract
from rightpool.workloads.injection import inject
from rightpool.workloads.notes import NOTE_MESSAGES, InjectionNote, notes_for
from rightpool.workloads.resources import is_guaranteed
from rightpool.workloads.template import InvalidTemplate
from rightpool.workloads.token import revision_token, token_digest
from tests.unit.workloads.pod_security import violations
from tests.unit.workloads.samples import INJECTION, OWNER, env_of, plain, restricted


def injected(template: dict[str, Any], container: str | None = None) -> dict[str, Any]:
    return inject(template, container, INJECTION, chips=4)


def trainer(template: dict[str, Any]) -> dict[str, Any]:
    return next(container for container in template["spec"]["containers"] if container["name"] == "trainer")


def test_order_of_init_containers() -> None:
    template = plain()
    template["spec"]["initContainers"] = [{"name": "fetch"}, {"name": "unpack"}]
    names = [container["name"] for container in injected(template)["spec"]["initContainers"]]
    assert names == ["rightpool-profiler", "rightpool-agent", "fetch", "unpack"]


def test_the_sidecar() -> None:
    sidecar, installer = injected(plain())["spec"]["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["command"] == ["python3", "-m", "rightpool_profiler", "run"]
    assert sidecar["ports"] == [{"name": "rightpool", "containerPort": 9464, "protocol": "TCP"}]
    assert "startupProbe" not in sidecar, "a profiler that does not come up must not hold up the program"
    assert sidecar["resources"]["requests"] == {"cpu": "20m", "memory": "64Mi"}
    assert "restartPolicy" not in installer
    assert installer["command"] == ["python3", "-m", "rightpool_profiler", "install"]
    assert sidecar["image"] == installer["image"] == INJECTION.image


def test_all_containers_see_the_directory_at_one_path() -> None:
    template = injected(plain())
    assert {"name": "rightpool-shared", "emptyDir": {"sizeLimit": "2Gi"}} in template["spec"]["volumes"]
    for container in [*template["spec"]["initContainers"], trainer(template)]:
        assert {"name": "rightpool-shared", "mountPath": contract.SHARED_DIR} in container["volumeMounts"]
    assert len(contract.SHARED_DIR) <= 54, "Kineto's socket names leave no more"


def test_the_sidecar_alone_has_a_volume_for_traces() -> None:
    template = injected(plain())
    assert {"name": "rightpool-traces", "emptyDir": {"sizeLimit": "128Mi"}} in template["spec"]["volumes"]
    mounting = [
        container["name"]
        for container in [*template["spec"]["initContainers"], *template["spec"]["containers"]]
        if {"name": "rightpool-traces", "mountPath": contract.KEPT_DIR} in container["volumeMounts"]
    ]
    assert mounting == ["rightpool-profiler"]
    template["spec"]["volumes"] = [{"name": "rightpool-traces", "emptyDir": {}}]
    with pytest.raises(InvalidTemplate, match="rightpool-traces is the profiler's"):
        injected(template)


def test_environment() -> None:
    template = injected(plain())
    sidecar = template["spec"]["initContainers"][0]
    env = env_of(trainer(template))
    assert env["RIGHTPOOL_INTERVAL_SECONDS"] == "10"
    assert env["RIGHTPOOL_CHECKPOINT_MODE"] == "Signal"
    assert env["RIGHTPOOL_CHECKPOINT_SIGNAL"] == "SIGUSR1"
    assert env["RIGHTPOOL_CHECKPOINT_PATH"] == "/ckpt"
    assert env["RIGHTPOOL_CHIPS"] == "4"
    assert env["PYTHONUSERBASE"] == "/tmp/rightpool/userbase"
    assert "PYTHONPATH" not in env, "it would hide the image's own"
    shared = {name: value for name, value in env.items() if name != "PYTHONUSERBASE"}
    assert shared.items() <= env_of(sidecar).items()
    without = inject(plain(), None, replace(INJECTION, checkpoint_path=None), 1)
    assert "RIGHTPOOL_CHECKPOINT_PATH" not in env_of(trainer(without))


def test_patterns_of_checkpoints_are_passed_as_a_list() -> None:
    assert contract.ENV_CHECKPOINT_FILES not in env_of(trainer(injected(plain())))
    patterns = ("step_*/model.pt", "*/DONE")
    template = inject(plain(), None, replace(INJECTION, checkpoint_files=patterns), 1)
    assert json.loads(env_of(trainer(template))[contract.ENV_CHECKPOINT_FILES]) == list(patterns)


def test_the_pod_holds_the_digest_of_the_token_and_never_the_token() -> None:
    token = revision_token(b"key", OWNER.uid, 3)
    template = injected(plain())
    assert env_of(template["spec"]["initContainers"][0])["RIGHTPOOL_TOKEN_SHA256"] == token_digest(token)
    assert token not in str(template)
    assert "RIGHTPOOL_TOKEN_SHA256" not in env_of(trainer(template))
    assert len({token, revision_token(b"key", OWNER.uid, 4), revision_token(b"other", OWNER.uid, 3)}) == 3


class TestPythonPath:
    @pytest.mark.parametrize(
        ("users", "expected"),
        [
            ("/app:/lib", "/tmp/rightpool/agent:/app:/lib"),
            ("", "/tmp/rightpool/agent"),
            ("$(HOME)/x", "/tmp/rightpool/agent:$(HOME)/x"),
            ("/tmp/rightpool/agent:/app", "/tmp/rightpool/agent:/app"),
            ("/tmp/rightpool/agent2", "/tmp/rightpool/agent:/tmp/rightpool/agent2"),
        ],
    )
    def test_the_agent_is_prepended_to_the_path(self, users: str, expected: str) -> None:
        env = [{"name": "HOME", "value": "/h"}, {"name": "PYTHONPATH", "value": users}]
        result = trainer(injected(plain(env=env)))
        assert env_of(result)["PYTHONPATH"] == expected
        assert [variable["name"] for variable in result["env"][-2:]] == ["HOME", "PYTHONPATH"]

    def test_the_last_of_several_variables_counts(self) -> None:
        env = [{"name": "PYTHONPATH", "value": "/a"}, {"name": "PYTHONPATH", "value": "/b"}]
        assert env_of(trainer(injected(plain(env=env))))["PYTHONPATH"] == "/tmp/rightpool/agent:/b"

    def test_a_path_by_reference_is_kept_and_the_user_base_used(self) -> None:
        variable = {"name": "PYTHONPATH", "valueFrom": {"configMapKeyRef": {"name": "paths", "key": "python"}}}
        template = plain(env=[variable])
        result = injected(template)
        assert notes_for(template, None) == ()
        assert variable in trainer(result)["env"]
        assert env_of(trainer(result))["PYTHONUSERBASE"] == "/tmp/rightpool/userbase"

    def test_with_the_users_own_user_base_there_is_no_agent(self) -> None:
        template = plain(env=[{"name": "PYTHONUSERBASE", "value": "/opt/user"}])
        result = injected(template)
        assert notes_for(template, None) == (InjectionNote.USER_BASE_TAKEN,)
        assert env_of(trainer(result))["PYTHONUSERBASE"] == "/opt/user"
        names = [container["name"] for container in result["spec"]["initContainers"]]
        assert names == ["rightpool-profiler"], "chip counters and traces need no agent"

    def test_with_the_users_own_path_there_is_an_agent(self) -> None:
        env = [{"name": "PYTHONUSERBASE", "value": "/opt/user"}, {"name": "PYTHONPATH", "value": ""}]
        template = plain(env=env)
        result = injected(template)
        assert notes_for(template, None) == ()
        assert env_of(trainer(result))["PYTHONPATH"] == "/tmp/rightpool/agent"


def test_with_host_network_there_is_no_profiler() -> None:
    template = plain()
    template["spec"]["hostNetwork"] = True
    result = injected(template)
    assert notes_for(template, None) == (InjectionNote.HOST_NETWORK,)
    assert result == template
    assert notes_for(plain(), None) == ()
    assert set(NOTE_MESSAGES) == set(InjectionNote)


class TestSecurity:
    def test_a_restricted_pod_stays_restricted(self) -> None:
        assert violations(restricted()) == []
        assert violations(injected(restricted())) == []

    def test_our_containers_are_always_restricted(self) -> None:
        assert all(violation.startswith("trainer:") for violation in violations(injected(plain())))

    @pytest.mark.parametrize(("pod", "ours"), [({}, 65532), ({"runAsUser": 1000}, None), ({"runAsUser": 0}, 65532)])
    def test_the_user_id_is_the_pods_unless_it_is_root(self, pod: dict[str, Any], ours: int | None) -> None:
        template = plain()
        template["spec"]["securityContext"] = pod
        for container in injected(template)["spec"]["initContainers"]:
            assert container["securityContext"].get("runAsUser") == ours


class TestQuality:
    GUARANTEED = {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"cpu": "4000m", "memory": "16Gi"}}

    def test_a_namespace_that_demands_limits_or_gives_users_is_followed(self) -> None:
        """A ResourceQuota on limits.cpu, and a range of user IDs: both refused the pods."""
        free = inject(plain(), None, replace(INJECTION, cpu_limit="1", user=0), 4)["spec"]["initContainers"]
        for ours in free[:2]:
            assert ours["resources"]["limits"] == {"cpu": "1", "memory": "256Mi"}
            assert "runAsUser" not in ours["securityContext"]
        usual = injected(plain())["spec"]["initContainers"][0]
        assert "cpu" not in usual["resources"]["limits"] and usual["securityContext"]["runAsUser"] == 65532

    def test_a_guaranteed_pod_stays_guaranteed(self) -> None:
        template = plain(resources=self.GUARANTEED)
        assert is_guaranteed(template)
        assert is_guaranteed(injected(template))

    @pytest.mark.parametrize(
        "resources",
        [
            {},
            {"limits": {"cpu": "1"}},
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            {"limits": {"cpu": "1", "memory": "a lot"}},
            {"limits": {"cpu": 0, "memory": "1Gi"}},
        ],
    )
    def test_a_pod_that_is_not_guaranteed_gets_small_requests(self, resources: dict[str, Any]) -> None:
        template = plain(resources=resources)
        assert not is_guaranteed(template)
        sidecar = injected(template)["spec"]["initContainers"][0]
        assert sidecar["resources"] == {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}

    def test_one_container_without_limits_is_enough_not_to_be_guaranteed(self) -> None:
        template = plain(resources=self.GUARANTEED)
        template["spec"]["initContainers"] = [{"name": "fetch"}]
        assert not is_guaranteed(template)

    def test_pod_level_resources_are_not_increased(self) -> None:
        template = plain()
        template["spec"]["resources"] = {"requests": {"cpu": "4"}}
        assert "resources" not in injected(template)["spec"]["initContainers"][0]


def test_injection_is_idempotent() -> None:
    template = restricted(env=[{"name": "PYTHONPATH", "value": "/app"}])
    once = injected(template)
    assert injected(once) == once


def test_names_of_the_profiler_are_refused() -> None:
    template = plain()
    template["spec"]["initContainers"] = [{"name": "rightpool-agent", "image": "mine"}]
    with pytest.raises(InvalidTemplate, match="rightpool-agent"):
        injected(template)


OFF, ISOLATED = InjectionNote.USER_SITE_OFF, InjectionNote.PYTHON_ISOLATED


@pytest.mark.parametrize(
    ("container", "notes"),
    [
        ({"command": ["python", "train.py", "-s", "-I"]}, ()),
        ({"command": ["python3", "-s", "train.py"]}, (OFF,)),
        ({"command": ["/opt/bin/python3.12"], "args": ["-us", "-m", "trainer"]}, (OFF,)),
        ({"command": ["python3", "-s", "train.py"], "env": [{"name": "PYTHONPATH", "value": ""}]}, ()),
        ({"command": ["python3", "-I", "train.py"], "env": [{"name": "PYTHONPATH", "value": ""}]}, (ISOLATED,)),
        ({"command": ["python3", "-uE", "train.py"]}, (ISOLATED,)),
        ({"command": ["sh", "-c", "cd /work && exec python -S train.py"]}, (ISOLATED,)),
        ({"command": ["python3", "-W", "-I", "-Xfrozen_modules=off", "train.py"]}, ()),
        ({"command": ["python3", "-m", "trainer", "-I"]}, ()),
        ({"command": ["python3", "-cimport sys", "-I"]}, ()),
        ({"command": ["train", "-s"]}, ()),
        ({"command": ["sh", "-c", "echo 'not closed"]}, ()),
        ({"env": [{"name": "PYTHONNOUSERSITE", "value": "1"}]}, (OFF,)),
        ({"env": [{"name": "PYTHONNOUSERSITE", "value": ""}]}, ()),
        ({"env": [{"name": "PYTHONNOUSERSITE", "value": "1"}, {"name": "PYTHONPATH", "value": "/src"}]}, ()),
    ],
)
def test_notes_name_what_prevents_the_agent(container: dict[str, Any], notes: tuple[InjectionNote, ...]) -> None:
    template = plain()
    template["spec"]["containers"][0] |= container
    assert notes_for(template, None) == notes
