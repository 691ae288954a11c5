"""Kills at random moments and at every place where the disk changes: nothing that was shown is lost.

`make soak` kills 2,000 times (NCA_SOAK_KILLS), and at each place; usually it is one in STRIDE, other ones each time.
"""

from __future__ import annotations

import copy
import os
import random
import shutil
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nca.context.file_reads import CUT_OFF
from nca.sessions import sql
from nca.sessions.log import NOT_BEGUN
from nca.sessions.store import Store
from tests.soak import homes
from tests.soak.account import Account
from tests.soak.herd import Herd, herd
from tests.soak.program import EFFECTS, STEPS
from tests.soak.zygote import Order

USUAL_KILLS = 16
KILLS = int(os.environ.get("NCA_SOAK_KILLS") or USUAL_KILLS)
STRIDE = 1 if KILLS > USUAL_KILLS else 60
KILLS_IN_A_HOME = 10
STEPS_IN_A_RUN = 5
WHOLE_RUNS = 3
"""So many go to their end: how long a run takes."""
PAUSE_SECONDS = 0.0001
pytestmark = pytest.mark.timeout(0 if KILLS > USUAL_KILLS else 900)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Herd]:
    with herd() as started:
        yield started


@pytest.fixture
def home(folder: Path) -> Path:
    return folder / "home"


def every_place(zygote: Herd, home: Path, account: Account, step: tuple[str, ...]) -> tuple[int, list[str]]:
    """Run `step` whole, then again from the same beginning for places in it, killed there. What is wrong, in lines.

    Leaves `home` and `account` as they are after the whole step.
    """
    before, after = home.with_name("before"), home.with_name("after")
    account_before = copy.deepcopy(account)
    home.mkdir(exist_ok=True)
    _replace(before, home)
    # The same names each time, so that the places are the same.
    run = "-".join(step) or "opening"
    points = zygote.run(Order(str(home), run, step), account)
    assert points
    _replace(after, home)
    problems = [f"{step}, whole: {problem}" for problem in copy.deepcopy(account).check(home)]
    seed = int(os.environ.get("NCA_SOAK_SEED") or time.time_ns())
    for point in range(1 + seed % min(STRIDE, points), points + 1, STRIDE):
        _replace(home, before)
        killed = copy.deepcopy(account_before)
        count = zygote.run(Order(str(home), run, step, kill_at=point), killed)
        assert count is None, f"{step}: place {point} of {points} was not met"
        problems += [f"{step}, killed at place {point} of {points}: {problem}" for problem in killed.check(home)]
    _replace(home, after)
    return points, problems


def _replace(target: Path, source: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def test_killed_at_any_moment(zygote: Herd, folder: Path) -> None:
    seed = int(os.environ.get("NCA_SOAK_SEED") or time.time_ns() % 10**9)
    rng = random.Random(seed)
    home, account, kills, run = folder / "0", Account(), 0, 0
    whole: list[float] = []
    while kills < KILLS:
        if run % KILLS_IN_A_HOME == 0:
            shutil.rmtree(home, ignore_errors=True)
            home, account = folder / str(run), Account()
        steps = tuple(rng.choices(STEPS, k=STEPS_IN_A_RUN))
        after = rng.uniform(0.0, statistics.mean(whole)) if len(whole) >= WHOLE_RUNS else None
        started = time.monotonic()
        number = rng.choice((signal.SIGKILL, signal.SIGQUIT))
        order = Order(str(home), f"run{run}", steps, PAUSE_SECONDS, kill_after=after, signal=number)
        points = zygote.run(order, account)
        kills += points is None
        whole += [time.monotonic() - started] if after is None else []
        problems = account.check(home)
        assert not problems, f"seed {seed}, run {run}, {steps}, {number.name} after {after}: {problems}"
        run += 1


def test_killed_at_every_place_of_the_session(zygote: Herd, home: Path) -> None:
    account, places, problems = Account(), 0, []
    for step in ((), *((step,) for step in STEPS)):
        points, found = every_place(zygote, home, account, step)
        places += points
        problems += found
    assert problems == []
    assert places > 300


@pytest.mark.parametrize("death", ["die_in_a_tool", "die_while_streaming"])
def test_killed_while_it_recovers_from_a_kill(zygote: Herd, home: Path, death: str) -> None:
    home.mkdir()
    account = Account()
    assert zygote.run(Order(str(home), "first", ("answer", death)), account) is None
    dead = copy.deepcopy(account)
    points, problems = every_place(zygote, home, account, ())
    assert problems == []
    assert points > 5
    # The account of the second process: it found what the first had left.
    assert account.sessions.keys() == dead.sessions.keys()
    with Store.open(home / "data" / "sessions.db", read_only=True) as store:
        messages = [entry.message for entry in store.copy_of(next(iter(dead.sessions))).entries]
    if death == "die_in_a_tool":
        assert messages[-3].role == "tool"
        assert not messages[-3].is_error
        assert [message.text for message in messages[-2:]] == [CUT_OFF, NOT_BEGUN]
        assert len((home / EFFECTS).read_text().split()) == 2
    else:
        assert messages[-1].is_interrupted
        assert len(messages[-1].text) > 9_980 - 4_096 - 20


@pytest.mark.parametrize(
    "begun",
    [*(lambda home, n=n: homes.of_schema(home, n) for n in range(1, len(sql.MIGRATIONS))), homes.damaged],
    ids=[*(f"schema {n}" for n in range(1, len(sql.MIGRATIONS))), "damaged"],
)
def test_killed_while_a_store_is_mended(zygote: Herd, home: Path, begun: Callable[[Path], Account]) -> None:
    account = begun(home)
    points, problems = every_place(zygote, home, account, ())
    assert problems == []
    assert points > 20
