"""What search knows about languages: stop words of the question's, and irregular forms and near words in English."""

from __future__ import annotations

import pytest

from nca.messages import Message
from nca.sessions import Session
from nca.sessions.query import irregular_forms, near_words, stop_phrases, stop_words, terms_of


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("what did he say about the violin", {"violin"}),
        ("was habe ich über die Geige gesagt", {"geige"}),
        ("qu est ce que je t ai dit sur le violon", {"violon"}),
        ("qué es lo que dije sobre el violín", {"violín"}),
        ("o que é que eu disse sobre o violino", {"violino"}),
        ("che cosa ho detto del violino", {"violino"}),
        ("что я говорил про скрипку", {"скрипку"}),
    ],
)
def test_stop_words_of_the_language_are_ignored(question: str, left: set[str]) -> None:
    words = question.lower().split()
    assert set(words) - stop_words(words) == left


@pytest.mark.parametrize("question", ["war museum", "son", "what did his son say about the war", "die casting"])
def test_words_that_only_another_language_ignores_count(question: str) -> None:
    assert not {"war", "son", "die"} & stop_words(question.split())


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("我们在什么地方用字体", "用字体"),
        ("フォントはどこで使いますか", "フォント使"),
        ("글꼴은 어디에서", "글꼴은 "),
    ],
)
def test_stop_phrases_are_found_inside_a_run(question: str, left: str) -> None:
    assert stop_phrases().sub("", question) == left


@pytest.mark.parametrize(
    ("word", "form"), [("went", "go"), ("goes", "gone"), ("buying", "bought"), ("child", "children")]
)
def test_irregular_forms(word: str, form: str) -> None:
    assert form in irregular_forms(word)
    assert word not in irregular_forms(word)


def test_a_regular_word_has_no_irregular_forms() -> None:
    assert irregular_forms("walrus") == irregular_forms("") == ()


@pytest.mark.parametrize(
    ("word", "near"), [("movie", "film"), ("movies", "cinema"), ("cat", "kitten"), ("cat", "pet"), ("hiking", "trail")]
)
def test_near_words(word: str, near: str) -> None:
    assert near in near_words(word)
    assert word not in near_words(word)


def test_a_word_without_near_words_has_none() -> None:
    assert near_words("walrus") == near_words("") == ()


def test_a_near_word_finds_what_the_question_says_differently(session: Session) -> None:
    session.log.append(
        [Message("user", "We watched a film by the lake."), Message("user", "The walrus is by the lake.")]
    )
    assert session.search("which movie", 1)[0].seq == 1


def test_the_word_itself_counts_more_than_a_near_word(session: Session) -> None:
    session.log.append([Message("user", "A film by the lake."), Message("user", "A movie by the lake.")])
    assert session.search("which movie", 1)[0].seq == 2


def test_a_question_of_stop_words_alone_asks_for_them() -> None:
    for question in ("what is it", "什么", "was ist das denn"):
        assert terms_of(question)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("Was habe ich zu den Übersetzungen gesagt?", "Jonas hat die Übersetzung übernommen."),
        ("¿Quién se encarga de la traducción?", "Jonas hace las traducciones."),
        ("Кто отвечает за переводы?", "Йонас забрал переводов немало."),
    ],
)
def test_words_of_one_stem_are_found_by_their_beginning(session: Session, asked: str, said: str) -> None:
    session.log.append([Message("user", said), Message("assistant", "Gut. Vale. Хорошо.")])
    assert session.search(asked, 1)[0].seq == 1


@pytest.mark.parametrize(
    "asked",
    [
        "¿Qué es lo que hay detrás de NCA-3187?",
        "Was ist denn mit NCA-3187?",
        "NCA-3187 是怎么回事?",
        "NCA-3187は何ですか?",
        "NCA-3187은 무엇인가요?",
    ],
)
def test_a_question_finds_what_was_said_in_another_language(session: Session, asked: str) -> None:
    noise = [
        "¿Qué es lo que hay que hacer ahora?",
        "Was ist denn das?",
        "这是怎么回事?",
        "これは何ですか?",
        "이것은 무엇인가요?",
    ]
    session.log.append([Message("assistant", text) for text in noise * 3])
    session.log.append([Message("user", "Ticket NCA-3187 is caused by the retry loop.")])
    assert session.search(asked, 1)[0].seq == len(noise) * 3 + 1


def test_a_name_or_number_of_the_question_weighs_more_than_other_words() -> None:
    weights = {term.phrases[0].text: term.weight for term in terms_of("Which sandwich did Karin order on floor 12?")}
    assert weights["karin"] == weights["12"] > weights["sandwich"] == weights["floor"]
