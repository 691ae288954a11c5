"""The invented talks: every question has its answer where it says, in every language."""

from __future__ import annotations

from benchmarks.talks import talks_in_languages


def test_each_language_has_its_chat_and_questions() -> None:
    sessions, questions = talks_in_languages()
    assert len(sessions) == 10
    assert {one.kind for one in questions} == {
        *("English", "German", "French", "Spanish", "Portuguese", "Italian", "Russian", "Chinese", "Japanese", "Korean")
    }
    for number, messages in enumerate(sessions):
        asked = [one for one in questions if min(one.evidence)[0] == number]
        assert len(asked) == 20
        assert len(messages) == 160
        texts = [message.text for message in messages]
        assert all(texts.count(texts[seq - 1]) == 1 for one in asked for _, seq in one.evidence)
