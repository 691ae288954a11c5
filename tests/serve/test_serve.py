"""`nca serve` in a process of its own, asked over HTTP on loopback."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

import nca
from nca.errors import UsageError
from nca.serve.service import Options, application, read_tokens
from tests.library.test_context_view import WINDOW, talk
from tests.postgres import Cluster
from tests.terminal.tty import ROOT
from tests.testing.forks import forked, standing

TOKENS = {"ada": "a-token-of-ada-0123", "bob": "a-token-of-bob-0123"}


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where views are kept: a file, or an empty database of PostgreSQL."""
    if request.param == "file":
        return str(tmp_path / "views.db")
    cluster: Cluster = request.getfixturevalue("cluster")
    return cluster.new_database()


def opened(place: str) -> nca.Store:
    return nca.Store.open(None, url=place) if place.startswith("postgresql:") else nca.Store.open(Path(place))


@contextmanager
def serving(*arguments: str, is_forked: bool = True) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """is_forked  rather than started by itself, which takes two seconds of a processor"""
    program = standing("nca") if is_forked else [sys.executable, "-m", "nca"]
    command = [*program, "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    try:
        while "startup complete" not in said or not (running := re.search(r"running on (http://\S+)", said)):
            line = process.stderr.readline()
            assert line, said
            said += line
        yield running[1], process
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as (address, _):
        yield address


def post(url: str, path: str, body: Any, token: str = "") -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{url}{path}", content=content, headers=headers, timeout=60)


def test_compress_keeps_each_row_in_its_place_as_litellm_needs_it(url: str) -> None:
    log = talk(30)
    log[0]["content"] = [{"type": "text", "text": log[0]["content"]}]
    answer = post(url, "/v1/compress", {"messages": log, "context_window": WINDOW})
    assert answer.status_code == 200
    body = answer.json()
    assert [row["role"] for row in body["messages"]] == [row["role"] for row in log]
    assert [row.get("tool_calls") for row in body["messages"]] == [row.get("tool_calls") for row in log]
    assert [type(row["content"]) for row in body["messages"]][:1] == [list]
    assert body["messages"][-2:] == log[-2:]
    assert nca.validate_request(body["messages"], "openai") == []
    assert body["tokens_after"] == nca.estimate_messages_tokens(body["messages"]) < body["tokens_before"]
    assert body["tokens_saved"] == body["tokens_before"] - body["tokens_after"]
    assert "Question 0." in json.dumps(body["messages"]), "the record says what the person said"
    assert post(url, "/v1/compress", {"messages": log, "context_window": WINDOW}).content == answer.content


def test_compress_gives_the_view_as_the_library_does(url: str) -> None:
    log = talk(30)
    body = post(url, "/v1/compress", {"messages": log, "context_window": WINDOW, "rows": False}).json()
    assert body["messages"] == nca.ContextView(context_window=WINDOW, has_recall=False).fit(log).messages
    assert body["fits"]
    tools = [nca.ContextView.recall_tool]
    body = post(url, "/v1/compress", {"messages": log, "context_window": WINDOW, "rows": False, "tools": tools}).json()
    assert body["messages"] == nca.ContextView(context_window=WINDOW, tools=tools).fit(log).messages
    assert "recall" in json.dumps(body["messages"])
    small = post(url, "/v1/compress", {"messages": log[:2]}).json()
    assert (small["messages"], small["compacted"], small["tokens_saved"]) == (log[:2], False, 0)


def test_rows_whose_calls_are_too_large_are_said_not_to_fit(url: str) -> None:
    """Calls stay in their rows, so a view that drops them fits where the rows do not."""
    written = json.dumps({"text": "word " * 150})
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "write", "arguments": written}} for n in range(40)
    ]
    log: list[dict[str, Any]] = [{"role": "user", "content": "Do it."}]
    for call in calls:
        log.append({"role": "assistant", "content": None, "tool_calls": [call]})
        log.append({"role": "tool", "tool_call_id": call["id"], "content": "done " * 20})
    body = {"messages": log, "context_window": 8_000}
    fits = [post(url, "/v1/compress", {**body, "rows": rows}).json()["fits"] for rows in (True, False)]
    assert fits == [False, True]


def test_compact_of_open_responses(url: str) -> None:
    items = [{"role": "user", "content": f"Question {n} " + "why " * 200} for n in range(60)]
    request = {"model": "gpt-5", "input": items, "instructions": "A test.", "context_window": WINDOW}
    answer = post(url, "/v1/responses/compact", request)
    body = answer.json()
    assert (body["object"], body["id"][:5]) == ("response.compaction", "resp_")
    assert {item["type"] for item in body["output"]} == {"message"}
    assert body["usage"]["output_tokens"] < body["usage"]["input_tokens"]
    assert "Question 59" in json.dumps(body["output"])
    assert post(url, "/v1/responses/compact", request).content == answer.content
    one = post(url, "/v1/responses/compact", {"input": "why " * 3_000}).json()
    assert [len(item["content"][0]["text"]) for item in one["output"]] == [12_000]
    again = post(url, "/v1/responses/compact", {**request, "input": body["output"]})
    assert again.status_code == 200


def test_check_and_recall(url: str) -> None:
    log = talk(30)
    body = {"messages": log, "context_window": WINDOW}
    checked = post(url, "/v1/context/check", body).json()
    assert (
        checked["estimated_input_tokens"] == nca.check_context_budget(log, context_window=WINDOW).estimated_input_tokens
    )
    assert checked["should_compact"]
    assert "zebra0: a line" in post(url, "/v1/recall", {**body, "expand": "3"}).json()["text"]
    assert "[3]" in post(url, "/v1/recall", {**body, "query": "zebra0"}).json()["text"]
    assert [httpx.get(f"{url}{path}").status_code for path in ("/healthz", "/readyz")] == [200, 200]


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/v1/compress", b"{", 400, "The body is not JSON"),
        ("/v1/compress", b"[]", 400, "not an object"),
        ("/v1/compress", b'{"messages":' + b"[" * 100 + b"]" * 100 + b"}", 400, "deeper than 64"),
        ("/v1/compress", b'{"a":' + b"[" * 100_000, 400, "The body is not JSON"),
        ("/v1/compress", b'{"messages":[{"role":"user","content":"half \\ud83e"}]}', 200, "half \ufffd"),
        ("/v1/compress", b'{"messages":[{"role":"user","content":"half \\ud83e", "x": NaN}]}', 400, "The body"),
        ("/v1/compress", {}, 400, "messages: expected a list of messages, found nothing"),
        ("/v1/compress", {"messages": [{"role": "user", "content": "x"}, {"role": "nobody"}]}, 400, "message 2: role"),
        ("/v1/compress", {"messages": [{"role": "user", "content": "x"}], "rows": 1}, 400, "rows: expected true"),
        (
            "/v1/compress",
            {"messages": [{"role": "user", "content": "x"}], "key": "a"},
            400,
            "key: this server keeps no",
        ),
        (
            "/v1/compress",
            {"messages": [{"role": "user", "content": "x"}], "context_window": "?"},
            400,
            "context_window",
        ),
        (
            "/v1/compress",
            {"messages": [{"role": "user", "content": "w " * 9_000}], "context_window": 4_000},
            422,
            "token",
        ),
        ("/v1/responses/compact", {}, 400, "input: is missing"),
        ("/v1/responses/compact", {"input": "x", "previous_response_id": "r"}, 400, "previous_response_id"),
        ("/v1/recall", {"messages": [{"role": "user", "content": "x"}], "query": 3}, 200, "text"),
        ("/v1/compress", {"messages": [{"role": "user", "content": "x"}], "tools": [{"function": "x"}]}, 200, "fits"),
        ("/v1/recall", {"messages": [{"role": "user", "content": "x"}], "tools": [{"name": ["x"]}]}, 200, "text"),
        ("/v1/context/check", {"input": [], "current_prompt": "x"}, 200, "within_budget"),
        ("/v1/context/check", {"input": "", "system_prompt": "x"}, 200, "within_budget"),
        ("/v1/context/check", {"messages": [], "system": "x", "current_prompt": "x"}, 200, "within_budget"),
        ("/v1/context/check", {"input": []}, 400, "input: the list is empty"),
        ("/v1/check", {}, 404, "valid: /v1/compress, /v1/responses/compact, /v1/context/check, /v1/recall."),
    ],
)
def test_what_is_wrong_gets_one_line(url: str, path: str, body: Any, status: int, said: str) -> None:
    answer = post(url, path, body)
    assert answer.status_code == status
    assert said in answer.text
    assert "\n" not in answer.text
    assert "Traceback" not in answer.text


def test_limits_of_size_and_of_names(url: str) -> None:
    with serving("--max-body-mb", "1") as (small, _):
        assert post(small, "/v1/compress", {"messages": "x" * 2_000_000}).status_code == 413
        assert post(small, "/v1/compress", {"messages": talk(1)}).status_code == 200
    assert httpx.get(f"{url}/healthz", headers={"Host": "evil.example"}).status_code == 400


OWN = "http://localhost"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"{OWN}:1"}, 403),
        ({"Origin": OWN}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": OWN}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({}, 200),
    ],
)
def test_without_tokens_a_page_of_another_site_changes_nothing(
    headers: dict[str, str], status: int, tmp_path: Path
) -> None:
    """A browser sends text to another site unasked."""
    options = Options(store=tmp_path / "views.db", keeps_messages=True)
    with TestClient(application(options), base_url=OWN) as client:
        own, other = (
            {"key": "42", "messages": [{"role": "user", "content": f"The plan is {it}."}]} for it in ("amber", "birch")
        )
        assert client.post("/v1/compress", json=own).status_code == 200
        sent = {"Content-Type": "text/plain", **headers}
        assert client.post("/v1/compress", content=json.dumps(other), headers=sent).status_code == status
        assert client.get("/v1/recall?key=42&expand=1", headers=headers).status_code == status
        found = client.get("/v1/recall?key=42&expand=1").json()["text"]
        assert ("amber" in found, "birch" in found) == (status == 403, status == 200)


def test_a_token_that_no_header_can_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("ada Schlüssel-äöü-1234567\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 1: valid: a name and a token") as refused:
        read_tokens(path)
    assert "äöü" not in str(refused.value)


def test_a_request_that_takes_too_long_is_ended() -> None:
    with serving("--timeout", "0.1") as (url, _):
        answer = post(url, "/v1/compress", {"messages": talk(4_000), "context_window": WINDOW})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_tokens_tell_callers_apart_and_their_keys_are_their_own(place: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("# who may ask\n" + "".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    one, other = talk(30), [{"role": "user", "content": "My word is walrus."}, *talk(30)]
    arguments = ("--tokens", str(tokens), "--store", place, "--workers", "2", "--host", "0.0.0.0")
    with serving(*arguments, is_forked=False) as (url, _):
        url = url.replace("0.0.0.0", "127.0.0.1")
        assert [post(url, "/v1/compress", {}, token).status_code for token in ("", "wrong")] == [401, 401]
        asked = {"context_window": WINDOW, "rows": False, "key": "1"}
        with ThreadPoolExecutor(2) as pool:
            for end in (100, 101, 105, 120):
                both = [
                    pool.submit(post, url, "/v1/compress", {**asked, "messages": log[:end]}, TOKENS[name])
                    for name, log in (("ada", one), ("bob", other))
                ]
                told = [answer.result(timeout=60) for answer in both]
                assert [answer.status_code for answer in told] == [200, 200]
                assert "walrus" not in told[0].text
    with opened(place) as kept:
        assert kept.program_views.read("ada/1")
        assert kept.program_views.read("bob/1")
        assert not kept.program_views.read("1")


def test_two_servers_take_turns_at_one_conversation(place: str) -> None:
    log = talk(40)
    half, more = [end for end, row in enumerate(log) if row["role"] == "user"][35:37]
    with serving("--store", place) as (one, _), serving("--store", place) as (other, _):

        def asked(url: str, end: int) -> httpx.Response:
            request = {"context_window": WINDOW, "rows": False, "key": "7", "messages": log[:end]}
            return post(url, "/v1/compress", request)

        first = asked(one, half).json()["messages"]
        assert len(first) < half
        assert asked(other, more).json()["messages"] == [*first, *log[half:more]]
        # What both compact at once is stored once: the second is told to ask again.
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(asked, url, 160) for url in (one, other)]
            told = [answer.result(timeout=60) for answer in both]
        assert {answer.status_code for answer in told} <= {200, 409}
        assert asked(one, 160).content == asked(other, 160).content


def test_kept_messages_are_recalled_by_the_caller_who_sent_them(place: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    words = {"ada": "walrus", "bob": "otter"}
    with serving("--tokens", str(tokens), "--store", place, "--keep-messages", "--workers", "2") as (url, _):

        def recalled(name: str, **asked: str) -> httpx.Response:
            headers = {"Authorization": f"Bearer {TOKENS[name]}"}
            return httpx.get(f"{url}/v1/recall", params={"key": "7", **asked}, headers=headers, timeout=60)

        def talks(name: str) -> list[str]:
            log = [{"role": "user", "content": f"My word is {words[name]}."}, *talk(30)]
            told = []
            for end in range(41, 121, 16):
                body = {"context_window": WINDOW, "rows": False, "key": "7", "messages": log[:end]}
                answer = post(url, "/v1/compress", body, TOKENS[name])
                assert answer.status_code == 200
                asked = [
                    recalled(name, query="What is my word?"),
                    recalled(name, expand="1"),
                    recalled(name, query="7"),
                ]
                assert {one.status_code for one in asked} == {200}
                assert f"My word is {words[name]}." in asked[1].json()["text"]
                told += [answer.text, *(one.text for one in asked)]
            return told

        with ThreadPoolExecutor(2) as pool:
            told = dict(zip(words, pool.map(talks, words), strict=True))
        assert not any("otter" in text for text in told["ada"])
        assert not any("walrus" in text for text in told["bob"])
        assert "otter" not in recalled("ada", query="otter", scope="all").text.replace("otter?", "")
        unknown = recalled("ada", key="8").json()["error"]["message"]
        assert unknown.startswith("No messages are kept under the key '8'")
        assert recalled("ada", key="8").status_code == 404
        assert httpx.get(f"{url}/v1/recall", params={"key": "7"}).status_code == 401
        for asked, said in (
            ({"limit": "3"}, "limit: is not known; valid: key, model"),
            ({"offset": "-1"}, "offset = -1: valid: a whole number"),
            ({"key": ""}, "key: is empty"),
        ):
            refused = recalled("ada", **asked)
            assert (refused.status_code, said in refused.json()["error"]["message"]) == (400, True)
    with opened(place) as kept:
        assert {info.name: info.messages for info in kept.list()} == {"ada/7": 105, "bob/7": 105}


def test_what_is_kept_under_a_key_is_deleted_by_its_caller(place: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    with serving("--tokens", str(tokens), "--store", place, "--keep-messages") as (url, _):

        def asked(method: str, name: str, **query: str) -> httpx.Response:
            headers = {"Authorization": f"Bearer {TOKENS[name]}"}
            return httpx.request(method, f"{url}/v1/recall", params=query, headers=headers, timeout=60)

        for name in TOKENS:
            for key in ("7", "8"):
                body = {"context_window": WINDOW, "key": key, "messages": talk(40)}
                assert post(url, "/v1/compress", body, TOKENS[name]).status_code == 200
        assert httpx.delete(f"{url}/v1/recall", params={"key": "7"}).status_code == 401
        deleted = asked("DELETE", "ada", key="7")
        assert (deleted.status_code, deleted.json()) == (200, {"deleted": True})
        for method in ("GET", "DELETE"):
            gone = asked(method, "ada", key="7")
            assert (gone.status_code, "under the key '7'" in gone.json()["error"]["message"]) == (404, True)
        assert asked("GET", "ada", key="8", query="zebra").status_code == 200
        assert asked("GET", "bob", key="7", query="zebra").status_code == 200
        for query, said in (
            ({}, "key: is missing"),
            ({"key": ""}, "key: is empty"),
            ({"key": "8", "query": "zebra"}, "query: is not known; valid: key."),
        ):
            refused = asked("DELETE", "ada", **query)
            assert (refused.status_code, said in refused.json()["error"]["message"]) == (400, True)
        # The conversation may begin anew.
        again = post(url, "/v1/compress", {"context_window": WINDOW, "key": "7", "messages": talk(8)}, TOKENS["ada"])
        assert again.status_code == 200
        assert asked("GET", "ada", key="7", expand="1").status_code == 200
        assert asked("DELETE", "ada", key="7").status_code == 200
    with opened(place) as kept:
        assert sorted(info.name for info in kept.list()) == ["ada/8", "bob/7", "bob/8"]
        assert kept.program_views.read("ada/7") is None


def test_what_another_request_writes_is_not_deleted(place: str) -> None:
    with serving("--store", place, "--keep-messages") as (url, _):
        body = {"context_window": WINDOW, "key": "7", "messages": talk(40)}
        assert post(url, "/v1/compress", body).status_code == 200
        with opened(place) as store, store.open_session("local/7"):
            busy = httpx.delete(f"{url}/v1/recall", params={"key": "7"}, timeout=60)
            assert (busy.status_code, busy.json()["error"]["type"]) == (409, "view_in_use")
        assert httpx.delete(f"{url}/v1/recall", params={"key": "7"}, timeout=60).status_code == 200


def test_a_server_that_keeps_no_messages_says_so(url: str) -> None:
    refused = httpx.delete(f"{url}/v1/recall", params={"key": "7"})
    assert (refused.status_code, "this server keeps no views" in refused.json()["error"]["message"]) == (400, True)
    refused = httpx.get(f"{url}/v1/recall", params={"key": "7", "query": "zebra"})
    assert refused.status_code == 400
    assert "Start it with --store and --keep-messages" in refused.json()["error"]["message"]


def test_it_answers_what_it_has_begun_before_it_ends() -> None:
    with serving(is_forked=False) as (url, process):
        host, port = url.removeprefix("http://").split(":")
        body = json.dumps({"messages": talk(30), "context_window": WINDOW}).encode()
        head = f"POST /v1/compress HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + body[:-1])
            assert httpx.get(f"{url}/healthz").status_code == 200
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            while "Shutting down" not in (line := process.stderr.readline()):
                assert line
            connection.sendall(body[-1:])
            assert connection.makefile("rb").readline().startswith(b"HTTP/1.1 200")
        process.wait(timeout=60)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "each request needs a token"),
        (["--tokens", "missing"], "--tokens missing: cannot be read"),
        (["--tokens", "short"], "line 1: valid: a name and a token of at least 16 ASCII characters"),
        (["--port", "99999"], "--port"),
        (["--keep-messages"], "--keep-messages: there is no store to keep them in"),
        (["--store", "postgresql://ada:secret@db.example/nca"], "--store: write no password here"),
        (["--store", "short"], "short is not a session database; it was left alone"),
        (["--store", "postgresql://[db.example/nca"], "--store: not an address such as postgresql://"),
    ],
)
def test_what_cannot_be_served_is_refused(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("ada secret\n")
    ran = forked("serve", *arguments, home=tmp_path)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert "secret" not in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert (tmp_path / "short").read_text() == "ada secret\n"


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ran = forked("serve", "--port", str(port), home=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"nca: nca serve cannot listen on 127.0.0.1, port {port} (address already in use)."
        " Choose a free port with --port (0 takes any), or an address of this machine with --host.\n"
    )


def test_that_a_damaged_store_was_set_aside_is_said(tmp_path: Path) -> None:
    views = tmp_path / "views.db"
    nca.Store.open(views).close()
    views.write_bytes(views.read_bytes()[:5_000])
    (tmp_path / "t").write_text("ada a-token-of-ada-0123\n")
    ran = forked("serve", "--store", str(views), "--host", "256.0.0.1", "--tokens", str(tmp_path / "t"), home=tmp_path)
    [aside] = tmp_path.glob("*.corrupt-*")
    assert ran.stderr.count(aside.name) == 1


def test_the_image_is_built_from_the_programs_own_files(tmp_path: Path) -> None:
    lines = [
        line.split()[1:-1]
        for line in (ROOT / "deploy" / "Containerfile").read_text().splitlines()
        if line[:5] == "COPY "
    ]
    copied = {name for names in lines for name in names}
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert {line[1:] for line in allowed if line.startswith("!")} == copied
    assert allowed[1] == "*"
    for name in copied:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    build = "from hatchling.build import build_wheel; build_wheel('.')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True)
    assert list(tmp_path.glob("nca-*.whl"))
    ignored = subprocess.run(["git", "check-ignore", "-q", "deploy/tokens"], cwd=ROOT, check=False)
    assert ignored.returncode == 0 or not (ROOT / ".git").exists()
