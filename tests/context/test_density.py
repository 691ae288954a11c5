"""How dense a text is, against a real tokenizer, and which places of a request are looked at."""

from __future__ import annotations

import base64
import json
import os
import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.calibration import HIGHEST_RATIO, LOWEST_RATIO, Calibration
from nca.context.density import FAMILIES, close_tokens, density
from nca.context.meter import Meter
from nca.context.view import Marker, Verbatim, View
from nca.messages import Message
from nca.wire import message_from_dict
from tests.context.logs import history_of, logs
from tests.context.samples import some, talk, user

SESSIONS = Path(__file__).parent.parent / "data" / "sessions"
_RANDOM = random.Random(7)
TEXTS = {
    "English": "The tram stop is moved while the street is repaired, so please use the one behind the school. ",
    "German": "Die Haltestelle wird während der Bauarbeiten vorübergehend hinter die Schule zurückverlegt. ",
    "Russian": "На время ремонта улицы остановка трамвая перенесена, пользуйтесь остановкой за школой. ",
    "Hindi": "सड़क की मरम्मत के दौरान ट्राम का स्टॉप स्कूल के पीछे कर दिया गया है। ",
    "Japanese": "道路の工事中は電車の停留所が学校の裏に移動しています。",
    "code": "def clamp(value: int, low: int = 0) -> int:\n    return max(low, min(value, self.limits[name]))\n\n",
    "log": "2025-03-14T09:26:53Z INFO  [worker-3] request id=4f1c92ab took 183.2ms status=200 path=/api/v1/items/731\n",
    "JSON": '{"id": 4711, "name": "clamp", "is_public": true, "tags": ["math", "range"], "size": 12.5},\n',
    "base64": base64.b64encode(_RANDOM.randbytes(900)).decode(),
}


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """o200k_base, which comes with litellm."""
    found = find_spec("litellm")
    assert found is not None
    assert found.origin is not None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(found.origin).parent / "litellm_core_utils" / "tokenizers")
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


@pytest.mark.parametrize("name", ["dotenv", "fahrplan", "schedule", "slugify", "tabulate"])
def test_the_first_estimate_of_a_real_session_is_close_and_hardly_too_small(name: str, tokenizer: Any) -> None:
    lines = (SESSIONS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if not row["role"].startswith("_")]
    history = history_of([message_from_dict(row) for row in rows])
    true = 24 + sum(4 + len(tokenizer.encode(_said(row), disallowed_special=())) for row in rows)
    meter = Meter(provider="openai")
    meter.look(history)
    assert -0.06 < meter.used(history) / true - 1 < 0.08


def _said(row: dict[str, Any]) -> str:
    calls = [call["function"] for call in row.get("tool_calls") or ()]
    return "\n".join([row["content"] or "", *(f"{call['name']} {call['arguments']}" for call in calls)])


@pytest.mark.parametrize("kind", TEXTS)
def test_every_kind_of_text_is_counted_closely(kind: str, tokenizer: Any) -> None:
    text = TEXTS[kind] * 20
    assert close_tokens(text, "gpt") == pytest.approx(len(tokenizer.encode(text)), rel=0.2)


@given(st.text(), st.sampled_from(FAMILIES))
def test_any_text_has_a_count_and_a_longer_one_has_no_less(text: str, family: str) -> None:
    assert close_tokens(text, family) >= 0
    assert close_tokens(f"{text}.\n{text}", family) >= close_tokens(text, family)


@some
@given(logs(), st.sampled_from(["", "openai", "anthropic"]))
def test_whatever_was_said_the_ratio_stays_within_bounds(messages: list[Message], provider: str) -> None:
    history, meter = history_of([*messages, *talk(40)]), Meter(provider=provider)
    meter.look(history)
    assert LOWEST_RATIO <= meter.calibration.ratio <= HIGHEST_RATIO


def test_what_the_view_does_not_show_says_nothing_of_a_request() -> None:
    history = history_of([user(TEXTS["base64"] * 9), *(user(TEXTS["English"] * 9) for _ in range(20))])
    whole = density(history, "gpt")
    history.view = View((Marker("m1", ((1, 1),), "gone"), Verbatim(2, 9)), 10)
    shown = density(history, "gpt")
    assert shown < 1 < whole
    assert density(history, "gpt", [TEXTS["base64"] * 90]) > whole, "what goes along with it is looked at too"


def test_an_empty_request_and_one_of_calls_alone_have_a_density() -> None:
    assert density(history_of([]), "gpt") == 1
    rows = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
        }
    ]
    assert 0.5 < density(history_of([message_from_dict(row) for row in rows]), "gpt") < 2


def test_a_report_or_a_wish_is_believed() -> None:
    history = history_of([user(TEXTS["base64"] * 90)])
    for calibration in (Calibration(1.3, 4), Calibration.unlearned("openai", count_as="mistral")):
        meter = Meter(calibration=calibration)
        meter.look(history)
        assert meter.calibration is calibration
    meter = Meter(provider="openai")
    meter.learn(meter.raw(history), history, 30_000, 0)
    learned = meter.calibration
    meter.look(history)
    assert meter.calibration is learned
