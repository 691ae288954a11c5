"""Run nca and the other programs on the same sessions, windows and targets: everything that needs no model."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import judge
from benchmarks.asking import ask, packed
from benchmarks.environments import Environment
from benchmarks.extractors import facts
from benchmarks.material import coding_session
from benchmarks.mending import mended
from benchmarks.peers.side import FROM_DICTS, NATIVE, chars
from benchmarks.requests import judged, requests_of
from benchmarks.tokens import tokens
from benchmarks.validity import refused_by

Row = dict[str, Any]
TARGET_RATIO, TRIGGER_RATIO, RESERVE_RATIO = 0.5, 0.8, 0.35
"""Target and trigger are shares of the budget, which is the window less the reserve; the same for everybody."""
GENERATED = ((100, 32_000), (300, 64_000), (1_000, 128_000))
"""Messages and window of the generated sessions: each is some five times its budget."""
LENGTHS = (1_000, 10_000, 100_000)
TIMES_WINDOW = 128_000
REPLAYED = (400, 64_000)
SESSION, SESSION_MODEL = "coding-session-opus.jsonl", "anthropic/claude-opus-4-5"
SESSION_WINDOW = 200_000
SHORT_WINDOW = 8_000
MOST_OF_A_FILE = 4
MOST_CHARS = 16_000
"""Shorter ones of the real conversations fit the short window as they are."""
TIME_SECONDS = 25.0
RUNS, ROUNDS = 5, 3
STEADY_SECONDS = 3.0
"""What takes longer is not measured again."""
SUMMARY = (
    "### 1. Goal and intent\nWork on the repository continues as the user asked for it, in small steps, each of them"
    " with its tests.\n### 5. Files and code\nSeveral files were read, some of them were changed.\n### 7. Pending and"
    " done\nEarlier requests were finished and reported.\n### 9. Next step\nGo on with the newest request."
)
"""What the scripted model says where no model's summary was recorded. It holds no fact: what is kept, code keeps."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to compact. `has_model`: it has a summary written, here by a script. `times`: what is timed of it."""

    peer: str
    name: str
    label: str
    has_model: bool = False
    times: tuple[str, ...] = (FROM_DICTS, NATIVE)


VARIANTS = (
    Variant("nca", "extract", "nca"),
    Variant("nca", "1, 2, 4", "nca, stages 1, 2, 4"),
    Variant("neurolink", "1, 2, 4", "NeuroLink, stages 1, 2, 4"),
    Variant("neurolink", "escalated", "NeuroLink, with escalation", times=()),
    Variant("neurolink", "stored", "NeuroLink, as it stores and sends", times=()),
    Variant("langchain", "trim_messages", "langchain trim_messages"),
    Variant("litellm", "trim_messages", "litellm trim_messages"),
    Variant("litellm", "compress", "litellm compress", times=()),
    Variant("headroom", "compress", "headroom compress"),
    Variant("hermes", "tail, index", "hermes, tail and index", times=()),
    Variant("gptme", "reduce_log", "gptme reduce_log"),
    Variant("strands", "SlidingWindow", "strands sliding window"),
    Variant("strands", "SlidingWindow, equal budget", "strands sliding window of the target's size", times=()),
    Variant("openai-agents", "limit", "OpenAI Agents session limit"),
    Variant("openai-agents", "ToolOutputTrimmer", "OpenAI Agents ToolOutputTrimmer"),
    Variant("pydantic-ai", "clear, deduplicate, slide", "pydantic-ai-harness"),
    Variant("nca", "summary", "nca", has_model=True),
    Variant("langchain", "SummarizationMiddleware", "langchain summarization", has_model=True),
    Variant(
        "langchain",
        "SummarizationMiddleware, default",
        "langchain summarization that keeps 20 messages",
        has_model=True,
        times=(),
    ),
    Variant("deepagents", "SummarizationMiddleware", "deepagents summarization", has_model=True),
    Variant(
        "deepagents",
        "SummarizationMiddleware, default",
        "deepagents summarization that keeps a tenth of the window",
        has_model=True,
        times=(),
    ),
    Variant("aider", "ChatSummary", "aider ChatSummary", has_model=True),
    Variant("codex", "local", "Codex's local rule", has_model=True, times=()),
    Variant("hermes", "tail, summary", "hermes", has_model=True, times=()),
    Variant("strands", "Summarizing", "strands summarizing", has_model=True),
    Variant("pydantic-ai", "clear, deduplicate, summarize", "pydantic-ai-harness", has_model=True),
)
TIMED = (
    Variant("nca", "1, 2, 4 in a session", "nca, in a session", times=(NATIVE,)),
    *(replace(one, times=(FROM_DICTS,)) for one in VARIANTS if one.peer == "nca" and not one.has_model),
    *(one for one in VARIANTS if one.peer != "nca" and one.times),
)
WITH_ALL_WORDS = (
    Variant("nca", "1, 2", "nca, prune and deduplicate"),
    Variant("neurolink", "1, 2", "NeuroLink, prune and deduplicate"),
    Variant("pydantic-ai", "clear, deduplicate", "pydantic-ai-harness, clear and deduplicate"),
)
CLASSIFIERS = (("nca", "nca"), ("neurolink", "NeuroLink"), ("litellm", "litellm"))


@dataclass(frozen=True, slots=True)
class Material:
    """A session to compact.

    kind     what sort of session it is, as the page calls it
    session  the session that this is a beginning of; "": it is a session of its own
    summary  what a frontier model wrote at this point, where that was recorded
    is_raw   as it was recorded, with what providers would refuse (empty messages, ids used twice, calls without result)
    """

    name: str
    rows: list[Row]
    window_tokens: int
    kind: str = "generated"
    session: str = ""
    summary: str = SUMMARY
    is_raw: bool = False

    def case(self, folder: Path) -> Row:
        path = folder / f"{self.name.replace(' ', '-')}.json"
        if not path.is_file():
            packed(self.rows, path)
        return {"file": str(path), "summary": self.summary, **limits(self.window_tokens)}


def limits(window_tokens: int) -> Row:
    budget = int((1 - RESERVE_RATIO) * window_tokens)
    targets = {"target_tokens": int(TARGET_RATIO * budget), "trigger_tokens": int(TRIGGER_RATIO * budget)}
    return {"window_tokens": window_tokens, "budget_tokens": budget, **targets}


def materials(folder: Path | None) -> list[Material]:
    """Generated sessions, and the real ones where their folder is there."""
    # A seed of its own for each: with one seed, the shorter would be the beginning of the longer.
    found = [Material(f"generated {length}", coding_session(length, length), window) for length, window in GENERATED]
    if folder is not None:
        for real in _real(folder):
            found.append(replace(real, rows=mended(real.rows)))
            if refused_by(real.rows) and all("tool_call_id" in row for row in real.rows if row["role"] == "tool"):
                found.append(replace(real, name=f"{real.name}, as recorded", is_raw=True))
    return found


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _real(folder: Path) -> Iterator[Material]:
    rows = rows_of(folder / SESSION) if (folder / SESSION).is_file() else []
    for place, row in enumerate(rows):
        if row["role"] == "_compaction":
            before = [one for one in rows[:place] if not one["role"].startswith("_")]
            name = f"coding session at {len(before)}"
            yield Material(name, before, SESSION_WINDOW, "coding", "coding session", row["summary"])
    for name, kind in (("airline-support.jsonl", "customer service"), ("issue-fixing.jsonl", "issue fixing")):
        if not (folder / name).is_file():
            continue
        talks = sorted((row["messages"] for row in rows_of(folder / name)), key=chars, reverse=True)
        talks = [talk for talk in talks if any(row["role"] == "user" for row in talk) and chars(talk) > MOST_CHARS]
        for number, talk in enumerate(talks[:MOST_OF_A_FILE], 1):
            yield Material(f"{Path(name).stem} {number}", talk, SHORT_WINDOW, kind)


def compactions(
    environments: dict[str, Environment], found: Sequence[Material], folder: Path, variants: Sequence[Variant]
) -> Iterator[Row]:
    """Every variant on every session, judged."""
    for variant in variants:
        environment = environments[variant.peer]
        if not environment.is_ready:
            continue
        cases = [material.case(folder) for material in found]
        answers = ask(environment, {"op": "compact", "variant": variant.name}, cases)
        for material, case, answer in zip(found, cases, answers, strict=True):
            verdict = judge.verdict(material.rows, answer, case["target_tokens"])
            told = {"material": material.name, "session": material.session or material.name, "kind": material.kind}
            yield {**named(variant), **told, "is_raw": material.is_raw, **verdict}


def saved_with_all_words(environments: dict[str, Environment], rows: Sequence[Row], folder: Path) -> Iterator[Row]:
    """Only results give way, as far as each can: the share of a session's tokens that goes."""
    path = packed(rows, folder / "all-words.json")
    case = {"file": str(path), "summary": "", **limits(4_000_000), "target_tokens": 1}
    for variant in WITH_ALL_WORDS:
        if environments[variant.peer].is_ready:
            answer = ask(environments[variant.peer], {"op": "compact", "variant": variant.name}, [case])[0]
            if "error" in answer:
                yield {**named(variant), "error": answer["error"]}
                continue
            share = 1 - tokens(answer["messages"]) / tokens(rows)
            yield {**named(variant), "saved_ratio": share, "refused_by": refused_by(answer["messages"])}


def times(environments: dict[str, Environment], folder: Path, lengths: Sequence[int] = LENGTHS) -> Iterator[Row]:
    """A check and a compaction at several lengths; a peer that was too slow at one is not asked at the next.

    Each round starts every program anew, one after the other, so that other work on the machine falls on all alike.
    """
    slow: dict[Variant, str] = {}
    for length in lengths:
        path = packed(coding_session(length), folder / f"time-{length}.json")
        case = {"file": str(path), "summary": SUMMARY, **limits(TIMES_WINDOW)}
        asked = [one for one in TIMED if environments[one.peer].is_ready and one not in slow]
        yield from ({**named(one), "messages": length, "error": why} for one, why in slow.items())
        found: dict[Variant, list[Row]] = {one: [] for one in asked}
        for _ in range(ROUNDS):
            for variant in asked:
                if variant in slow or any(_is_long(answer) for answer in found[variant]):
                    continue
                task = {"op": "time", "variant": variant.name, "runs": RUNS, "times": variant.times}
                answer = ask(environments[variant.peer], task, [case], most_seconds=TIME_SECONDS)[0]
                found[variant].append(answer)
                if "error" in answer:
                    slow[variant] = f"not asked: at {length:,} {answer['error']}"
        for variant, answers in found.items():
            yield {**named(variant), "messages": length, **_summed(answers, case["target_tokens"])}


def _is_long(answer: Row) -> bool:
    return any(max(answer.get(name, (0,))) > STEADY_SECONDS for name in ("from_dicts_seconds", "seconds"))


def _summed(answers: Sequence[Row], target_tokens: int) -> Row:
    """Of all rounds: medians, and the lowest and highest. `cold_seconds`: the first compaction of each process."""
    found: Row = {name: answers[-1][name] for name in ("error", "peak_bytes") if name in answers[-1]}
    measured = {
        "cold_seconds": [one["from_dicts_seconds"][0] for one in answers if "from_dicts_seconds" in one],
        **{
            name: [value for one in answers for value in one.get(name, ())]
            for name in ("from_dicts_seconds", "check_seconds", "seconds")
        },
    }
    for name, values in measured.items():
        if values:
            found[name] = statistics.median(values)
            found[f"{name}_spread"] = [min(values), max(values)]
    if "tokens_after" in answers[-1]:
        found["of_target"] = answers[-1]["tokens_after"] / target_tokens
    return found


def replays(environments: dict[str, Environment], folder: Path, variants: Sequence[Variant]) -> Iterator[Row]:
    """A session request by request: price with a prefix cache, what was wrong on the way, what is left at the end."""
    length, window = REPLAYED
    rows = coding_session(length, seed=11)
    said = rows[: max(place for place, row in enumerate(rows) if row["role"] == "assistant")]
    case = {"file": str(packed(rows, folder / "replay.json")), "summary": SUMMARY, **limits(window)}
    for variant in variants:
        if environments[variant.peer].is_ready:
            task = {"op": "replay", "variant": variant.name}
            answer = ask(environments[variant.peer], task, [case])[0]
            if "error" in answer:
                yield {**named(variant), **answer}
                continue
            requests = requests_of(answer)
            left = judge.kept(facts(said), requests[-1])
            found = judged(rows, requests, case)
            yield {**named(variant), "compactions": answer["compactions"], **found, "left": left}


def counts(environments: dict[str, Environment], folder: Path, transcripts: Path) -> Iterator[Row]:
    """Each peer's own count against what the provider reported, up to the first compaction of the real session.

    What the transcript does not hold (system prompt, tools) is what the first report has more, for everybody.
    """
    rows = rows_of(transcripts / SESSION)
    first = next(place for place, row in enumerate(rows) if row["role"] == "_compaction")
    reported = {
        place: row["_usage"]["prompt_tokens"]
        for place, row in enumerate(rows[:first])
        if row["role"] == "assistant" and row.get("_usage", {}).get("prompt_tokens") and place
    }
    ends = list(reported)[::4]
    path = packed(rows[:first], folder / "counts.json")
    for peer in dict.fromkeys(variant.peer for variant in VARIANTS):
        if not environments[peer].is_ready:
            continue
        variant = next(one for one in VARIANTS if one.peer == peer)
        task = {"op": "count", "variant": variant.name, "model": SESSION_MODEL, "ends": ends, "file": str(path)}
        answer = ask(environments[peer], task, [{}])[0]
        if "error" in answer:
            yield {"peer": peer, "error": answer["error"]}
            continue
        fixed = reported[ends[0]] - answer["counts"][0]
        errors = [
            (count + fixed - reported[end]) / reported[end]
            for count, end in zip(answer["counts"][1:], ends[1:], strict=True)
        ]
        ordered = sorted(map(abs, errors))
        p95 = ordered[int(0.95 * len(ordered))]
        yield {"peer": peer, "counter": answer["counter"], "p95": p95, "lowest": min(errors), "requests": len(errors)}


def classified(environments: dict[str, Environment], corpus: Path) -> Iterator[Row]:
    """Which error replies each takes for a context overflow."""
    errors = [error for error in rows_of(corpus) if error["action"] is not None]
    for peer, label in CLASSIFIERS:
        if not environments[peer].is_ready:
            continue
        answer = ask(environments[peer], {"op": "errors", "variant": ""}, [{"errors": errors}])[0]
        if "error" in answer:
            yield {"peer": peer, "label": label, "error": answer["error"]}
            continue
        pairs = list(zip(answer["overflows"], (bool(error["is_overflow"]) for error in errors), strict=True))
        yield {
            "peer": peer,
            "label": label,
            "found": sum(said and true for said, true in pairs),
            "overflows": sum(true for _, true in pairs),
            "false_alarms": sum(said and not true for said, true in pairs),
            "others": sum(not true for _, true in pairs),
        }


def named(variant: Variant) -> Row:
    return {"peer": variant.peer, "variant": variant.name, "label": variant.label, "has_model": variant.has_model}
