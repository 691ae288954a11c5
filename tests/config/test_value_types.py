"""What each type of value accepts and refuses."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import KEYS, AdmissionSettings
from nca.config.tables import PermissionRule
from nca.config.value_types import InvalidValue, boolean, choice, number, ratio, text, texts, web_address, whole


@pytest.mark.parametrize(
    ("raw", "value"),
    [(5, 5), ("5", 5), ("80k", 80_000), ("1.5M", 1_500_000), ("80_000", 80_000), ("80,000", 80_000), (5.0, 5)],
)
def test_whole(raw: Any, value: int) -> None:
    assert whole().read(raw) == value


@pytest.mark.parametrize("raw", [0.8, 80, "80", "80%", "0.8", " 80 % "])
def test_ratio(raw: Any) -> None:
    assert ratio().read(raw) == 0.8


@pytest.mark.parametrize("raw", ["", "http://localhost:8911/v1", " HTTPS://[::1]:8/v1 ", "https://models.example"])
def test_an_address_of_the_web(raw: str) -> None:
    assert web_address().read(raw) == raw.strip()


@pytest.mark.parametrize(
    "raw",
    [
        "localhost:8911/v1",
        "//localhost/v1",
        "models.example",
        "ftp://a/v1",
        "http://",
        "http://a:99999",
        "http://a\nb",
        8,
    ],
)
def test_what_is_no_address_of_the_web(raw: Any) -> None:
    with pytest.raises(ValueError, match="not valid"):
        web_address().read(raw)


def test_a_percentage_below_10_needs_its_sign() -> None:
    written = ("2%", "1.5 %", "7.5%", 10, "10", 10.5, 1, 1.0, "1", "1%", "100%", 100)
    shares = [0.02, 0.015, 0.075, 0.1, 0.1, 0.105, 1, 1, 1, 0.01, 1, 1]
    assert [ratio().read(raw) for raw in written] == pytest.approx(shares)


@pytest.mark.parametrize("raw", [1.0001, "1.01", 1.5, 2, "2", 5, "7.5", 7.5, 9.99, " 9.999 "])
def test_a_bare_number_above_1_and_below_10_is_refused(raw: Any) -> None:
    refusal = re.escape(f" = {raw!r} is not valid; valid: a share above 0 up to 1 ")
    with pytest.raises(InvalidValue, match=refusal) as said:
        ratio().read(raw)
    assert str(said.value).endswith(f"did you mean {float(raw) / 10:g} or {float(raw):g}%?")


def test_every_share_is_read_by_the_same_kind() -> None:
    names = ("threshold", "ratio", "fraction", "usage")
    shares = [key for key in KEYS.values() if key.name.endswith(names)]
    assert len(shares) >= 8
    for key in shares:
        assert key.value_type.read("80") == key.value_type.read("80%") == 0.8
        with pytest.raises(InvalidValue):
            key.value_type.read(2)


@pytest.mark.parametrize("raw", [True, "true", "ON", "yes", "1"])
def test_boolean(raw: Any) -> None:
    assert boolean().read(raw) is True


def test_choice_and_texts() -> None:
    assert choice("on", "off", aliases={True: "on", "true": "on"}).read(" True ") == "on"
    assert texts().read("a, b") == texts().read('["a", "b"]') == ("a", "b")
    assert texts(("a",), {"old": "a"}).read(["old"]) == ("a",)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (whole(), True), (whole(), -1), (whole(), 1.5), (whole(), "-3"), (whole(), "9" * 5000), (whole(), 10**400),
        (whole(), float("nan")), (whole(), float("inf")), (whole(), None), (whole(), "k"),
        (ratio(), 0), (ratio(), 1.5), (ratio(), 2), (ratio(), 101), (ratio(), True), (ratio(), 10**400), (ratio(), "x"),
        (ratio(), "nan"), (ratio(), -0.1), (number(0, 2), "x"), (number(0, 2), True), (number(0, 2), float("nan")),
        (boolean(), 1), (boolean(), "maybe"), (text(), 5), (text(), "a\0"), (text(), "\ud800"),
        (texts(), ["\udfff"]), (texts(), [1]), (texts(("a",)), ["a", "a"]), (texts(("a",)), ["b"]), (choice("a"), []),
    ],
)  # fmt: skip
def test_what_is_refused(kind: Any, raw: Any) -> None:
    with pytest.raises(ValueError):
        kind.read(raw)


@given(
    st.sampled_from(sorted(KEYS)),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.lists(st.text() | st.none()),
)
def test_a_kind_reads_or_raises_value_error_and_reads_its_own_values_back(name: str, raw: Any) -> None:
    kind = KEYS[name].value_type
    try:
        value = kind.read(raw)
    except ValueError:
        return
    assert kind.read(value) == value


def test_a_table_of_settings_is_a_frozen_dataclass() -> None:
    one, same = AdmissionSettings(max_lines=30), dataclasses.replace(AdmissionSettings(), max_lines=30)
    assert one == same != AdmissionSettings()
    assert hash(one) == hash(same)
    assert "max_lines=30" in repr(one)
    assert copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one
    assert PermissionRule("shell", "make test") == PermissionRule(tool="shell", subject="make test")
    with pytest.raises(dataclasses.FrozenInstanceError, match="max_lines"):
        one.max_lines = 1  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="max_lines"):
        del one.max_lines
    wrong: list[tuple[Any, Any]] = [(("shell",), {"tool": "shell"}), ((), {"tol": "shell"}), (("",) * 9, {})]
    for values, named in wrong:
        with pytest.raises(TypeError, match="PermissionRule takes tool, subject"):
            PermissionRule(*values, **named)
