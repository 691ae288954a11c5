"""Texts that differ never look the same once they are written out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nca.humanize import unambiguous, written_out

strange = st.text(
    st.sampled_from(
        [
            *"a e⟨⟩U+202E\n\t\r\x1b\x07\x7f\x9b\u00a0\u00ad\u200b\u200d",
            *"\u2028\u202e\u2066\u3000\ufeff\ufe0f\ufff9\u2800\u3164",
            *(
                "é",
                "\u0301",
                "\u0323",
                "\u0316",
                "\u212b",
                "\u1100",
                "\u1161",
                "\u11a8",
                "\U000e0041",
                "\ud83d",
                "\ue000",
            ),
        ]
    )
    | st.characters(),
    max_size=12,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain Ünïcode 日本 🙂\n", "plain Ünïcode 日本 🙂\n"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("echo two \x1b]; touch X; : \x07", "echo two ⟨U+001B⟩]; touch X; : ⟨U+0007⟩"),
        ("a\U000e0041\u200b\rb\u2800", "a⟨U+E0041⟩⟨U+200B⟩⟨U+000D⟩b⟨U+2800⟩"),
        ("⟨U+202E⟩", "⟨U+27E8⟩U+202E⟩"),
        ("e\u0301 is é", "e⟨U+0301⟩ is é"),
        ("a\u0316\u0301 q\u0301", "a\u0316⟨U+0301⟩ q\u0301"),
        ("\ud83d", "⟨U+D83D⟩"),
        ("p\u0430yp\u0430l \u043es.system", "p⟨U+0430⟩yp⟨U+0430⟩l ⟨U+043E⟩s.system"),
        ("\u0441\u043e\u0440y", "⟨U+0441⟩⟨U+043E⟩⟨U+0440⟩y"),
        ("Привет, а это Δx и λ(x), 5 µm", "Привет, а это Δx и λ(x), 5 µm"),
        ("import \u0441\u043e\u0440\u0443  # \u043f\u043e", "import ⟨U+0441⟩⟨U+043E⟩⟨U+0440⟩⟨U+0443⟩  # по"),
        ("\u0430 = \u0441.\u0435", "⟨U+0430⟩ = ⟨U+0441⟩.⟨U+0435⟩"),
        (
            "А у нас, в СССР, со временем.\nА. С. Пушкин, ο άνθρωπος",
            "А у нас, в СССР, со временем.\nА. С. Пушкин, ο άνθρωπος",
        ),
        *((text, text) for text in ('"хто сказав": "Х"', "['А', 'Б', 'В']", "'лип.': 7, 'сер.': 8", "А1;так")),
        ("# хто\nimport \u0441\u043e\u0440\u0443", "# хто\nimport ⟨U+0441⟩⟨U+043E⟩⟨U+0440⟩⟨U+0443⟩"),
        ("cp \u043e\u0440\u0435 x  # хто", "cp ⟨U+043E⟩⟨U+0440⟩⟨U+0435⟩ x  # хто"),
        ("def \u0441\u043e\u0440\u0443():  # хто", "def ⟨U+0441⟩⟨U+043E⟩⟨U+0440⟩⟨U+0443⟩():  # хто"),
        # Words that look Latin as a whole are words in prose of their own script.
        *((text, text) for text in ("# ΝΟΜΑΡΧΙΑ\nΗ **ΝΟΜΑΡΧΙΑ** ΝΕΑΣ\nΤο έγγραφο", "Το Python API είναι έτοιμο")),
        *(
            (text, text)
            for text in ("Но API меняется: СОР", "| СОР | 5 |\n| ТЕСТ | 6 |\nНичего", "Не Python, а Rust или С")
        ),
        *((text, text) for text in ("Ово је API, а то Python", "Το `laws.py` διαβάζει", "І Python, і СОР уже є")),
        (
            "+++ b/GR.md\n+# ΝΟΜΑΡΧΙΑ\n+\n+Το Python API είναι ok",
            "+++ b/GR.md\n+# ΝΟΜΑΡΧΙΑ\n+\n+Το Python API είναι ok",
        ),
        ("x = оре  # хто", "x = ⟨U+043E⟩⟨U+0440⟩⟨U+0435⟩  # хто"),
        ("x (оре(1))  # хто", "x (⟨U+043E⟩⟨U+0440⟩⟨U+0435⟩(1))  # хто"),
        ("+++ сору.py\n+Всё о файле сору.py", "+++ ⟨U+0441⟩⟨U+043E⟩⟨U+0440⟩⟨U+0443⟩.py\n+Всё о файле сору.py"),
        ("see /home/СОР/x and СОР", "see /home/⟨U+0421⟩⟨U+041E⟩⟨U+0420⟩/x and ⟨U+0421⟩⟨U+041E⟩⟨U+0420⟩"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert unambiguous(text) == shown


@given(strange, strange)
@settings(max_examples=1_000)
def test_different_texts_look_different_to_a_font_that_merges_marks_too(one: str, other: str) -> None:
    shown = unambiguous(one), unambiguous(other)
    assert shown[0].replace("\n", "").isprintable()
    assert (unicodedata.normalize("NFC", shown[0]) == unicodedata.normalize("NFC", shown[1])) == (one == other)
    assert written_out(shown[0]) == shown[0]


@pytest.mark.parametrize(
    ("command", "is_masked"),
    [
        ("сору a b  # это длинная заметка", True),
        ("cp 'оре' x  # это длинная заметка", True),
        ("python сору.py -m 'это'", True),
        ("git commit -m 'Το API αλλάζει'", False),
        ("git commit -m 'Но API меняется'", False),
    ],
)
def test_a_comment_excuses_no_name_in_a_command(command: str, is_masked: bool) -> None:
    assert (unambiguous(command, is_command=True) != command) == is_masked


def test_what_is_kept_stays() -> None:
    assert written_out("a\tb\r\n", kept="\n\t") == "a\tb⟨U+000D⟩\n"


def test_many_lines_of_words_that_look_latin_are_read_once() -> None:
    """A file of them is looked at line by line; each line once more for each of them would take minutes."""
    lines = ["ΑΑΑ", "Το δρομολόγιο", "ΑΑΑ", "ΑΑΑ", "plain", "ΑΑΑ"] + ["ΑΑΑ"] * 60_000
    shown = written_out("\n".join(lines)).split("\n")
    assert [place for place, (before, after) in enumerate(zip(lines, shown, strict=True)) if before == after] == [
        *range(5)
    ], "beside a line of their own script they are words"
