"""The list of models: the likely ones first, every known one while something is typed."""

from __future__ import annotations

from msgspec.structs import replace

from nca.config.schema import ModelSettings
from nca.models.catalog import describe
from nca.models.lookup import Offer, known, offers
from nca.terminal.panels.list_panel import fitted_listing
from nca.terminal.panels.pickers import ModelPicker
from tests.terminal.tty import chats

ENV = {"ANTHROPIC_API_KEY": "k"}


def lines(picker: ModelPicker, columns: int = 120) -> list[str]:
    drawn = fitted_listing(picker.listing(columns), columns, 18)
    return [line.rstrip() for line in "".join(part[1] for part in drawn).split("\n")]


def test_each_model_is_offered_once_for_the_best_reason() -> None:
    settings = ModelSettings(name="openai/gpt-4.1", summarizer="openai/gpt-4.1-mini", fallbacks=("gemini/x",))
    found = offers(
        settings, ENV, in_use="openai/gpt-4.1", found=["ollama_chat/a"], recent=["gemini/x", "mistral/b", "mistral/b"]
    )
    assert [(one.name, one.why) for one in found][:5] == [
        ("openai/gpt-4.1", "in use"),
        ("gemini/x", "a fallback"),
        ("openai/gpt-4.1-mini", "summarizer"),
        ("ollama_chat/a", "found"),
        ("mistral/b", "used before"),
    ]
    assert found[5].why == "Anthropic's key is set"
    assert len(found) == 6


def test_typing_searches_every_model_of_a_provider_with_a_key() -> None:
    names = [one.name for one in known(ModelSettings(), ENV)]
    assert len(names) > 5
    assert all(name.startswith("anthropic/claude") for name in names)
    picker = ModelPicker([Offer("openai/gpt-4.1", "in use")], lambda: known(ModelSettings(), ENV))
    assert "1.0M" in lines(picker)[0]
    assert "$2.00 in, $8.00 out" in lines(picker)[0]
    assert any(
        "window 1,047,576 tokens · $2.00 in, $8.00 out · takes tools and images" in line for line in lines(picker)
    )
    picker.buffer.text = "claude"
    assert len([line for line in lines(picker) if "anthropic/claude" in line]) > 3
    picker.buffer.text = "nothing-like-it"
    assert "Enter takes the name as typed" in lines(picker)[0]
    assert all(len(line) <= 40 for line in lines(ModelPicker([Offer("a/" + "b" * 99, "found")], list), 40))


def test_a_provider_whose_models_an_endpoint_of_ones_own_serves_offers_none_of_its_own() -> None:
    here = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": "http://127.0.0.1:1/v1"}
    at_an_endpoint = ModelSettings(api_base="http://127.0.0.1:1/v1")
    for settings, env in ((ModelSettings(), here), (at_an_endpoint, {**ENV, "OPENAI_API_KEY": "k"})):
        assert [one.name for one in offers(settings, env, in_use="openai/a", found=(), recent=())] == ["openai/a"]
        assert known(settings, env) == []
    assert {one.name.partition("/")[0] for one in known(ModelSettings(), {**ENV, **here})} == {"anthropic"}


def test_what_a_server_lists_is_added_when_it_answers_and_the_chosen_row_stays() -> None:
    picker = ModelPicker([Offer("openai/gpt-4.1", "in use"), Offer("a/b", "found")], list)
    picker.move(1)
    picker.add([Offer("openai/local", "at home", 9_000), Offer("openai/gpt-4.1", "at home")])
    assert " 9.0k " in lines(picker)[2], "as the server lists it"
    assert [line[2:].split()[0] for line in lines(picker)[:3]] == ["openai/gpt-4.1", "a/b", "openai/local"]
    assert lines(picker)[1].startswith("› a/b")


def test_the_model_in_use_is_shown_with_the_window_in_force() -> None:
    facts = replace(describe("openai/gpt-4.1"), window_tokens=9_000)
    picker = ModelPicker([Offer(facts.name, "in use"), Offer("openai/gpt-4.1-mini", "found")], list, in_use=facts)
    shown = lines(picker)
    assert "9.0k" in shown[0]
    assert "1.0M" in shown[1]
    assert any("window 9,000 tokens" in line for line in shown)


def test_a_window_that_is_a_guess_is_said_to_be_one() -> None:
    facts = describe("openai/of-my-own")
    for in_use, shown in (
        (facts, "window 128,000 tokens (assumed)"),
        (facts.with_window(9_000), "window 9,000 tokens"),
    ):
        drawn = lines(ModelPicker([Offer(facts.name, "used before")], list, in_use=in_use))
        assert ("128k" in drawn[0], "9.0k" in drawn[0]) == (False, in_use is not facts)
        assert any(f"used before · {shown} ·" in line for line in drawn)


def test_what_is_said_of_the_chosen_one_wraps_in_a_narrow_window() -> None:
    picker = ModelPicker([Offer("openai/of-my-own", "used before")], list)
    about = "".join(text for line in picker.listing(50).about for _, text in line)
    assert "price not known" in about
    assert "…" not in about


def test_in_a_terminal_the_chosen_model_answers() -> None:
    with chats() as begin:
        tty = begin("Fine.", env={"OPENAI_API_KEY": "sk-none"})
        tty.command("/model")
        tty.sees("Enter switches")
        tty.send("gpt-4.1-nano\r")
        tty.sees("gpt-4.1-nano answers from now on.")
