"""`import nca`: every name loads, is documented, and costs nothing before it is used."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import nca
from nca import errors

PROMISED = [
    "compact",
    "check_context_budget",
    "estimate_tokens",
    "estimate_messages_tokens",
    "classify_provider_error",
    "is_context_overflow_error",
    "context_overflow_provider",
    "repair_tool_pairs",
    "validate_request",
    "context_window_size",
    "output_reserve",
    "available_input_tokens",
    "truncate_to_token_budget",
    "truncate_tool_output",
    "file_token_budget",
    "fit_files",
    "Conversation",
    "open_model",
    "SlidingWindow",
    "ToolResultClearing",
    "Summarization",
    "Composite",
    "Strategy",
    "NcaError",
]


@pytest.mark.parametrize("name", nca.__all__)
def test_every_name_loads_and_says_what_it_is_for(name: str) -> None:
    value = getattr(nca, name)
    if isinstance(value, type | FunctionType):  # no name of a type, such as Listener
        assert value.__doc__
        assert not value.__doc__.startswith(f"{name}(")


VALID: dict[str, Any] = {
    **{"messages": [{"role": "user", "content": "Hi"}], "text": "Hi", "provider": "openai", "model": "gpt-4"},
    **{"context_window": 8_000, "max_tokens": 5, "files": [], "error": "down", "project": None, "env": {}},
    **{"choice": "openai/gpt-4", "loaded": None},
}
"""An argument for each parameter without a default."""
UNCHECKED = {"on_retry", "redactor", "trusts", "chosen", "flags"}
"""Called or read later than the others."""


@pytest.mark.parametrize("name", [name for name in nca.__all__ if isinstance(getattr(nca, name), FunctionType)])
def test_a_function_names_what_it_raises_and_raises_nothing_else(name: str) -> None:
    function = getattr(nca, name)
    named = [getattr(errors, word, None) for word in re.findall(r"\w+", function.__doc__)]
    documented = tuple(one for one in named if isinstance(one, type) and issubclass(one, nca.NcaError))
    assert documented or "Never raises." in function.__doc__
    parameters = {**inspect.signature(function).parameters}
    given = {one: VALID[one] for one, how in parameters.items() if how.default is how.empty}
    for one in parameters.keys() - UNCHECKED if function.__module__ != "nca.agent" else ():
        with suppress(*documented):
            called = function(**{**given, one: object()})
            asyncio.run(called) if inspect.iscoroutine(called) else None


@pytest.mark.parametrize("name", [name for name in nca.__all__ if name[0].isupper()])
def test_an_error_is_one_of_nca_s(name: str) -> None:
    value = getattr(nca, name)
    if isinstance(value, type) and issubclass(value, Exception):
        assert issubclass(value, nca.NcaError) or value is nca.ToolError  # which is a text for the model


@pytest.mark.parametrize("name", PROMISED)
def test_what_the_design_promises_is_there(name: str) -> None:
    assert name in nca.__all__


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (
            nca.BudgetCheck,
            "within_budget estimated_input_tokens available_input_tokens usage_ratio should_compact breakdown",
        ),
        (
            nca.CompactionResult,
            "compacted stages_used tokens_before tokens_after tokens_saved budget_tokens target_tokens kept_facts items"
            " messages",
        ),
        (nca.ProviderFailure, "action is_overflow asked_tokens limit_tokens retry_after_seconds message"),
        (nca.TruncatedOutput, "content truncated saved_path original_size"),
    ],
)
def test_what_the_design_promises_of_results_is_there(kind: type, fields: str) -> None:
    missing = [name for name in fields.split() if name not in {*dir(kind), *getattr(kind, "__annotations__", ())}]
    assert missing == []


def test_the_list_is_sorted_and_complete() -> None:
    assert len(set(nca.__all__)) == len(nca.__all__)
    assert set(nca.__all__) <= set(dir(nca))
    with pytest.raises(AttributeError, match="no attribute 'compactify'"):
        # mypy refuses it, or this line would be an unused one.
        nca.compactify  # type: ignore[attr-defined]  # noqa: B018


def test_after_the_documented_start_of_a_server_a_conversation_loads_nothing_large(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, nca\n"
        "from pathlib import Path\n"
        "from nca import vocabulary\n"
        "from nca.testing.scripted import ScriptedModel\n"
        "home = Path(sys.argv[1])\n"
        f"{_start_of_a_server()}\n"
        "assert vocabulary.is_loaded()\n"
        "before = {name for name in sys.modules if name.startswith('nca.agent')}\n"
        "assert 'nca.agent.conversation' in before\n"
        "async def talk():\n"
        "    with nca.Store.open(None) as store:\n"
        "        loaded = nca.load_settings(project=None, env={'NCA_HOME': str(home)})\n"
        "        one = nca.Conversation.open(loaded, store=store, model=ScriptedModel(['Hi.']), directory=home)\n"
        "        assert (await one.send('Hello')).text == 'Hi.'\n"
        "        await one.close()\n"
        "asyncio.run(talk())\n"
        "assert before == {name for name in sys.modules if name.startswith('nca.agent')}\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def _start_of_a_server() -> str:
    """The line in docs/library.md."""
    lines = (Path(__file__).parents[2] / "docs" / "library.md").read_text().splitlines()
    return next(line.removeprefix(">>> ") for line in lines if line.startswith(">>> nca.Conversation, "))


def test_the_library_imports_neither_litellm_nor_a_terminal_and_a_compaction_no_event_loop() -> None:
    code = (
        "import sys, nca\n"
        "nca.compact([{'role': 'user', 'content': 'Hi'}])\n"
        "assert 'asyncio' not in sys.modules\n"
        "nca.SlidingWindow(2, 10).compact([{'role': 'user', 'content': 'Hi'}])\n"
        "nca.classify_provider_error('prompt is too long')\n"
        "heavy = {'litellm', 'rich', 'prompt_toolkit', 'typer', 'apsw', 'openai'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
