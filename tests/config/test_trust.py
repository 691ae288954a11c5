"""Trust is valid for one directory and one content only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.config.layers import load
from nca.config.projects import TrustRequest, TrustStore, read_project, trust_request
from nca.errors import ConfigError
from nca.humanize import UsualNotice

MODEL = '[model]\nname = "openai/x"\n'


class Place:
    def __init__(self, path: Path) -> None:
        self.env = {"NCA_HOME": str(path / "home")}
        self.project = path / "project"
        (self.project / ".nca").mkdir(parents=True)
        self.file = self.project / ".nca" / "config.toml"
        self.trust = TrustStore(self.env)
        self.store_file = path / "home" / "data" / "trust.json"

    def acts(self, text: str, project: Path | None = None) -> TrustRequest:
        self.file.write_text(text)
        found = trust_request(read_project(self.project, {})[0], project or self.project)
        assert found is not None
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_nothing_that_acts_asks_nothing(place: Place) -> None:
    place.file.write_text('[agent]\npermission = "auto"\nmax_steps = 9\n[context]\ncompact_threshold = 0.9\n')
    assert trust_request(read_project(place.project, {})[0], place.project) is None
    assert trust_request([], place.project) is None


def test_any_change_of_what_acts_asks_again_and_others_do_not(place: Place) -> None:
    place.trust.record(place.acts(MODEL), is_trusted=True)
    assert place.trust.decision(place.acts(MODEL)) is True
    assert place.trust.decision(place.acts(f"# a comment\n{MODEL}[agent]\nmax_steps = 3\n")) is True
    for other in (
        MODEL.replace("x", "y"),
        MODEL + 'summarizer = "openai/y"\n',
        '[for."*".model]\nsummarizer = "openai/x"\n',
        MODEL + "fallbacks = []\n",
    ):
        assert place.trust.decision(place.acts(other)) is None


def test_a_no_is_remembered_too(place: Place) -> None:
    place.trust.record(place.acts(MODEL), is_trusted=False)
    assert TrustStore(place.env).decision(place.acts(MODEL)) is False


def test_after_a_no_a_script_is_not_told_again_what_is_left_out(place: Place) -> None:
    """`nca run` in a pipe says every note but the usual ones."""
    what = place.acts(MODEL)
    (waits,) = load(project=place.project, env=place.env).notes
    assert "wait for your trust: model.name" in waits
    assert not isinstance(waits, UsualNotice)
    place.trust.record(what, is_trusted=False)
    (refused,) = load(project=place.project, env=place.env).notes
    assert "are not used, as you decided: model.name" in refused
    assert isinstance(refused, UsualNotice)
    place.acts(MODEL.replace("x", "y"))
    (again,) = load(project=place.project, env=place.env).notes
    assert "wait for your trust" in again


def test_a_file_in_which_nothing_waits_is_not_named(place: Place) -> None:
    (place.project / ".mcp.json").write_text('{"mcpServers": {"here": {"command": "true"}}}')
    for harmless in ("", "[agent]\nmax_steps = 3\n"):
        place.file.write_text(harmless)
        (waits,) = load(project=place.project, env=place.env).notes
        assert "mcp.json" in waits
        assert "config.toml" not in waits
    place.acts(MODEL)
    (waits,) = load(project=place.project, env=place.env).notes
    assert "config.toml" in waits


def test_it_holds_for_the_real_directory_only(place: Place, tmp_path: Path) -> None:
    place.trust.record(place.acts(MODEL), is_trusted=True)
    (tmp_path / "same").symlink_to(place.project)
    (tmp_path / "copy").mkdir()
    assert place.trust.decision(place.acts(MODEL, tmp_path / "same")) is True
    assert place.trust.decision(place.acts(MODEL, tmp_path / "copy")) is None
    assert place.trust.decision(place.acts(MODEL, place.project / "inner")) is None


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "[",
        "[]",
        '{"projects": 5}',
        '{"projects": {"%s": true}}',
        "\0",
        "[" * 100_000,
        '{"projects": {"%s": {"is_trusted": true}}}',
    ],
)
def test_a_damaged_file_means_never_said(place: Place, damage: str) -> None:
    what = place.acts(MODEL)
    place.trust.record(what, is_trusted=True)
    place.store_file.write_text(damage.replace("%s", str(what.directory)))
    assert place.trust.decision(what) is None
    place.trust.record(what, is_trusted=True)
    assert place.trust.decision(what) is True


def test_the_file_is_the_person_s_alone(place: Place) -> None:
    place.trust.record(place.acts(MODEL), is_trusted=True)
    assert place.store_file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in place.store_file.parent.iterdir()] == ["trust.json"]
    assert list(json.loads(place.store_file.read_text())["projects"]) == [str(place.project.resolve())]


def test_what_is_loaded_is_what_was_judged(place: Place) -> None:
    asked: list[TrustRequest] = []
    place.file.write_text(MODEL + '[for."*".model]\nsummarizer = "openai/y"\n[agent]\nmax_steps = 4\n')

    def no(what: TrustRequest) -> bool:
        asked.append(what)
        return False

    loaded = load(project=place.project, env=place.env, trusts=no).for_model("openai/x")
    assert loaded.settings.model.name == loaded.settings.model.summarizer == ""
    assert loaded.settings.agent.max_steps == 4
    assert [name for name, _ in asked[0].settings] == ["model.name", "for.*.model.summarizer"]
    assert len([note for note in loaded.notes if "not trusted" in note]) == 1
    unasked = load(project=place.project, env=place.env)
    assert unasked.settings.model.name == ""
    place.trust.record(asked[0], is_trusted=True)
    loaded = load(project=place.project, env=place.env).for_model("openai/x")
    assert (loaded.settings.model.name, loaded.settings.model.summarizer) == ("openai/x", "openai/y")


def test_a_bad_value_is_refused_whether_or_not_it_would_count(place: Place) -> None:
    place.file.write_text("[model]\nname = 5\n")
    with pytest.raises(ConfigError, match=r"config\.toml:2: model\.name = 5 is not valid"):
        load(project=place.project, env=place.env, trusts=lambda what: False)


@pytest.mark.parametrize("key", ["name", "summarizer"])
def test_no_trust_makes_an_address_a_model(place: Place, key: str) -> None:
    place.file.write_text(f'[model]\n{key} = "huggingface/https://evil.example/"\n')
    with pytest.raises(ConfigError, match="not addresses"):
        load(project=place.project, env=place.env, trusts=lambda what: True)


def test_the_person_s_own_change_is_trusted_but_not_what_stood_beside_it(place: Place) -> None:
    with place.trust.saving(place.project):
        place.file.write_text(MODEL)
    assert place.trust.decision(place.acts(MODEL)) is True
    place.file.write_text(MODEL.replace("x", "evil"))
    with place.trust.saving(place.project):
        place.file.write_text(MODEL.replace("x", "evil") + 'summarizer = "openai/mine"\n')
    found = trust_request(read_project(place.project, {})[0], place.project)
    assert found is not None
    assert place.trust.decision(found) is None
