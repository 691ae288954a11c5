"""Assemble an answer from the chunks of a stream, and detect errors and empty answers.

litellm's own assembler is not used: it merges tool calls, invents usage, and turns errors into empty answers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from nca.errors import AnswerFiltered, OnlyReasoned, ProviderFailure
from nca.messages import SIGNED_THOUGHTS, Message, ResponseFacts, Usage, clean_text
from nca.models.claude import ClaudeBlocks, as_count, samplings
from nca.models.error_details import looks_like_error
from nca.models.explain import BrokenStream, EmptyAnswer
from nca.models.failures import classify_provider_error
from nca.models.model import Delta, Reply
from nca.models.tagged_reasoning import TaggedReasoning
from nca.models.tool_calls import ToolCallAssembler, text_in

_FINISHES = {
    **dict.fromkeys(("end_turn", "eos", "eos_token", "stop_sequence", "complete", "completed"), "stop"),
    **dict.fromkeys(("function_call", "tool_use"), "tool_calls"),
    **dict.fromkeys(("max_tokens", "model_length"), "length"),
    "safety": "content_filter",
}
_STOPPED_SHORT = frozenset({"length", "content_filter", "refusal"})
_BUFFER_CHARS = 300
"""Text that begins like an error object is held back up to this length, so that errors are not shown as answers."""


class Assembler:
    """Assembles one answer: `add` OpenAI-shaped chunks, then `finish`."""

    def __init__(self, *, begins_inside: bool = False) -> None:
        """begins_inside: see `TaggedReasoning`. In the end it is so for the endpoint's next answer."""
        self.begins_inside = begins_inside
        self.chunks = 0
        self.finish_reason = ""
        self.response = ResponseFacts()
        self.calls = ToolCallAssembler()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._tagged, self._tagged_reasoning = TaggedReasoning(begins_inside=begins_inside), list[str]()
        self._refusal: list[str] = []
        self._buffer: list[str] | None = []
        self._failure = ""
        """The JSON of an error event of another protocol."""
        self._usage: dict[str, int] = {}
        self._samplings: tuple[Usage, ...] = ()
        self._blocks = ClaudeBlocks()

    def add(self, chunk: Mapping[str, Any]) -> list[Delta]:
        """Add one chunk and return what can be shown of it."""
        self.chunks += 1
        self.add_usage(chunk.get("usage"))
        self.response = add_facts(self.response, chunk)
        choices = chunk.get("choices")
        if not choices and ("error" in chunk or str(chunk.get("type")).endswith((".failed", "error"))):
            self._failure = json.dumps(chunk, default=str)
        deltas = _progress(chunk.get("prompt_progress"))
        for choice in _first(choices):
            deltas += self._add_choice(choice)
        return deltas

    def add_usage(self, usage: object) -> None:
        """Add a usage report; later counts replace earlier ones, because providers report growing totals."""
        for name, value in _counts(usage).items():
            if value > 0 or name not in self._usage:
                self._usage[name] = value
        self._samplings = samplings(usage) or self._samplings

    def forget_usage(self) -> None:
        self._usage.clear()

    def set_finish_reason(self, reason: str) -> None:
        """Set the finish reason, translated to OpenAI's name for it."""
        lowered = reason.lower()
        self.finish_reason = _FINISHES.get(lowered, lowered)

    @property
    def usage(self) -> Usage | None:
        """The reported usage; None without a plausible report."""
        counts = self._usage
        if not counts.get("prompt_tokens"):
            return None
        return Usage(
            prompt_tokens=counts["prompt_tokens"],
            completion_tokens=counts.get("completion_tokens", 0),
            cache_read_tokens=min(counts.get("cache_read_tokens", 0), counts["prompt_tokens"]),
            cache_write_tokens=min(counts.get("cache_write_tokens", 0), counts["prompt_tokens"]),
            reasoning_tokens=counts.get("reasoning_tokens", 0),
        )

    def release(self) -> list[Delta]:
        """The text that was held back, now that it is known to be an answer."""
        buffered, self._buffer = self._buffer, None
        return [Delta(text="".join(buffered))] if buffered else []

    def finish(self, known_ids: Collection[str] = (), model: str = "") -> Reply:
        """The complete reply.

        known_ids: ids of the tool calls already in the conversation; model: the model that answered.
        Raises EmptyAnswer, BrokenStream, ProviderError.
        """
        calls = self.calls.calls(known_ids, model)
        self._add_late(self._untagged(has_calls=bool(calls)))
        self._take_unopened(has_calls=bool(calls))
        text = clean_text("".join(self._text) or "".join(self._refusal))
        if self._failure and not text and not calls:
            raise EmptyAnswer(self._failure)
        if not self.finish_reason:
            raise BrokenStream("The answer ended early, without a finish reason.")
        has_stopped = self._blocks.summary is not None and not text.strip() and not calls
        if not has_stopped and not calls:
            self._refuse_errors(text)
        thinking = {SIGNED_THOUGHTS: self._blocks.thinking} if self._blocks.thinking else {}
        message = Message(
            role="assistant",
            content=text or None,
            tool_calls=calls,
            reasoning=clean_text("".join(self._reasoning) + "".join(self._tagged_reasoning).strip()),
            extra=thinking,
            made_by=model if thinking else "",
        )
        # litellm reports "length" when Anthropic stopped for a compaction.
        finish = "compaction" if has_stopped else self.finish_reason
        if calls and finish not in _STOPPED_SHORT:
            finish = "tool_calls"
        elif self._refusal and not self._text:
            finish = "refusal"
        several = self._samplings if self._blocks.summary or len(self._samplings) > 1 else ()
        return Reply(message, self.usage, finish, several, self._blocks.summary, self.response)

    def _untagged(self, *, has_calls: bool) -> str:
        """The text that is known to be the answer only at its end.

        A tag that was never closed began no reasoning if there is nothing else: the text would be lost.
        """
        is_answer = not (has_calls and self._tagged.is_opened) and self.finish_reason not in _STOPPED_SHORT
        if self._tagged.unclosed and is_answer:
            self.begins_inside = False
            self._tagged_reasoning.clear()
            return self._tagged.unclosed
        return self._tagged.end()

    def _take_unopened(self, *, has_calls: bool) -> None:
        """Part the text at an end of reasoning whose beginning is in the prompt. What was shown of it stays shown."""
        found = (
            None
            if self.begins_inside or self._reasoning
            else self._tagged.unopened("".join(self._text), has_calls=has_calls)
        )
        if found is None:
            return
        self.begins_inside = True
        self._tagged_reasoning, self._text = [found[0]], [found[1]]
        if self._buffer is not None:
            self._buffer = [clean_text(found[1])]

    def _add_late(self, text: str) -> None:
        """More of the answer, which `release` shows."""
        if text:
            self._text.append(text)
            self._buffer = [*(self._buffer or []), clean_text(text)]

    def _refuse_errors(self, text: str) -> None:
        """Raise if an answer without calls is an error message, or empty."""
        shown = {
            "choices": [{"finish_reason": self.finish_reason, "message": {"content": text}}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 1, **self._usage},
        }
        is_error_text = self.finish_reason.startswith("error") or looks_like_error(text)
        if not text.strip() or is_error_text:
            verdict = classify_provider_error(shown)
            if verdict.is_overflow or (
                is_error_text and (verdict.action != "fail" or self.finish_reason[:5] == "error")
            ):
                raise EmptyAnswer(json.dumps(shown))
        if not text.strip():
            self._refuse_empty()

    def _refuse_empty(self) -> None:
        match self.finish_reason:
            case "length":
                said = "The output limit was reached before any text."
                advice = "Raise model.max_output_tokens, or let the model reason less (model.reasoning low)."
                raise OnlyReasoned(said, advice=advice, failure=ProviderFailure("fail", False, message=said))
            case "content_filter" | "refusal":
                said = "The provider's content filter stopped the answer."
                advice = "Rephrase it, or choose another model with --model."
                raise AnswerFiltered(said, advice=advice, failure=ProviderFailure("fail", False, message=said))
            case _:
                raise EmptyAnswer

    def _add_choice(self, choice: Mapping[str, Any]) -> list[Delta]:
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self.set_finish_reason(reason)
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, Mapping):
            return []
        written = self.calls.add(delta.get("tool_calls")) + self.calls.add(delta.get("function_call"))
        self._blocks.add(delta)
        text, thought = _content(delta.get("content"))
        text, tagged = self._tagged.add(text)
        if tagged := tagged if self._tagged_reasoning else tagged.lstrip():
            self._tagged_reasoning.append(tagged)
        thought += text_in(delta.get("reasoning_content")) or text_in(delta.get("reasoning"))
        refusal = text_in(delta.get("refusal"))
        self._refusal += [refusal] if refusal else []
        deltas = []
        if thought:
            self._reasoning.append(thought)
        if thought or tagged:
            deltas.append(Delta(reasoning=clean_text(thought + tagged)))
        if text:
            self._text.append(text)
        if text or refusal:
            deltas += self._hold_or_pass(clean_text(text or refusal))
        return deltas + [Delta(call=call) for call in written]

    def _hold_or_pass(self, text: str) -> list[Delta]:
        if self._buffer is None:
            return [Delta(text=text)]
        self._buffer.append(text)
        so_far = "".join(self._buffer).lstrip()
        if len(so_far) < _BUFFER_CHARS and (not so_far or so_far[0] == "{" or "error:".startswith(so_far[:6].lower())):
            return []
        return self.release()


def add_facts(known: ResponseFacts, chunk: Mapping[str, Any]) -> ResponseFacts:
    """The provider's facts about its answer, with those of this chunk."""
    said = [text_in(choice.get("finish_reason")) for choice in _first(chunk.get("choices"))]
    reasons = tuple(clean_text(reason) for reason in said if reason)
    model, key = known.model or text_in(chunk.get("model")), known.id or text_in(chunk.get("id"))
    if not reasons and (model, key) == (known.model, known.id):
        return known
    return ResponseFacts(clean_text(model), clean_text(key), reasons or known.finish_reasons)


def _first(choices: object) -> list[Mapping[str, Any]]:
    """The pieces of the first answer: one is requested, so others are ignored."""
    listed = choices if isinstance(choices, list | tuple) else ()
    return [choice for choice in listed if isinstance(choice, Mapping) and choice.get("index") in (0, None)]


def _content(value: object) -> tuple[str, str]:
    """Text and reasoning of a delta's content: a string, or a list of parts as some providers send."""
    if not isinstance(value, list | tuple):
        return text_in(value), ""
    text, thought = "", ""
    for part in value:
        if isinstance(part, Mapping):
            inner = _content(part.get("thinking"))[0]
            thought += inner
            text += "" if inner else text_in(part.get("text"))
    return text, thought


def _progress(progress: object) -> list[Delta]:
    """The progress of llama.cpp's server in reading the prompt, if it was asked for."""
    counts = _mapping(progress)
    read, total = as_count(counts.get("processed")), as_count(counts.get("total"))
    return [Delta(read_tokens=read, of_tokens=total)] if read is not None and total else []


def _counts(usage: object) -> dict[str, int]:
    """The plausible counts of a usage report."""
    told = _mapping(usage)
    inside, outside = _mapping(told.get("prompt_tokens_details")), _mapping(told.get("completion_tokens_details"))
    found = {
        "prompt_tokens": told.get("prompt_tokens"),
        "completion_tokens": told.get("completion_tokens"),
        "cache_read_tokens": told.get("cache_read_input_tokens") or inside.get("cached_tokens"),
        "cache_write_tokens": told.get("cache_creation_input_tokens")
        or inside.get("cache_creation_tokens")
        or inside.get("cache_write_tokens"),
        "reasoning_tokens": outside.get("reasoning_tokens"),
    }
    return {name: count for name, value in found.items() if (count := as_count(value)) is not None}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
