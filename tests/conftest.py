"""Fixtures for all tests: the cluster, and a new namespace in it."""

from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# As in the operator's image. Threads of BLAS wait for each other by turning round: where other processes want the cores
# too, a queue of `test_serving` then took seven times the processor time. Read when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No test depends on the speed of the machine. CI draws the same examples every time, so that its result depends on the
# change only; other runs draw new examples. They are few, since runs are many: a hundred for each property were a third
# of all tests' processor time. A test says how many only where one of them takes seconds, or where it guards what must
# never be.
settings.register_profile(
    "rightpool",
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("rightpool")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays until the end: looking through it again and again took a fifth of the
    collection's time, and a tenth of the tests'. With pytest-xdist the first process collects nothing itself."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of programs whose framework is not installed. To import it here takes seconds in each process, and
    only the programs need it."""
    for framework in ("torch", "jax"):
        if find_spec(framework) is None:
            skip = pytest.mark.skip(reason=f"{framework} is not installed")
            for item in items:
                if item.get_closest_marker(framework):
                    item.add_marker(skip)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.fixture(scope="session")
def kubeconfig() -> Path:
    """Kubeconfig of the cluster under test: RIGHTPOOL_TEST_KUBECONFIG, else the embedded one called `test`."""
    path = os.environ.get("RIGHTPOOL_TEST_KUBECONFIG")
    if not path:
        from devcluster.spec import TEST

        path = str(TEST.kubeconfig)
    if not Path(path).exists():
        pytest.fail("no cluster: `python -m devcluster up --name test`, or name one by RIGHTPOOL_TEST_KUBECONFIG")
    return Path(path)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with recorded measurements that are not part of the repository; the test is skipped where it is absent."""
    path = os.environ.get("RIGHTPOOL_SHARED")
    if not path or not Path(path).is_dir():
        pytest.skip("recorded measurements are not here: set RIGHTPOOL_SHARED to their folder")
    return Path(path)


@pytest.fixture
def namespace(kubeconfig: Path) -> Iterator[str]:
    """A fresh namespace, deleted afterwards."""
    from kubernetes import client, config

    api = client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))
    name = f"test-{uuid.uuid4().hex[:10]}"
    api.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    yield name
    api.delete_namespace(name)
