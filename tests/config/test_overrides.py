"""The setting that a written name means, and a stage that is switched on and off."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.compat.names import FOREIGN_NAMES, ForeignName
from nca.config.extensions import STAGES
from nca.config.overrides import canonical, converted, is_section, names_ending, nearest, whole_name
from nca.config.schema import KEYS
from nca.errors import ConfigError

ENDS = Counter(".".join(key.split(".")[at:]) for key in KEYS for at in range(1, key.count(".") + 1))
FOREIGN = [(name, one) for one in FOREIGN_NAMES for name in one.names]


@given(st.sampled_from(list(KEYS)), st.sampled_from([str, str.upper, str.title]), st.sampled_from(["{}", " {}\t"]))
def test_nca_s_own_name_in_any_case_and_with_blanks_is_itself(key: str, case: Any, around: str) -> None:
    found = canonical(around.format(case(key)))
    assert found is not None
    assert (found.key, found.foreign) == (key, None)


@given(st.sampled_from(FOREIGN), st.sampled_from([str, str.upper, lambda name: name.replace("_", "-")]))
def test_another_program_s_name_is_nca_s_key(pair: tuple[str, ForeignName], spelling: Any) -> None:
    name, foreign = pair
    if name.lower() in KEYS:
        return
    found = canonical(spelling(name))
    assert found is not None
    assert (found.key, found.foreign) == (foreign.key, foreign)


@pytest.mark.parametrize("end", list(ENDS))
def test_the_end_of_a_name_is_enough_where_one_setting_has_it(end: str) -> None:
    typed = f" {end.upper().replace('_', '-')} "
    having = [key for key in KEYS if key.endswith(f".{end}")]
    assert names_ending(typed) == having
    if canonical(typed) is not None:
        assert whole_name(typed) == typed
    elif ENDS[end] == 1:
        assert whole_name(typed) == having[0]
    else:
        with pytest.raises(ConfigError) as refused:
            whole_name(typed)
        assert f"{typed.strip()} could be any of {', '.join(having)}." in refused.value.message


def test_a_name_that_nothing_has_comes_back_and_has_none_near() -> None:
    assert whole_name("zzz.nothing") == "zzz.nothing"
    assert nearest("zzz.nothing") is None
    assert names_ending("") == []


def test_sections_are_the_tables_around_settings() -> None:
    tables = {key[:at] for key in KEYS for at, char in enumerate(key) if char == "."}
    assert all(is_section(f" {table.upper().replace('_', '-')} ") for table in tables)
    assert not any(is_section(key) for key in KEYS if key not in tables)
    assert not is_section("zzz")


@given(st.permutations(STAGES), st.integers(0, len(STAGES)), st.sampled_from(STAGES))
def test_a_stage_goes_alone_and_comes_back_before_those_that_usually_follow(
    order: list[str], count: int, stage: str
) -> None:
    switch = ForeignName(("x",), "context.stages", stage=stage)
    current = tuple(order[:count])
    off, on = converted(switch, False, current), converted(switch, True, current)
    assert off == tuple(one for one in current if one != stage)
    assert tuple(one for one in on if one != stage) == off
    assert on.count(stage) == 1
    if stage in current:
        assert on == current
        return
    followers = STAGES[STAGES.index(stage) + 1 :]
    place = on.index(stage)
    assert not any(one in followers for one in on[:place])
    assert place == len(on) - 1 or on[place + 1] in followers


def test_other_values_are_converted_or_stay() -> None:
    assert converted(ForeignName(("x",), "k"), [1], "now") == [1]
    assert converted(ForeignName(("x",), "k", lambda value: value * 2), 4, "now") == 8
