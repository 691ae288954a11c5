"""Figures of an invented run, small enough to read."""

from __future__ import annotations

from typing import Any


def compaction(peer: str, label: str, **other: Any) -> dict[str, Any]:
    """One session, compacted well."""
    row = {
        "peer": peer,
        "variant": "one",
        "label": label,
        "has_model": False,
        "material": "generated 100",
        "is_raw": False,
        "tokens_before": 1_000,
        "tokens_after": 400,
        "target_tokens": 500,
        "is_met": True,
        "refused_by": [],
        "was_refused_by": [],
        "pair_faults": 0,
        "facts": {"paths touched": [9, 10], "user turns": [4, 5], "rules of the user": [2, 2]},
        "user_turns": [4, 5],
        "user_tokens": 100,
        "is_newest_whole": True,
        "mutated": False,
    }
    return {**row, **other}


def stated(peer: str, label: str, **other: Any) -> dict[str, Any]:
    """A session with marked facts, replayed well."""
    row = {
        "peer": peer,
        "variant": "one",
        "label": label,
        "has_model": False,
        "session": "played",
        "window_tokens": 8_000,
        "compactions": 3,
        "requests": 10,
        "breaks": 3,
        "broken": 0,
        "refused": 0,
        "over": 0,
        "too_large": 0,
        "cost_ratio": 0.05,
        "rules": [4, 4],
        "others": [9, 10],
        "person": [9, 10],
        "model": [2, 4],
        "tool": [0, 0],
    }
    return {**row, **other}


def figures() -> dict[str, Any]:
    """nca and one peer, which is ahead in the time of a check and nowhere else."""
    named = {"variant": "one", "has_model": False}
    return {
        "date": "2026-01-02",
        "machine": {
            "cores": 2,
            "processor": "x86_64",
            "memory_bytes": 8 * 1024**3,
            "system": "Linux",
            "python": "3.11",
            "node": "",
        },
        "peers": {"nca": {"version": "1", "reason": ""}, "other": {"version": "", "reason": "npm is not there"}},
        "settings": {
            "sessions": 1,
            "target_ratio": 0.5,
            "first_contact": {"sessions": ["played"], "since": "A law was added.", "before": "A rule was added."},
        },
        "next_steps": [
            {
                "peer": "nca",
                "label": "nca",
                "has_model": False,
                "session": "played",
                "window_tokens": 64_000,
                "cuts": 3,
                "names": {"calls, person": [8, 10], "prose, tool": [2, 5]},
                "newest": {"calls, person": [2, 10], "prose, tool": [0, 0]},
                "lacking": [1, 2],
                "of_target": 1.0,
                **named,
            },
            {
                "peer": "other",
                "label": "other <trim>",
                "session": "played",
                "window_tokens": 64_000,
                "cuts": 3,
                "names": {"calls, person": [1, 10]},
                "newest": {"calls, person": [2, 10]},
                "lacking": [0, 0],
                "of_target": 2.0,
                **named,
            },
        ],
        "effects": [
            {
                "peer": "nca",
                "label": "nca",
                "window_tokens": 32_000,
                "told": [3, 4],
                **named,
            }
        ],
        "headline": [stated("nca", "nca"), stated("other", "other <trim>", rules=[1, 4], refused=5, cost_ratio=0.2)],
        "compactions": [
            compaction("nca", "nca"),
            compaction(
                "other",
                "other <trim>",
                refused_by=["openai"],
                facts={"paths touched": [5, 10], "user turns": [1, 5], "rules of the user": [0, 2]},
                user_turns=[1, 5],
            ),
        ],
        "times": [
            {
                "peer": "nca",
                "label": "nca",
                "messages": 1_000,
                "cold_seconds": 0.004,
                "from_dicts_seconds": 0.002,
                "of_target": 0.9,
                **named,
            },
            {
                "peer": "nca",
                "label": "nca, in a session",
                "messages": 1_000,
                "check_seconds": 2e-5,
                "seconds": 0.002,
                "of_target": 0.9,
                "peak_bytes": 5e7,
                **named,
            },
            {
                "peer": "other",
                "label": "other <trim>",
                "messages": 1_000,
                "cold_seconds": 0.008,
                "from_dicts_seconds": 0.004,
                "check_seconds": 1e-5,
                "seconds": 0.004,
                "of_target": 2.5,
                **named,
            },
        ],
        "replays": [
            {
                "peer": "nca",
                "label": "nca",
                "cost_ratio": 0.05,
                "requests": 20,
                "compactions": 3,
                "breaks": 3,
                "broken": 0,
                "over": 0,
                "left": {key: [2, 3] for key in ("rules of the user", "user turns", "paths touched", "error lines")},
                **named,
            },
            {"peer": "other", "label": "other <trim>", "error": "more than 60 s", **named},
        ],
        "policies": [
            {
                "stages": ["prune", "deduplicate", "summarize", "truncate"],
                "target_ratio": 0.25,
                "compact_threshold": 0.8,
                "cases": 9,
                "sessions": 2,
                "cached": 0.03,
                "cached_large": 0.035,
                "uncached": 0.12,
                "compactions": 70,
                "kept": {"rules of the user": 1.0, "user's sentences": 0.9, "paths touched": 0.8, "error lines": 0.2},
                "stated": 0.999,
            }
        ],
        "counts": [],
        "anchored": [],
        "saved": [],
        "errors": [{"peer": "nca", "label": "nca", "found": 5, "overflows": 5, "false_alarms": 0, "others": 3}],
        "recalled": {"facts": 10, "in_view": 6, "with_search": 10},
        "commands": [{"peer": "nca", "seconds": 0.05, "peak_bytes": 2e7}],
        "engine": [],
        "loop": [{"model": "embedded", "error": "there are no weights"}],
        "growth": {},
    }


def grown_figures() -> dict[str, Any]:
    """Two lengths and one count: a turn takes twice as long at the greater one, which is more than the goal."""
    times = {"turn_mean": 0.01, "check": 1e-5, "resume": 0.02, "search": 0.003}
    sizes = {"database_bytes": 204_800, "resident_bytes": 3 * 1024**2}
    works = ("open_store", "list", "latest", "find", "search", "expire")
    return {
        "lengths": [
            {"messages": 100, "turn": 0.004, **times, **sizes},
            {"messages": 1_000, "turn": 0.008, **times, **sizes},
        ],
        "counts": [{"sessions": 10, **dict.fromkeys(works, 0.001)}],
        "recording": {"nothing changed": (50.0, 40.0)},
        "verdicts": {
            "turn_growth": {"ratio": 2.0, "goal": 1.5, "messages": 1_000},
            "turn_mean_growth": {"ratio": 1.0, "goal": 1.5},
            "check_seconds": {"longest": 1e-5, "goal": 5e-5},
            "resume_seconds": {"at": 100_000, "took": 0.1, "goal": 0.5},
        },
    }
