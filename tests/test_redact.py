"""Keys are redacted; text that only resembles one stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.redact import Redactor

SHAPED = [
    "sk-" + "a1B2" * 6,
    "sk-proj-" + "a1B2" * 10 + "_x-y",
    "sk-ant-api03-" + "a1B2" * 20 + "-AA",
    "sk-or-v1-" + "0f" * 32,
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "a1B2" * 8,
    "glpat-" + "a1B2" * 5,
    "AKIA" + "ABCD" * 4,
    "AIza" + "a1B2-" * 7,
    "hf_" + "aB" * 17,
    "gsk_" + "a1B2" * 13,
    "xai-" + "a1B2" * 20,
    "xoxb-" + "1234567890-abc",
    "sk_live_" + "a1B2" * 6,
    "npm_" + "a1B2" * 9,
    "pypi-" + "AgEI" * 20,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWhlcmU",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\ncut sho",
]
ORDINARY = [
    "sk-learn and task-management-of-everything-here",
    "a risk-assessment-for-twenty-four-characters",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "550e8400-e29b-41d4-a716-446655440000",
    "toolu_01YArVV3pPgJaZPxRmf65Zt8",
    "call_abcdefghijklmnopqrstuvwx",
    "AKIA is a prefix, hf_model and ghp_ too",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
]


@pytest.mark.parametrize("key", SHAPED)
@pytest.mark.parametrize("around", ["{}", "key={}\n", '{{"key": "{}"}}', "({})", "https://host/?key={}&x=1"])
def test_well_known_shapes_are_taken_out(key: str, around: str) -> None:
    text = Redactor().text(around.format(key))
    assert key[:20] not in text
    assert "[redacted]" in text


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor().text(text) == text


def test_known_values_go_under_their_name_the_longest_first() -> None:
    redactor = Redactor({"A_KEY": "secret-value", "B_KEY": "secret-value-longer", "SHORT": "abc", "EMPTY": ""})
    assert redactor.text("secret-value-longer, secret-value; abc") == "[redacted B_KEY], [redacted A_KEY]; abc"
    assert Redactor({"X": "a.b+c(d)"}).text("a.b+c(d) aXb+c(d)") == "[redacted X] aXb+c(d)"


def test_every_form_of_a_known_value_goes_also_where_all_stand_together() -> None:
    redactor = Redactor({"A_KEY": "secret value"})
    forms = ("secret value", "c2VjcmV0IHZhbHVl", "secret%20value")
    assert redactor.text(" ".join(forms)) == " ".join(["[redacted A_KEY]"] * 3)


def test_values_are_redacted_at_any_depth_and_not_changed_in_place() -> None:
    value = {"text": [SHAPED[0], {"more": (SHAPED[0], 1, None, True, 2.5)}], SHAPED[0]: ""}
    done = Redactor().value(value)
    assert done == {"text": ["[redacted]", {"more": ["[redacted]", 1, None, True, 2.5]}], SHAPED[0]: ""}
    assert value["text"][0] == SHAPED[0]


@given(st.text(), st.sampled_from(SHAPED))
def test_redacting_twice_changes_nothing(text: str, key: str) -> None:
    redactor = Redactor({"NAME": "known-value"})
    once = redactor.text(f"{text} {key} known-value {text}")
    assert key not in once
    assert redactor.text(once) == once


def test_an_assigned_value_is_taken_out_where_it_looks_random() -> None:
    assert Redactor().text("password = x7Kq2mB9vT4wZp1L") == "password = [redacted]"


@pytest.mark.parametrize(
    "value",
    ["aBcDeFgHiJkLmNoPqRsTuV", "aBcDeFgHiJkLmNoPqRsTu12", "1234567890-1234567", "20261121release0candidate"],
    ids=["no digits", "two digits", "one character that is no digit", "few changes"],
)
def test_an_assigned_value_that_does_not_look_random_stays(value: str) -> None:
    assert Redactor().text(f"token: {value}") == f"token: {value}"


def test_an_aws_secret_is_taken_out_whether_it_looks_random_or_not() -> None:
    value = "wJalrXUtnFEMI/KMDENGabPxRfiCYEXAMPLEKEYa"
    assert len(value) == 40
    assert Redactor().text(f"aws_secret_access_key = {value}") == "aws_secret_access_key = [redacted]"
