"""Keys are redacted; text that only resembles one stays."""

from __future__ import annotations

import base64
import os
from itertools import groupby
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nca.redact import FEWEST_CHARS, Redactor

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
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQdG\n-----END PGP PRIVATE KEY BLOCK-----",
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
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQdG\n-----END PGP PUBLIC KEY BLOCK-----",
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


@given(st.binary(min_size=FEWEST_CHARS).filter(lambda raw: len(os.fsdecode(raw)) >= FEWEST_CHARS))
@example(b"caf\xe9-secret-1")
@example("a \u20ac b c d".encode()[:-1])
def test_a_known_value_of_any_bytes_is_redacted_however_they_are_read(raw: bytes) -> None:
    value = os.fsdecode(raw)
    redactor = Redactor({"NAME": value})
    for shown in (value, raw.decode("utf-8", "replace"), quote(raw), base64.b64encode(raw).decode()):
        assert redactor.text(shown).rstrip("=") == "[redacted NAME]"
        assert redactor.clean(shown).rstrip("=") == "[redacted NAME]"


def test_a_surrogate_that_stands_for_no_byte_is_no_error() -> None:
    assert Redactor({"NAME": "caf\ud800-secret"}).clean("caf\ud800-secret") == "[redacted NAME]"


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
    "name", ["PASSWORD=", "DB_PASS=", 'password: "', '"passwd": "', "--password ", "passphrase = "]
)
@pytest.mark.parametrize("value", ["Zx9kQ2vLm8Rt4", "kT8#vP2!mQ9x", "a1-b2-c3"])
def test_a_password_is_shorter_than_a_key_and_of_any_characters(name: str, value: str) -> None:
    assert Redactor().text(f"{name}{value}\n") == f"{name}[redacted]\n"
    assert Redactor().text(f'{name}{value}", b') == f'{name}[redacted]", b'


@pytest.mark.parametrize(
    "text",
    [
        "password_encryption = scram-sha-256",
        "password = a1-b2-c",
        "password = get_2_or_3_of(4)",
        "PASSWORD=$DB_1_PW_2_3",
        "--- PASS: Test1a2b3c4d (0.00s)",
        "the password is Summer2024!",
        "pass 1a2b3c4d5",
    ],
)
def test_what_only_stands_near_the_word_password_stays(text: str) -> None:
    assert Redactor().text(text) == text


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


@pytest.mark.parametrize(
    "address",
    [
        "postgres://ann:{}@host/db",
        "see https://{{}}@host, and https://ann:{}@host:8080/path?x=1.",
        "redis://:{}@host",
        '"url": "amqp://ann.b+c%40d:{}@host"',
    ],
)
@pytest.mark.parametrize("password", ["abcd", "s3cret-99!", "p:w:d#9", "a" * 2_000])
def test_a_password_in_an_address_is_taken_out_and_the_rest_stays(address: str, password: str) -> None:
    assert Redactor().text(address.format(password)) == address.format("[redacted]")


@pytest.mark.parametrize(
    "text",
    [
        "https://host:8080/path",
        "https://ann@host",
        "https://ann:abc@host",
        *(f"https://ann:{word}@host" for word in ("pass", "passwd", "password", "pwd", "secret")),
        *(
            f"https://ann:{word}@host"
            for word in ("$PASSWORD", "${PASSWORD}", "%PASSWORD%", "{password}", "<password>")
        ),
        "https://host/a:bcdef/x@y",
        "ann:abcdef@host",
    ],
)
def test_an_address_without_a_password_stays(text: str) -> None:
    assert Redactor().text(text) == text


RANDOM = "x7Kq2mB9vT4wZp1L"
NAMES = [
    "api_key",
    "APIKEY",
    "client_secret",
    "AUTH_TOKEN",
    "passwd",
    "db-password",
    "credential",
    "private_key",
    "Bearer",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sign", ["=", ": ", " = ", " => ", '": "', "='", " "])
def test_a_random_value_is_taken_out_behind_any_name_and_sign(name: str, sign: str) -> None:
    assert Redactor().text(f"a {name}{sign}{RANDOM}, b") == f"a {name}{sign}[redacted], b"


@pytest.mark.parametrize("text", [f"Authorization: Bearer {RANDOM}", f"authorization=Basic {RANDOM}"])
def test_the_kind_of_an_authorization_stays(text: str) -> None:
    assert Redactor().text(text) == text.replace(RANDOM, "[redacted]")


@pytest.mark.parametrize(
    "text", [f"name = {RANDOM}", f"token: {RANDOM[:15]}", f"token = {RANDOM}(1)", f"token = {RANDOM}[0]"]
)
def test_other_names_short_values_and_code_stay(text: str) -> None:
    assert Redactor().text(text) == text


@given(st.integers(16, 3_000), st.sampled_from(["x7Kq2mB9vT4wZp1L", "0f3a9c5e7b1d", "a1B2/c3D4+"]))
@example(4_096, "x7Kq2mB9vT4wZp1L")
def test_a_random_value_of_any_length_is_taken_out_whole(length: int, pattern: str) -> None:
    value = (pattern * length)[:length]
    for name in ("API_TOKEN=", '"access_token": "', "password="):
        assert Redactor().text(f"{name}{value}\n") == f"{name}[redacted]\n"


def test_what_stands_before_a_placeholder_is_no_code() -> None:
    text = f"token={RANDOM}/{SHAPED[0]} password={RANDOM}/{SHAPED[0]}"
    assert Redactor().text(text) == "token=[redacted][redacted] password=[redacted][redacted]"


@pytest.mark.parametrize(
    "piece", ["token=", "token ", "token-", "pass=", "password ", "://a:b", "-----BEGIN PRIVATE KEY "]
)
@pytest.mark.parametrize("end", ["", "("])
def test_a_long_text_of_beginnings_takes_linear_time(piece: str, end: str) -> None:
    """Quadratic time would last for minutes."""
    text = piece * (400_000 // len(piece)) + end
    assert Redactor().text(text) == text


@given(st.lists(st.sampled_from(["7", "12", "345", "a", "bc", "def", "X", "YZ", "-", "_"]), min_size=3, max_size=24))
def test_a_value_is_random_where_its_characters_change_their_kind_often(pieces: list[str]) -> None:
    value = "".join(pieces)
    kinds = [
        "digit" if char.isdigit() else "upper" if char.isupper() else "lower" if char.islower() else ""
        for char in value
    ]
    digits = kinds.count("digit")
    changes = len(list(groupby(kinds))) - 1
    is_random = len(value) >= 16 and 3 <= digits <= len(value) - 3 and changes >= 0.3 * len(value)
    assert (Redactor().text(f"token={value};") == "token=[redacted];") == is_random


@pytest.mark.parametrize(
    ("value", "is_random"),
    [
        ("aaaa1aaaa2aaaa3aaaaa", True),  # 6 changes in 20 characters, 3 digits
        ("aaaa1aaaa2aaaa3aaaaaa", False),  # in 21
        ("1-1111a1111b11111111", True),  # a sign is one of them
        ("1a1111a1111a11111111", True),  # 3 characters that are no digit
        ("1a1111a1111111111111", False),  # 2
    ],
)
def test_the_least_that_is_random(value: str, is_random: bool) -> None:
    assert (Redactor().text(f"token={value}") == "token=[redacted]") == is_random


@pytest.mark.parametrize("length", [FEWEST_CHARS - 1, FEWEST_CHARS])
def test_a_known_value_counts_from_its_shortest_length_on(length: int) -> None:
    value = "q!w?e.r/t,y"[:length]
    shown = "[redacted NAME]" if length >= FEWEST_CHARS else value
    assert Redactor({"NAME": value}).text(f"<{value}>") == f"<{shown}>"


def test_a_secret_that_has_another_length_than_amazon_s_is_looked_at_as_any_other() -> None:
    for length in (39, 41):
        text = f"secret_access_key = {'wJalrXUtnFEMIKMDENGabPxRfiCYEXAMPLEKEYabcdef'[:length]}"
        assert Redactor().text(text) == text


def test_what_a_file_brought_is_valid_unicode_without_keys() -> None:
    assert Redactor().clean(f"a\ud800 {SHAPED[0]}") == "a\ufffd [redacted]"
