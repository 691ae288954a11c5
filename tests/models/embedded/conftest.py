"""Where the tests of a real engine find their weights."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path

import pytest

from nca.models.embedded import weights
from nca.models.embedded.known import QWEN, SMOLLM, KnownModel

TEST_WEIGHTS = "NCA_TEST_WEIGHTS"
"""A folder with NAME.gguf files, as `make test` fetches them."""


@pytest.fixture
def smollm_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """NCA_HOME with SmolLM2's weights in it; skips where they or their runtime are not here."""
    home = _home_with(SMOLLM, tmp_path)
    monkeypatch.setenv("NCA_HOME", str(home))
    return home


@pytest.fixture(scope="module")
def lasting_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same for all tests of a module, which name it."""
    return _home_with(SMOLLM, tmp_path_factory.mktemp("embedded"))


@pytest.fixture
def qwen_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = _home_with(QWEN, tmp_path)
    monkeypatch.setenv("NCA_HOME", str(home))
    return home


def _home_with(model: KnownModel, tmp_path: Path) -> Path:
    if util.find_spec("xllamacpp") is None:
        pytest.skip("the embedded model's runtime is not installed (pip install 'nca[local]')")
    places = [Path(os.environ[TEST_WEIGHTS])] if os.environ.get(TEST_WEIGHTS) else []
    places.append(weights.models_dir())
    found = next((path for place in places if (path := place / model.filename).is_file()), None)
    if found is None:
        pytest.skip(f"the weights of {model.name} are not here (nca models get {model.name}, or {TEST_WEIGHTS})")
    home = tmp_path / "home"
    (home / "data" / "models").mkdir(parents=True)
    (home / "data" / "models" / model.filename).symlink_to(found.resolve())
    return home
