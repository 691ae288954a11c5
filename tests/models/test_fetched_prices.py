"""The price map that `nca models refresh` fetches from an HTTP server on loopback: checked, and kept atomically."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.errors import UsageError
from nca.models import fetched_prices, price_map
from nca.models.fetched_prices import NEWER, VARIABLE, RefreshFailed, checked, in_use, path_of, read, refresh
from nca.testing.provider import LoopbackHandler, LoopbackProvider
from tests.cli.command import environment, nca

ROW = {
    "litellm_provider": "openai",
    "mode": "chat",
    "max_input_tokens": 123_456,
    "input_cost_per_token": 1e-06,
    "output_cost_per_token": 2e-06,
    "supports_vision": True,
    "anything_else": {"nca": "does not read this"},
}


def table(**more: Any) -> dict[str, Any]:
    return {**{f"model-{number}": ROW for number in range(600)}, "an-image-model": {"mode": "image"}, **more}


class PriceServer(LoopbackProvider):
    """Answers every GET with `body`."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        super().__init__(_Handler)
        self.body, self.status, self.location = body, status, ""


class _Handler(LoopbackHandler):
    def on_get(self) -> None:
        provider = self.server.provider
        self.send_response(provider.status)
        if provider.location:
            self.send_header("Location", provider.location)
        self.send_header("Content-Length", str(len(provider.body)))
        self.end_headers()
        self.wfile.write(provider.body)


class _Drips(LoopbackProvider):
    """Sends `head`, and then a blank now and then, without an end."""

    def __init__(self, head: bytes) -> None:
        super().__init__(_DripHandler)
        self.head = head


class _DripHandler(LoopbackHandler):
    def on_get(self) -> None:
        provider = self.server.provider
        self.close_connection = True
        with suppress(OSError):
            self.wfile.write(provider.head)
            while not provider.closing.wait(0.02):
                self.wfile.write(b" ")


@pytest.fixture
def server() -> Iterator[PriceServer]:
    with PriceServer(json.dumps(table()).encode()) as serving:
        yield serving


def env_of(tmp_path: Path, server: LoopbackProvider) -> dict[str, str]:
    return {"NCA_HOME": str(tmp_path), VARIABLE: f"{server.url}/prices.json"}


def test_what_is_fetched_is_used_until_another_litellm_is_installed(tmp_path: Path, server: PriceServer) -> None:
    env = env_of(tmp_path, server)
    assert "`nca models refresh` fetches" in in_use(env)
    assert len(refresh(env).models) == 600
    fetched = read(env)
    assert fetched is not None
    assert "anything_else" not in json.loads(bytes(fetched.models["model-1"]))
    assert in_use(env).startswith("fetched on ")
    assert "(today) from http://127.0.0.1" in in_use(env)
    file = path_of(env)
    file.write_bytes(file.read_bytes().replace(f'"litellm":"{fetched.litellm}"'.encode(), b'"litellm":"0.1"'))
    assert read(env) is None
    file.write_bytes(b"{")
    assert read(env) is None


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{}", 500, "status 500"),
        (b"<html>", 200, "sent no JSON object"),
        (b"[]", 200, "sent no JSON object"),
        (json.dumps({"one": ROW}).encode(), 200, "has 1 chat models; valid: at least 500"),
        (
            json.dumps({f"m{n}": {**ROW, "max_input_tokens": -1} for n in range(900)} | table()).encode(),
            200,
            "(m0: max",
        ),
    ],
)
def test_what_is_not_the_map_changes_nothing(
    tmp_path: Path, server: PriceServer, body: bytes, status: int, said: str
) -> None:
    env = env_of(tmp_path, server)
    refresh(env)
    before = path_of(env).read_bytes()
    server.body, server.status = body, status
    with pytest.raises(RefreshFailed) as failed:
        refresh(env)
    assert said in str(failed.value)
    assert "\n" not in str(failed.value)
    assert path_of(env).read_bytes() == before
    assert [one.name for one in path_of(env).parent.iterdir()] == [path_of(env).name]


def test_a_redirect_to_another_server_is_not_followed(tmp_path: Path, server: PriceServer) -> None:
    """The address of a mirror may hold a token."""
    with PriceServer(json.dumps(table()).encode(), 302) as pointing:
        pointing.location = f"{server.url}/prices.json"
        with pytest.raises(
            RefreshFailed, match=rf"redirect to {server.url}, which nca does not follow.* Set {VARIABLE}"
        ):
            refresh(env_of(tmp_path, pointing))
        pointing.location = "/elsewhere.json"
        with pytest.raises(RefreshFailed, match="redirect"):
            refresh(env_of(tmp_path, pointing))


def test_a_map_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    with PriceServer(b" " * (fetched_prices.MOST_BYTES + 2)) as server, pytest.raises(RefreshFailed, match="more than"):
        refresh(env_of(tmp_path, server))


@pytest.mark.parametrize("rest", [b"X-Slow: ", b"Content-Length: 999999\r\n\r\n{"], ids=["head", "body"])
def test_a_server_that_drips_is_not_waited_for(tmp_path: Path, rest: bytes) -> None:
    """Each byte came in time, and the whole never."""
    with (
        _Drips(b"HTTP/1.1 200 OK\r\n" + rest) as server,
        pytest.raises(RefreshFailed, match=r"not complete after 0\.3 seconds\); the price"),
    ):
        refresh(env_of(tmp_path, server), seconds=0.3)
    assert not path_of(env_of(tmp_path, server)).exists()


def test_single_rows_that_cannot_be_true_are_left_out(tmp_path: Path, server: PriceServer) -> None:
    server.body = json.dumps(
        table(
            wrong={**ROW, "input_cost_per_token": 5},
            name={**ROW, "litellm_provider": 3},
            screen={**ROW, "litellm_provider": "a\x1b[2J"},
        )
    ).encode()
    fetched = refresh(env_of(tmp_path, server))
    assert (len(fetched.models), fetched.left_out) == (600, 3)


def test_addresses_without_encryption_are_refused_but_on_this_machine(tmp_path: Path) -> None:
    for address in ("http://example.org/prices.json", "file:///etc/passwd", "prices.json"):
        with pytest.raises(UsageError, match=VARIABLE):
            refresh({"NCA_HOME": str(tmp_path), VARIABLE: address})


def test_without_a_network_it_is_one_line(tmp_path: Path) -> None:
    done = nca("models", "refresh", home=tmp_path, **{VARIABLE: "http://127.0.0.1:9/prices.json"})  # type: ignore[arg-type]
    assert done.returncode == 1
    assert done.stderr.startswith("nca: http://127.0.0.1:9/prices.json could not be read")
    assert done.stderr.count("\n") == 1


def test_the_command_fetches_and_every_later_command_uses_it(tmp_path: Path, server: PriceServer) -> None:
    # A name that nca's own rows have too, and one that several providers have.
    (own, *_) = json.loads(NEWER.read_text())
    sold = {"a/x/shared-1": 1_000, "b/x/shared-1": 2_000, "c/x/shared-1": 1_000, "d/x/shared-1": 9_000}
    rows = {name: {**ROW, "litellm_provider": name[0], "max_input_tokens": size} for name, size in sold.items()}
    server.body = json.dumps(table(**{own: ROW}, **rows)).encode()
    variables: dict[str, Any] = {VARIABLE: f"{server.url}/prices.json"}
    done = nca("models", "refresh", home=tmp_path, **variables)
    assert done.stdout.startswith("605 models from http://127.0.0.1")
    names = ["openai/model-7", own, "b/shared-1", "else/shared-1"]
    asks = f"from nca.models.catalog import describe; print([describe(name).window_tokens for name in {names}])"
    asked = subprocess.run(
        [sys.executable, "-c", asks], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert asked.stdout == "[123456, 123456, 2000, 1000]\n"
    assert "prices       fetched on " in nca("doctor", home=tmp_path).stdout


def test_our_own_rows_are_valid_have_a_source_and_say_something_new() -> None:
    rows = json.loads(NEWER.read_text())
    path = price_map.locate()
    assert path is not None
    theirs = json.loads(path.read_text())
    for name, row in rows.items():
        values = checked(name, row)
        assert values is not None, name
        assert row["source"].startswith("https://"), name
        assert row["checked"] >= "2026-11-22"
        keys = set(values) - {"mode"}
        assert any(theirs.get(name, {}).get(key) != values[key] for key in keys), f"{name}: litellm has it"
        found = price_map.find(name)
        assert found is not None
        assert found.is_exact
    assert price_map.find("openai/gpt-6.1-terra").entry.tiers[0].above_tokens == 272_000  # type: ignore[union-attr]


def test_the_map_of_the_installed_litellm_passes_the_check() -> None:
    path = price_map.locate()
    assert path is not None
    wrong = []
    for name, row in json.loads(path.read_text()).items():
        try:
            checked(name, row)
        except ValueError as error:
            wrong.append(f"{name}: {error}")
    assert wrong == []


@given(
    st.dictionaries(
        st.sampled_from([*ROW, "tiered_pricing", "input_cost_per_token_above_200k_tokens"]),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(max_size=9),
            st.lists(st.integers(), max_size=3),
        ),
    )
)
def test_whatever_a_row_holds_it_is_valid_left_out_or_refused(values: dict[str, Any]) -> None:
    row = {**ROW, **values}
    try:
        kept = checked("model", row)
    except ValueError:
        return
    for value in (kept or {}).values():
        assert not isinstance(value, float) or (math.isfinite(value) and 0 <= value <= 1e9)
