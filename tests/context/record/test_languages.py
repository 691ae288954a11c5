"""What code finds in ten languages: a rule, a correction, a decision, a finding, and a message that says nothing."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.record.languages import Mark, languages, marks, orders, says_nothing, sentences

SAID = {
    "English": (
        "Never edit schema.sql by hand.",
        "Actually, the port is 8431.",
        "We agreed to keep the old API.",
        "The root cause is a stale cache.",
        "ok, continue",
    ),
    "German": (
        "Die Datei schema.sql darf niemand von Hand ändern.",
        "Korrektur: der Port ist 8431.",
        "Wir haben uns entschieden, die alte Schnittstelle zu behalten.",
        "Die Ursache ist ein veralteter Zwischenspeicher.",
        "Ja, weiter!",
    ),
    "French": (
        "Il ne faut jamais modifier schema.sql à la main.",
        "En fait, le port est 8431.",
        "Nous avons décidé de garder l'ancienne interface.",
        "La cause est un cache périmé.",
        "d'accord, continue",
    ),
    "Spanish": (
        "Nunca cambies schema.sql a mano.",
        "En realidad el puerto es 8431.",
        "Hemos decidido mantener la interfaz antigua.",
        "La causa es una caché obsoleta.",
        "vale, sigue",
    ),
    "Portuguese": (
        "Nunca altere schema.sql à mão.",
        "Na verdade a porta é 8431.",
        "Decidimos manter a interface antiga.",
        "A causa é um cache antigo.",
        "certo, pode continuar",
    ),
    "Italian": (
        "Non modificare mai schema.sql a mano.",
        "In realtà la porta è 8431.",
        "Abbiamo deciso di tenere la vecchia interfaccia.",
        "La causa è una cache vecchia.",
        "va bene, continua",
    ),
    "Russian": (
        "Никогда не меняй schema.sql вручную.",
        "На самом деле порт 8431.",
        "Мы решили оставить старый интерфейс.",
        "Причина в устаревшем кэше.",
        "хорошо, дальше",
    ),
    "Chinese": (
        "不要手动修改 schema.sql。",
        "更正:端口是 8431。",
        "我们决定保留旧接口。",
        "根本原因是缓存过期。",
        "好的,继续".replace(",", ", "),
    ),
    "Japanese": (
        "schema.sql を手で変更しないでください。",
        "訂正:ポートは 8431 です。",
        "古いインターフェースを残すことに決めました。",
        "原因は古いキャッシュです。",
        "はい、続けて",
    ),
    "Korean": (
        "schema.sql을 절대 직접 수정하지 마세요.",
        "정정: 포트는 8431입니다.",
        "기존 인터페이스를 유지하기로 결정했습니다.",
        "원인은 오래된 캐시입니다.",
        "네, 계속하세요",
    ),
}
IDLE = {
    "English": (
        ("I don't know the port.", "That must be really hard!", "I've always liked Berlin.", "It was actually good."),
        "Should it always be 8431?",
        "Could you please never push?",
    ),
    "German": (
        ("Ich war noch nie in Rom.", "Das muss schön gewesen sein."),
        "Soll ich das immer tun?",
        "Kannst du nie pushen?",
    ),
    "French": (
        ("J'ai toujours aimé Rome.", "Ça doit être dur."),
        "Dois-je toujours le faire ?",
        "Peux-tu ne jamais pousser ?",
    ),
    "Spanish": (
        ("Siempre me gusta leer.", "Debe haber sido duro."),
        "¿Siempre falla?",
        "¿Puedes no usar nunca tabuladores?",
    ),
    "Portuguese": (
        ("Eu sempre gostei de ler.", "Deve ter sido difícil."),
        "Sempre falha?",
        "Você pode nunca usar tabs?",
    ),
    "Italian": (("Ho sempre amato Roma.", "Non ho mai visto Roma."), "Fallisce sempre?", "Puoi non usare mai i tab?"),
    "Russian": (("Я всегда любил читать.", "Мне нужно подумать."), "Он всегда падает?", "Можешь никогда не пушить?"),
    "Chinese": (("我总是忘记。", "这不可能。"), "它总是失败吗？", "能不能永远不要推送？"),
    "Japanese": (("いつもありがとう。", "必ずしも正しくない。"), "常に失敗しますか？", "必ずテストしてもらえますか？"),
    "Korean": (("항상 감사합니다.", "사실은 제가 몰라요."), "항상 실패하나요?", "항상 테스트해 주실래요?"),
}
"""Of each language what has a word of a rule and orders nothing, a question, and a request that is one."""
ORDERS = (
    "You must never push.",
    "I don't want to see any print calls.",
    "I always want types first.",
    "We never commit to main.",
    "If you do not know, say so.",
    "I know you should not ask, but don't touch main.",
    "Never push, ok?",
    "Every module must have a docstring, and should have a test.",
    "Must be lowercase.",
    "At least 20 formats.",
    "No, actually it is 8431.",
    "Remember to run ruff.",
    "Try to avoid globals.",
    "All throw-away scripts go to /tmp/tries, nothing of that kind in the repository.",
    "No, scratch/ is not the place for that.",
    "Alle Skripte kommen nach /tmp/tries.",
    'Commit messages begin with "survey: " and are in the past tense.',
    "Names of branches are in lower case, here and later.",
    "Write it with unittest, no pytest in this project.",
    "Write it with no emojis in the report.",
    'Commit-Nachrichten beginnen mit "survey: ".',
    "Künftig auf Deutsch.",
    "Bitte keine Emojis in diesem Bericht.",
    "Don't do that again.",
)
PLAIN = "The table below lists ports and hosts of the staging machines."


def test_every_language_has_its_sentences_here() -> None:
    assert [one["name"] for one in languages()] == list(SAID)


@pytest.mark.parametrize("language", SAID)
def test_each_language_has_rules_corrections_decisions_findings_and_fillers(language: str) -> None:
    rule, correction, decision, finding, filler = SAID[language]
    assert marks(rule, "rules")
    assert marks(correction, "corrections")
    assert marks(decision, "decisions")
    assert marks(finding, "findings")
    assert says_nothing(filler)
    assert not says_nothing(rule)


@pytest.mark.parametrize("language", SAID)
def test_a_text_is_marked_where_one_of_its_sentences_is_in_any_case(language: str) -> None:
    for sentence, mark in zip(SAID[language], get_args(Mark)[:4], strict=False):
        assert marks(f"{PLAIN} {sentence} {PLAIN}", "findings", mark)
        assert marks(sentence.upper(), mark)


@pytest.mark.parametrize("language", SAID)
def test_only_a_sentence_that_orders_or_corrects_something_does(language: str) -> None:
    rule, correction, *_ = SAID[language]
    told, question, request = IDLE[language]
    assert [one for one in (rule, correction, request) if not orders(one)] == []
    assert [one for one in (*told, question) if orders(one) or not marks(one, "rules", "corrections")] == []
    assert orders(f"{told[0].rstrip('.。')}, {rule}"), "what is told beside an order takes nothing from it"


@pytest.mark.parametrize(
    "sentence",
    ["I see no problem in the report.", "There is no error in this package.", "Es gibt keinen Fehler in dem Bericht."],
)
def test_what_is_not_there_orders_nothing(sentence: str) -> None:
    assert marks(sentence, "rules")
    assert not orders(sentence)


@pytest.mark.parametrize("sentence", ORDERS)
def test_an_order_is_one_however_it_is_said(sentence: str) -> None:
    assert orders(sentence)
    assert orders(sentence.upper())


@pytest.mark.parametrize("sentence", ["What would a release need? Do not do it.", "Don't do that yet!"])
def test_what_a_task_leaves_out_is_no_standing_order(sentence: str) -> None:
    assert not any(map(orders, sentences(sentence)))


def test_a_plain_sentence_is_none_of_them() -> None:
    assert not marks(PLAIN, "rules", "corrections", "decisions", "findings")


def test_words_of_spaced_languages_are_whole_words() -> None:
    assert not marks("The nevertheless clause of mailman.", "rules")


def test_sentences_end_as_each_script_ends_them() -> None:
    assert sentences("One. Two! 三。四？\n- five") == ["One.", "Two!", "三。", "四？", "- five"]


@pytest.mark.parametrize(
    "sentence",
    [
        "Bus 117 zählt nicht, aber nur am 4. Februar.",
        "Die Durchsicht ist am 19. Februar.",
        "2. Never touch the lock file.",
    ],
)
def test_an_ordinal_ends_no_sentence(sentence: str) -> None:
    assert sentences(f"{sentence} Next.") == [sentence, "Next."]


def test_a_name_that_ends_with_a_digit_may_end_a_sentence() -> None:
    assert sentences("The bucket is hum-7. Remember this.\nOne.\n10. Ten.") == [
        "The bucket is hum-7.",
        "Remember this.",
        "One.",
        "10. Ten.",
    ]


PLACES = re.compile(r"(?m)(?<=[.!?…])(?<!\s\d\.)(?<!\s\d\d\.)(?<!^\d\.)(?<!^\d\d\.)\s+|(?<=[。！？])\s*|\n+")
"""Where sentences end, as one would write it down; what nca searches for says the same in a quicker order."""


@given(st.text(st.sampled_from("ab12.!?…。！ \n\t"), max_size=20))
def test_sentences_end_where_the_plain_expression_says(text: str) -> None:
    assert sentences(text) == [one.strip() for one in PLACES.split(text) if one.strip()]
