"""`nca models` and `nca doctor`, on a machine with nothing but Python."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from nca.cli import doctor, models
from nca.errors import UsageError
from nca.messages import Message
from nca.models.embedded import weights
from nca.models.embedded.known import QWEN, SMOLLM
from nca.models.providers import PROVIDERS
from nca.sessions import Store
from nca.testing.provider import Provider
from tests.file_history.room import Room
from tests.models.tls import own_certificate
from tests.testing.forked_tty import ForkedTty

REPOSITORY = Path(__file__).parents[2]
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and project, a named model so that nobody is asked, and no keys."""
    variables = {variable for facts in PROVIDERS.values() for variable in facts.key_variables}
    for variable in variables | {"NCA_EMBEDDED", "OPENAI_API_BASE", "OPENAI_BASE_URL"}:
        monkeypatch.delenv(variable, raising=False)
    for variable in [name for name in os.environ if name.startswith("NCA_") and "__" in name]:
        monkeypatch.delenv(variable)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NCA_MODEL__NAME", "embedded/smollm2-135m")
    return tmp_path / "home"


def run_models(*arguments: str) -> Result:
    return CliRunner().invoke(models.app, list(arguments), catch_exceptions=False)


def run_doctor(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(doctor.doctor)
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False, standalone_mode=False)


def findings(*arguments: str) -> dict[str, dict[str, Any]]:
    return {finding["name"]: finding for finding in json.loads(run_doctor("--json", *arguments).stdout)["findings"]}


def install_sparse(home: Path) -> None:
    folder = home / "data" / "models"
    folder.mkdir(parents=True)
    with (folder / SMOLLM.filename).open("wb") as file:
        file.truncate(SMOLLM.size_bytes)


def test_models_says_what_would_answer_and_what_is_here(home: Path) -> None:
    install_sparse(home)
    text = run_models().output
    assert text == run_models("list").output
    assert text.startswith("nca would use embedded/smollm2-135m\n  why: set by environment NCA_MODEL__NAME\n")
    assert re.search(r"smollm2-135m +installed +98 MB, 370 MB of memory  chat only  Apache-2\.0", text)
    assert re.search(r"qwen2\.5-coder-1\.5b +not installed +1\.1 GB", text)
    assert text.count("recommended here") == 1


def test_models_list_json(home: Path) -> None:
    listed = json.loads(run_models("list", "--json").stdout)
    assert listed["chosen"] == {
        "model": "embedded/smollm2-135m",
        "why": "set by environment NCA_MODEL__NAME",
        "alternatives": [],
    }
    rows = {row["name"]: row for row in listed["embedded"]}
    assert list(rows) == [QWEN.name, SMOLLM.name]
    assert not rows[SMOLLM.name]["installed"]
    assert rows[QWEN.name]["size_bytes"] == 1_117_320_768
    assert not home.exists()


def test_what_the_endpoint_lists_is_listed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_MODEL__NAME", "openai/nosuch")
    with Provider(lambda request: "", models=("small", "org/large")) as endpoint:
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.url)
        assert f"listed at {endpoint.url}: openai/small, openai/org/large" in " ".join(run_models().output.split())
        assert json.loads(run_models("list", "--json").stdout)["listed"] == ["openai/small", "openai/org/large"]
    assert "listed at" not in run_models().output


def test_get_of_what_is_here_fetches_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_sparse(home)
    assert run_models("get", "smollm2-135m").output.startswith("smollm2-135m is already installed: ")
    monkeypatch.setenv("NCA_EMBEDDED", "smollm2-135m")
    assert run_models("get").output.startswith("smollm2-135m is already installed: ")


@pytest.mark.parametrize("arguments", [("get", "gpt"), ("get", "smollm2-135m", "--source", "ftp")])
def test_get_refuses_what_it_does_not_know(home: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"Valid: qwen2|valid: auto, pip, hub"):
        run_models(*arguments)


def test_doctor_writes_nothing(home: Path) -> None:
    result = run_doctor()
    names = [line.split()[1] for line in _ANSI.sub("", result.output).splitlines()]
    assert names[:9] == ["python", "nca", "litellm", "prices", "sqlite", "settings", "data", "database", "keys"]
    assert not home.exists()


@pytest.mark.parametrize(
    ("named", "says", "advises"),
    [
        ("", "No model can answer: no API key, no server on this machine and no embedded model was found.", "nca keys"),
        ("openai/gpt-4.1", "No API key for openai/gpt-4.1: OPENAI_API_KEY is not set.", "nca keys add openai"),
        ("embedded/smollm2-135m", "The weights of smollm2-135m are not installed.", "nca models get smollm2-135m"),
        ("of-nobody", "No provider is known for a model 'of-nobody'.", "PROVIDER/MODEL"),
    ],
)
def test_doctor_fails_where_nothing_can_answer(
    home: Path, monkeypatch: pytest.MonkeyPatch, named: str, says: str, advises: str
) -> None:
    """All was well, and `nca run` could ask nobody."""
    monkeypatch.setenv("NCA_MODEL__NAME", named)
    assert run_doctor("--json").return_value == 1
    found = findings()["model"]
    assert (found["status"], found["detail"]) == ("fail", says)
    assert advises in found["advice"]


@pytest.mark.skipif(not weights.has_runtime(), reason="the embedded model's runtime is not installed")
def test_doctor_finds_a_machine_fit_that_has_a_model(home: Path) -> None:
    install_sparse(home)
    assert (run_doctor("--json").return_value, findings()["model"]["status"]) == (0, "ok")


def test_doctor_says_what_takes_how_much(home: Path) -> None:
    with Store.open(home / "data" / "sessions.db") as store, store.create(directory="/work", model="m") as session:
        session.log.append([Message("user", "word " * 20_000)])
    (home / "data" / "outputs").mkdir()
    (home / "data" / "outputs" / "1.txt").write_bytes(b"x" * 2_000)
    disk = findings()["disk"]
    assert disk["status"] == "ok"
    assert re.search(r"messages 1\d\d kB, .*search index .*outputs 2 kB", disk["detail"])


def test_doctor_names_keys_and_never_their_values(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.delenv("NCA_MODEL__NAME")
    result = run_doctor("--json")
    found = findings()
    assert found["keys"]["detail"] == "ANTHROPIC_API_KEY"
    assert found["model"]["detail"].startswith("anthropic/")
    assert "sk-very-secret" not in result.output


def test_doctor_asks_no_endpoint(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NCA_MODEL__NAME")
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    assert findings()["model"]["detail"] == "from http://127.0.0.1:9/v1 (--probe lists its models)"


def test_doctor_looks_for_servers_only_where_that_is_wanted(home: Path) -> None:
    assert findings()["servers"]["detail"].startswith("asked only if no key or endpoint is set (")
    assert "asked only" not in findings("--probe")["servers"]["detail"]


def test_doctor_asks_an_endpoint_where_that_is_wanted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NCA_MODEL__NAME")
    with Provider(models=("one", "two")) as provider:
        monkeypatch.setenv("OPENAI_API_BASE", provider.url)
        assert findings("--probe")["model"]["detail"] == f"{provider.url} offers one, two"
    found = findings("--probe")["model"]
    assert found["status"] == "warn"
    assert "lists no models" in found["detail"]


def test_doctor_asks_the_endpoint_of_a_named_model_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Provider(models=("one", "two")) as provider:
        monkeypatch.setenv("NCA_MODEL__API_BASE", provider.url)
        monkeypatch.setenv("NCA_MODEL__NAME", "openai/two")
        assert "endpoint" not in findings()
        found = findings("--probe")
        assert found["model"]["detail"].startswith("openai/two: ")
        assert (found["endpoint"]["status"], found["endpoint"]["detail"]) == ("ok", f"{provider.url} offers one, two")
        monkeypatch.setenv("NCA_MODEL__NAME", "openai/three")
        found = findings("--probe")
        assert found["endpoint"]["status"] == "warn"
        assert "lists no model three" in found["endpoint"]["detail"]
    found = findings("--probe")
    assert found["endpoint"]["status"] == "warn"
    assert "lists no models" in found["endpoint"]["detail"]


def test_doctor_says_that_a_certificate_is_refused_as_the_chat_does(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    own = own_certificate(tmp_path)
    with Provider(models=("one",), tls=own.server) as provider:
        monkeypatch.setenv("NCA_MODEL__API_BASE", provider.url)
        monkeypatch.setenv("NCA_MODEL__NAME", "openai/one")
        found = findings("--probe")["endpoint"]
        assert found["status"] == "fail"
        assert found["detail"] == f"The certificate of {provider.url} is not trusted: self-signed certificate."
        assert found["advice"] == "SSL_CERT_FILE=FILE names a file of certificates to trust."
        monkeypatch.setenv("SSL_CERT_FILE", str(own.file))
        assert findings("--probe")["endpoint"]["status"] == "ok"


def test_doctor_names_an_address_that_cannot_be_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "localhost:8911/v1")
    found = findings()["model"]
    assert (found["status"], "OPENAI_API_BASE = 'localhost:8911/v1'" in found["detail"]) == ("fail", True)


def test_doctor_fails_on_broken_settings(home: Path) -> None:
    (Path.cwd() / ".nca").mkdir()
    (Path.cwd() / ".nca" / "config.toml").write_text("[context\n")
    result = run_doctor("--json")
    assert result.return_value == 1
    found = json.loads(result.stdout)
    assert not found["ok"]
    assert [finding["name"] for finding in found["findings"] if finding["status"] == "fail"] == ["settings"]
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text("[context\n")  # the person's own, by which nca also finds the store
    found = json.loads(run_doctor("--json").stdout)
    assert [finding["name"] for finding in found["findings"] if finding["status"] == "fail"] == ["settings"]


def test_doctor_counts_sessions(home: Path) -> None:
    with Store.open(home / "data" / "sessions.db") as store:
        store.create(directory="/work", model="m").close()
    assert "(1 session, " in findings()["database"]["detail"]


def test_doctor_says_that_the_sessions_are_large(home: Path) -> None:
    with Store.open(home / "data" / "sessions.db") as store:
        store.create(directory="/work", model="m").close()
    outputs = home / "data" / "outputs" / "0123abcd"
    outputs.mkdir(parents=True)
    with (outputs / "1.txt").open("wb") as file:
        file.truncate(2_000_000_000)  # a hole, which takes no room
    found = findings()["database"]
    assert found["status"] == "warn"
    assert "2.0 GB) is large; every page is whole." in found["detail"]
    assert "nca config set session.retention_days 90" in found["advice"]


def test_doctor_fails_on_a_damaged_database_and_leaves_it(home: Path) -> None:
    path = home / "data" / "sessions.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database" * 100)
    result = run_doctor("--json")
    assert result.return_value == 1
    assert findings()["database"]["status"] == "fail"
    assert path.read_bytes() == b"not a database" * 100


@pytest.mark.parametrize("name", ["sessions.db", "files.db"])
def test_doctor_looks_at_every_page(home: Path, name: str, tmp_path: Path) -> None:
    path = home / "data" / "sessions.db"
    with Store.open(path) as store, store.create(directory="/work", model="m") as session:
        session.log.append([Message("user", f"{number} " + "word " * 400) for number in range(200)])
        Room(tmp_path / "work", store).edit("kept", "word " * 80_000)
    assert findings()["database"]["detail"].endswith(", every page is whole")
    damaged = path.with_name(name)
    with damaged.open("r+b") as file:
        file.seek(damaged.stat().st_size // 2)
        file.write(b"x" * 3_000)
    before = damaged.read_bytes()
    assert run_doctor().return_value == 1
    found = findings()["database"]
    assert found["status"] == "fail"
    assert f"{name} is damaged" in found["detail"]
    assert damaged.read_bytes() == before


def test_doctor_fails_where_the_data_directory_is_a_file(home: Path) -> None:
    home.mkdir()
    (home / "data").write_text("")
    assert run_doctor("--json").return_value == 1
    assert findings()["data"]["status"] == "fail"


def test_doctor_says_what_is_half_fetched(home: Path) -> None:
    install_sparse(home)
    (home / "data" / "models" / f"{QWEN.filename}.part").write_bytes(b"x")
    assert findings()["weights"]["detail"] == "smollm2-135m; incomplete: qwen2.5-coder-1.5b"


def test_doctor_says_in_words_what_is_missing(home: Path) -> None:
    found = findings()
    assert found["weights"]["detail"] == "no embedded model is downloaded."
    assert found["settings"]["detail"].endswith("config.toml (no file, so it sets nothing)")


def test_doctor_refuses_an_unknown_embedded_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_EMBEDDED", "gpt")
    assert "NCA_EMBEDDED: There is no embedded model 'gpt'" in findings()["weights"]["detail"]


def test_the_tested_range_is_the_projects() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = f"litellm>={doctor._dotted(doctor.LITELLM_FROM)},<{doctor._dotted(doctor.LITELLM_BELOW)}"
    assert wanted in project["dependencies"]
    assert f"apsw>={doctor._dotted(doctor.OLDEST_SQLITE)},<4" in project["dependencies"]


DOWNLOAD = """
from nca.cli.models import DownloadProgress
from nca.models.embedded.download import Progress
progress = DownloadProgress("qwen")
for stage, done in (("waiting", 300_000_000), ("downloading", 600_000_000), ("checking", 1_117_000_000)):
    progress(Progress(stage, done, 1_117_000_000))
progress.finish()
print("done")
"""


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_the_line_of_a_download_is_one_row_and_leaves_nothing_of_the_one_before(columns: int) -> None:
    with ForkedTty(["tests.testing.dash_c", DOWNLOAD], columns=columns) as tty:
        tty.sees("done")
        row, *rest = [line.rstrip() for line in tty.shown() if line.strip()]
    assert re.fullmatch(r"qwen: verifying █* 1,117 / 1,117 MB", row)
    assert rest == ["done"]
