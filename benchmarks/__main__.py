"""Measure nca beside other programs.

    python -m benchmarks [--quick] [--transcripts FOLDER] [--data DIR] [--model NAME] [--page] [--resume]
    python -m benchmarks --only PART [--label PROGRAM] [--session NAME]

Writes docs/benchmarks.json, docs/benchmarks.md and its details with their pictures, and README's table. A quick run
measures nca alone and writes nothing of that: it shows the page's text under .bench/. It ends with 1 where a figure is
worse than the page's, and with 2 where the machine was too busy to tell.
What a whole run has measured when it breaks off is under .bench/, and `--resume` goes on there.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import nca
from benchmarks import comparison as beside
from benchmarks import crossed, effects, next_steps
from benchmarks.commands import commands
from benchmarks.environments import NCA, PEERS, ROOT, Environment, prepared
from benchmarks.fallen import COMPARED, fallen, untold
from benchmarks.figures import DOCS, NOT_ASKED, Figures, Row, loaded, on_page, renewed_among, save, with_others
from benchmarks.growth import growth
from benchmarks.headline import WINDOWS_OF_REAL, replayed
from benchmarks.imports import imports
from benchmarks.in_the_loop import in_the_loop
from benchmarks.material import coding_session
from benchmarks.page import details, page
from benchmarks.policy import simulated
from benchmarks.public import BOTH, RECALL, conversations_in
from benchmarks.public import measured as measured_public
from benchmarks.publish import publish, saved
from benchmarks.recall import recall, recalled
from benchmarks.recorded import lines as recorded
from benchmarks.replay import estimates, facts_at_compactions, prefix_cost, saved_without_a_model
from benchmarks.stated import OWN, Recorded, first_contact, marked_in, sessions_in

UNFINISHED = ROOT / "unfinished.json"
INSTALLED_AT_ONCE = 4
TOO_BUSY = 2
"""The exit code of a quick run that cannot tell."""
BY_LABEL = (
    *("compactions", "headline", "marked", "next_steps", "effects", "times", "replays"),
    *("saved", "errors", "crossed", "public"),
)
"""Parts whose rows say which program they are of."""
BY_SESSION = ("headline", "next_steps")
"""Parts that can be measured for some of the played sessions."""


def main() -> None:
    options = _options()
    if options.page:
        publish(on_page())
        return
    started = time.perf_counter()
    found = measured(options)
    if options.quick:
        compared(found, ROOT)
        print(f"{ROOT / 'quick.md'}, {time.perf_counter() - started:.0f} s")
        return
    saved(found)
    UNFINISHED.unlink(missing_ok=True)
    print(f"{DOCS / 'benchmarks.md'}, {time.perf_counter() - started:.0f} s")


def compared(found: Figures, folder: Path) -> None:
    """Put a quick run's figures into this folder. Exits with 1 where nca has fallen behind its page."""
    figures = with_others(found)
    folder.mkdir(exist_ok=True)
    save(figures, folder / "quick.json")
    (folder / "quick.md").write_text(page(figures) + details(figures), encoding="utf-8")
    lost, busy = fallen(on_page(), found), untold(found)
    for line in lost:
        print(f"worse: {line}", file=sys.stderr)
    for line in busy:
        print(f"not told, the machine was too busy: {line}", file=sys.stderr)
    if lost or busy:
        raise SystemExit(1 if lost else TOO_BUSY)


def measured(options: argparse.Namespace) -> Figures:
    """All figures of a run; what needs something that is not there is empty, and the page leaves it out."""
    chosen = [one for one in beside.VARIANTS if one.label in options.label or not options.label]
    asked = {one.peer for one in chosen} if options.label else {one.name for one in (NCA, *PEERS)}
    talks = conversations_in(options.data) if options.data is not None else {}
    with ThreadPoolExecutor(INSTALLED_AT_ONCE) as pool:
        peers = [one if one.name in asked else replace(one, why_not=NOT_ASKED) for one in (NCA, *PEERS)]
        environments = {one.peer.name: one for one in pool.map(_ready, peers)}
    real = options.transcripts
    session = beside.rows_of(real / beside.SESSION) if real is not None and (real / beside.SESSION).is_file() else []
    corpus = next((path for path in _corpora(real) if path.is_file()), None)
    is_whole = bool(session)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = beside.materials(real)
        parts: dict[str, Callable[[], Any]] = {
            "compactions": lambda: _told("compactions", beside.compactions(environments, found, folder, chosen)),
            "headline": lambda: _told(
                "headline", replayed(environments, named_by(_played(real), options.session), folder, chosen)
            ),
            "marked": lambda: _told("marked", _marked(environments, real, folder, chosen)) if is_whole else [],
            "next_steps": lambda: _told(
                "next steps",
                next_steps.measured(environments, named_by(_stepped(real), options.session), folder, chosen),
            ),
            "effects": lambda: list(effects.measured(environments, real, folder, chosen)) if real is not None else [],
            "times": lambda: _told("times", beside.times(environments, folder)),
            "replays": lambda: _told("replays", beside.replays(environments, folder, chosen)),
            "policies": lambda: list(simulated([OWN, real])) if real is not None else [],
            "counts": lambda: _told("counts", beside.counts(environments, folder, real)) if session else [],
            "saved": lambda: list(beside.saved_with_all_words(environments, _said(session), folder)) if session else [],
            "errors": lambda: list(beside.classified(environments, corpus)) if corpus is not None else [],
            "crossed": lambda: list(crossed.measured(environments)),
            "recalled": lambda: recalled(coding_session(1_000), beside.TIMES_WINDOW),
            "commands": lambda: _told("commands", commands(list(environments.values()))),
            "anchored": lambda: list(estimates(session)) if session else [],
            "engine": lambda: _engine(session, real) if is_whole else [],
            "imports": imports,
            "growth": lambda: {} if "growth" in options.skip else _growth(),
            "loop": lambda: [] if "loop" in options.skip else _told("in the loop", _loops(options)),
        }
        if talks:
            parts["public"] = lambda: _told("public", measured_public(environments, talks, folder, chosen))
        head: Figures = {
            "date": options.date,
            "command": f"{'NCA_TRANSCRIPTS=… ' if real else ''}make bench",
            "machine": machine(),
            "peers": {name: {"version": one.version, "reason": one.reason} for name, one in environments.items()},
            "renewed": {},
            "settings": {
                "sessions": len({one.session or one.name for one in found if not one.is_raw}),
                "target_ratio": beside.TARGET_RATIO,
                "first_contact": first_contact(nca.__version__),
            },
        }
        if unknown := sorted(set(options.only) - set(parts)):
            raise SystemExit(f"--only: there is no part {unknown[0]}; valid: {', '.join(parts)}.")
        if options.only:
            settings = head["settings"]
            if "compactions" not in options.only or real is None:
                settings["sessions"] = on_page()["settings"]["sessions"]
            found_now = {part: _timed(part, parts[part]) for part in options.only}
            renewed_on = {
                "settings": settings,
                "renewed": dict.fromkeys(filter(found_now.get, found_now), options.date),
            }
            return renewed_on | renewed_among(on_page(), found_now | {"peers": head["peers"]}, options.label)
        if not options.resume:
            UNFINISHED.unlink(missing_ok=True)
        return head | one_by_one(parts, UNFINISHED)


def one_by_one(parts: Mapping[str, Callable[[], Any]], file: Path) -> Figures:
    """The figures of each part; what an earlier run has left in this file is not measured again."""
    found = loaded(file)
    file.parent.mkdir(exist_ok=True)
    for part in [name for name in parts if name not in found]:
        found[part] = _timed(part, parts[part])
        save(found, file)
    return found


def _timed(part: str, work: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    found = work()
    print(f"{part}: {time.perf_counter() - started:.0f} s", flush=True)
    return found


def machine() -> Row:
    """What the times were measured on, without its name."""
    cores = os.cpu_count() or 1
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    node = ""
    if shutil.which("node"):
        node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    return {
        "cores": cores,
        "processor": platform.machine(),
        "memory_bytes": pages * size,
        "system": platform.system(),
        "python": platform.python_version(),
        "node": node.removeprefix("v"),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--transcripts", type=Path, default=_folder(os.environ.get("NCA_TRANSCRIPTS")))
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="public benchmarks: files of LoCoMo, LongMemEval, lost-in-compaction"
    )
    parser.add_argument("--quick", action="store_true", help="nca alone, compared with the page; nothing is written")
    parser.add_argument("--page", action="store_true", help="only write page and table again, from the JSON")
    parser.add_argument("--resume", action="store_true", help="go on with a run that broke off")
    parser.add_argument("--date", default=date.today().isoformat())
    parser.add_argument("--skip", action="append", default=[], choices=("loop", "growth"), help="what takes longest")
    parser.add_argument("--only", action="append", default=[], help="measure this part alone, the rest stays as it is")
    parser.add_argument("--label", action="append", default=[], help="with --only: this program, as the page names it")
    parser.add_argument("--session", action="append", default=[], help="with --only: this played session")
    parser.add_argument("--model", action="append", default=[], help="in the loop too, beside the embedded one")
    options = parser.parse_args()
    labels = sorted({one.label for one in beside.VARIANTS} | {RECALL, BOTH})
    if unknown := sorted(set(options.label) - set(labels)):
        parser.error(f"--label: no program is named {unknown[0]!r}; valid: {'; '.join(labels)}")
    if options.label and not options.only:
        parser.error("--label needs --only, which says what to measure again")
    if options.label and (unknown := sorted(set(options.only) - set(BY_LABEL))):
        parser.error(f"--label: {unknown[0]!r} has no rows by program; valid with it: {', '.join(BY_LABEL)}")
    if options.session and (not options.only or set(options.only) - set(BY_SESSION)):
        parser.error(f"--session needs --only, and no part but {' or '.join(BY_SESSION)}")
    if options.quick:
        options.only = options.only or list(COMPARED)
        options.label = [one.label for one in beside.VARIANTS if one.peer == NCA.name]
        if unknown := sorted(set(options.only) - set(COMPARED)):
            parser.error(f"--quick: {unknown[0]!r} is not compared with the page; valid: {', '.join(COMPARED)}")
    return options


def named_by(sessions: Sequence[Recorded], names: Sequence[str]) -> list[Recorded]:
    """The sessions of these names; all where there are none. Raises SystemExit for a name that no session has."""
    known = [one.name for one in sessions]
    if unknown := sorted(set(names) - set(known)):
        raise SystemExit(f"--session: there is no session {unknown[0]!r}; valid: {', '.join(known)}")
    return [one for one in sessions if one.name in (names or known)]


def _corpora(folder: Path | None) -> list[Path]:
    """Where the error replies may be: with the transcripts, or beside their folder."""
    return [place / "provider-errors.jsonl" for place in (folder, folder.parent)] if folder is not None else []


def _folder(name: str | None) -> Path | None:
    return Path(name) if name else None


def _ready(peer: Any) -> Environment:
    environment = prepared(peer)
    if environment.reason != NOT_ASKED:
        print(f"{peer.name}: {environment.version or 'not measured: ' + environment.reason}", flush=True)
    return environment


def _told(name: str, rows: Iterable[Row]) -> list[Row]:
    """The rows, with a line for each while they come."""
    found = []
    for row in rows:
        found.append(row)
        what = row.get("label") or row.get("peer") or row.get("model")
        where = row.get("material") or row.get("session") or row.get("messages") or ""
        print(f"{name}: {what} {where} {row.get('error', '')}".rstrip(), flush=True)
    return found


def _said(rows: list[Row]) -> list[Row]:
    return [row for row in rows if not row["role"].startswith("_")]


def _engine(session: list[Row], folder: Path) -> list[str]:
    reports: tuple[Callable[[list[Row]], Iterable[str]], ...] = (
        facts_at_compactions,
        saved_without_a_model,
        prefix_cost,
    )
    lines = [line.strip() for report in reports for line in report(session)]
    played = recorded(_played(folder))
    return [*lines, *(line.strip() for line in recall(folder)), *(f"played by hand: {line}" for line in played)]


def _marked(
    environments: dict[str, Environment], folder: Path, scratch: Path, variants: Sequence[beside.Variant]
) -> Iterable[Row]:
    """Real sessions with facts marked by hand."""
    return replayed(environments, marked_in(folder), scratch, variants, WINDOWS_OF_REAL)


def _stepped(folder: Path | None) -> list[Recorded]:
    """Sessions to be compacted in the middle: real ones first."""
    return [*(marked_in(folder) if folder is not None else ()), *_played(folder)]


def _played(folder: Path | None) -> list[Recorded]:
    """The sessions that were played by hand."""
    return [*sessions_in(OWN), *(sessions_in(folder) if folder is not None else ())]


def _loops(options: argparse.Namespace) -> Iterable[Row]:
    for name in ("", *options.model):
        yield in_the_loop(name)


def _growth() -> Row:
    """The part on how cost grows, which is a benchmark of its own."""
    found: Row = growth(is_quick=False, say=lambda line: print(line, flush=True))
    return found


if __name__ == "__main__":
    main()
