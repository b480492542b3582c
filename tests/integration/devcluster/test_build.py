"""The name of the cache folder depends on all inputs of the build."""

from pathlib import Path

import pytest

from devcluster import build, deps
from devcluster.progress import Progress
from devcluster.spec import DevclusterError


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    (tmp_path / "etcd").mkdir()
    (tmp_path / "etcd" / "go.mod").write_text("module tools/etcd\n")
    (tmp_path / "etcd" / "go.sum").write_text("x v1 h1:abc=\n")
    return tmp_path


def test_the_key_follows_module_files_and_go(modules: Path) -> None:
    key = build.cache_key(modules, "go1.26.8")
    assert build.cache_key(modules, "go1.26.8") == key
    assert build.cache_key(modules, "go1.26.9") != key
    (modules / "etcd" / "go.sum").write_text("x v1 h1:def=\n")
    assert build.cache_key(modules, "go1.26.8") != key


def test_what_is_built_on_demand_rebuilds_nothing_else(modules: Path) -> None:
    key, own = build.cache_key(modules, "go1.26.8"), build.cache_key(modules, "go1.26.8", build.ON_DEMAND)
    (modules / "kueue").mkdir()
    (modules / "kueue" / "go.mod").write_text("module tools/kueue\n")
    assert build.cache_key(modules, "go1.26.8") == key
    assert build.cache_key(modules, "go1.26.8", build.ON_DEMAND) != own
    assert not set(build.ON_DEMAND) & set(build.EVERYTHING)


def test_every_component_has_its_module_files() -> None:
    for component in (*build.EVERYTHING, *build.ON_DEMAND):
        assert (build.MODULES / component.module / "go.mod").exists(), component.name
        if component.module != "pause":  # nothing but the standard library
            assert (build.MODULES / component.module / "go.sum").exists(), component.name


def test_an_existing_build_is_not_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(build, "bin_dir", lambda: tmp_path)
    monkeypatch.setattr(build, "_build", lambda component: pytest.fail("built again"))
    component = build.CONTROL_PLANE[0]
    (tmp_path / component.name).touch()
    assert build.ensure([component], Progress(quiet=True)) == tmp_path


def test_a_failed_build_leaves_nothing_and_shows_the_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "modules" / "broken").mkdir(parents=True)
    (tmp_path / "modules" / "broken" / "go.mod").write_text("module tools/broken\n\ngo 1.26\n")
    (tmp_path / "modules" / "broken" / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")
    monkeypatch.setattr(build, "bin_dir", lambda: tmp_path / "bin")
    monkeypatch.setattr(build, "MODULES", tmp_path / "modules")
    component = build.Component("broken", "broken", ".", "1 s")
    with pytest.raises(DevclusterError, match="undefined: nonsense"):
        build.ensure([component], Progress(quiet=True))
    assert not (tmp_path / "bin" / "broken").exists()


def test_without_root_packages_are_named_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = deps.Dependency("some-package", "no-such-program-anywhere", "a reason")
    monkeypatch.setattr(deps, "DEPENDENCIES", (absent,))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(DevclusterError, match=r"only root can install.*some-package"):
        deps.install(Progress(quiet=True))
    with pytest.raises(DevclusterError, match="devcluster deps"):
        deps.require(root=True)
