"""The laws of what a model sees after a compaction, tried on generated sessions.

Each law looks at a session as it was compacted and says what is wrong, one line each. They know the record by its
headings alone, and look for tokens in it.

    python -m tests.context.laws 20000 [FIRST_SEED]

prints how many of so many sessions break which law.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import NamedTuple

from nca.context.record.past import is_answer
from nca.context.tokens import message_tokens, text_tokens
from nca.context.view import Marker, Summary, Verbatim
from nca.messages import Message
from tests.context.generated_sessions import SHORT_CHARS, session
from tests.context.trials import TOKEN, Outcome, Trial, fixed_tokens, given, in_library, newest_user, text_of_row

SAID, ANSWERED, DONE = "What the user said", "What you answered", "What was done after the last answer"
CHANGED, FAILED = "What was done and changed", "Calls with errors, not made again"
RAN, NAMES = "What was run and read", "Names that came up"
SECTIONS = (SAID, ANSWERED, DONE, CHANGED, FAILED, RAN, NAMES)
CLAIM = "What the user said holds"
"""How a record begins that has something of each message of the person."""
NUMBER = re.compile(r"\s*(?:[-*•]\s+)?\((\d+)\)")
RECALL = re.compile(r"recall expand=(\d+)(?:-(\d+))?")
ASSERTED = re.compile(r"\b(?:fixed|passed)\b", re.IGNORECASE)
"""Words that no generated text has."""
BOOKED = re.compile(r'\A\{"ref": .*"number": (\d+)\}\Z')
"""What a call with an effect elsewhere brings back."""
SHORT_FORM_TOKENS = 110
BEGINNING_CHARS = 24
"""A message of which so much can be read is there, if shortened."""
SHORT_FORMS_RATIO, DONE_RATIO = 2 / 3, 0.1
"""Of the room: what the short forms of all words need before one may be missing; what is done and changed has then."""
NEEDED_RATIO, NEWEST_RATIO = 1 / 3, 0.3
"""Of the room: the most that the short forms of all words, and new results, need where all of these are there."""
ROOM_FOR_ANSWER = 600
"""Tokens, in which the beginning of an answer has room beside the person's words."""
FILLED_RATIO = 0.95
LOOP_RATIO = 0.02
"""The library in a loop may keep so much less: it has no log, so what had no room once is gone."""
Law = Callable[[Trial], Iterator[str]]


def words_stay(trial: Trial) -> Iterator[str]:
    """1. While a short message of the person is missing, nothing of less worth is there."""
    for outcome in trial.outcomes():
        shown, sections, newest = outcome.shown, outcome.sections, newest_user(outcome.messages)
        yield from (f"a section that the laws do not know: {heading}" for heading in sections.keys() - set(SECTIONS))
        typed = [said for said in outcome.said if said.by == "typed" and said.message != newest]
        text = squeezed("\n".join(map(text_of_row, outcome.rows)))
        begun = {said.token: beginnings(outcome.messages[said.message - 1]) for said in typed}
        short = [said for said in typed if said.chars <= SHORT_CHARS and said.token not in shown]
        missing = [said for said in short if not any(one in text for one in begun[said.token])]
        if not missing:
            continue
        which = f"{len(missing)} of {len(typed)} messages are missing, such as {missing[0].message},"
        # A newest message that is cut leaves more room than it would whole.
        room = max(outcome.target_tokens - outcome.fixed_tokens, sum(map(text_tokens, outcome.records)))
        yield from (f"{which} beside the section {heading}" for heading in (RAN, NAMES) if sections.get(heading))
        yield from (f"{which} beside the older result {seq}" for seq in older_results(outcome)[:1])
        others = sum(text_tokens(entry) for name in (DONE, CHANGED, FAILED) for entry in sections.get(name, ()))
        if others > DONE_RATIO * max(0, room):
            yield f"{which} beside {others} tokens of what was done, of {room}"
        needed = sum(min(SHORT_FORM_TOKENS, text_tokens(outcome.messages[said.message - 1].text)) for said in typed)
        if needed <= SHORT_FORMS_RATIO * room:
            yield f"{which} though all need {needed} tokens of {room}"


def beginnings(message: Message) -> tuple[str, str]:
    """How what was typed begins, and the whole: what was pasted may stand before it, which nobody can tell in rows."""
    typed = "".join(span.text for span in message.said if span.source == "typed")
    return squeezed(typed)[:BEGINNING_CHARS], squeezed(message.text)[:BEGINNING_CHARS]


def squeezed(text: str) -> str:
    """On one line: a record indents the lines of a message."""
    return " ".join(text.split())


def older_results(outcome: Outcome) -> list[int]:
    """The results of all but the newest step that are shown as they are."""
    starts = [seq for seq, message in enumerate(outcome.messages, 1) if message.role == "assistant"]
    tail = [Verbatim(outcome.view.tail, len(outcome.messages))] if outcome.has_recall else []
    runs = [item for item in (*outcome.view.items, *tail) if isinstance(item, Verbatim)]
    seqs = (seq for run in runs for seq in range(run.first, min(run.last + 1, starts[-1])))
    return [seq for seq in seqs if outcome.messages[seq - 1].role == "tool"]


def no_empty_room(trial: Trial) -> Iterator[str]:
    """2. What is left out is left out for want of room; nothing that fits is refused."""
    for outcome in trial.outcomes():
        most = outcome.target_tokens if outcome.fixed_tokens <= outcome.target_tokens else outcome.budget_tokens
        if not FILLED_RATIO * outcome.target_tokens <= outcome.after_tokens <= most:
            yield f"{outcome.after_tokens} tokens for a target of {outcome.target_tokens}"
    for one in (trial.chat, trial.library, *trial.rooms):
        if one is not None and not one.compacted and one.after_tokens > one.budget_tokens:
            yield f"left as it is, with {one.after_tokens} tokens for a budget of {one.budget_tokens}"
    budget = trial.budget.budget_tokens
    fixed = fixed_tokens(trial.made.messages, budget)
    if (trial.chat is None or trial.library is None) and fixed <= budget // 2:
        yield f"refused, though only {fixed} of {budget} tokens cannot be compacted"


def more_room_loses_nothing(trial: Trial) -> Iterator[str]:
    """3. What a smaller room shows, a larger one shows too."""
    small, large = trial.rooms
    if small is None or large is None:
        return
    lost = defaultdict[str, list[str]](list)
    gone = small.shown - large.shown
    for said in small.said:
        if said.token in gone and (said.by in ("typed", "effect") or (said.by == "answer" and said.is_first)):
            lost[said.by].append(said.token)
    yield from (f"{len(tokens)} ({by}) are lost with more room, such as {tokens[0]}" for by, tokens in lost.items())


def same_log_same_bytes(trial: Trial) -> Iterator[str]:
    """4. Nothing depends on earlier compactions; twice is once."""
    chat, before, outcome = trial.continued
    once = trial.chat
    if once is not None and once.compacted and before > once.target_tokens:
        if outcome is None:
            yield "refused after other compactions"
        elif outcome.rows != once.rows:
            yield f"another request after other compactions ({outcome.after_tokens} tokens, not {once.after_tokens})"
    if outcome is not None:
        again = chat.compact()
        if again is None or again.rows != outcome.rows:
            yield "the chat's second compaction changes something"
    grown = trial.grown
    if once is not None and grown is not None and grown.compacted and grown.rows != once.rows:
        yield f"another request after a smaller window ({grown.after_tokens} tokens, not {once.after_tokens})"
    if trial.library is not None:
        second = in_library(trial.made, trial.library.rows)
        if second is None or second.rows != trial.library.rows:
            yield "the library's second compaction changes something"


def true_numbers(trial: Trial) -> Iterator[str]:
    """5. A number is that of the message which says what stands behind it; without `recall` there is none."""
    if trial.chat is not None:
        places = places_of(trial.chat.messages)
        for entry in (entry for entries in trial.chat.sections.values() for entry in entries):
            number = NUMBER.match(entry)
            wrong = [token for token in TOKEN.findall(entry) if number and int(number[1]) not in places[token]]
            yield from (f"{token} stands behind {number}, and in {places[token]}" for token in wrong[:1])
        named = (
            int(number) for text in trial.chat.own_texts for pair in RECALL.findall(text) for number in pair if number
        )
        yield from (f"message {number} is not there" for number in named if not 1 <= number <= len(trial.made.messages))
    for outcome in (trial.library, trial.looped):
        if outcome is not None and outcome.compacted:
            lines = [line for text in outcome.own_texts for line in text.splitlines()]
            yield from [f"a number that leads nowhere: {line[:60]}" for line in lines if NUMBER.match(line)][:1]
            yield from [
                f"recall is named: {row['content'][:60]}" for row in outcome.rows if "recall" in text_of_row(row)
            ][:1]


def places_of(messages: tuple[Message, ...]) -> dict[str, set[int]]:
    """The messages of each token. A call and its result are one: either number leads to both."""
    found = defaultdict[str, set[int]](set)
    for call in calls_of(messages):
        for token in TOKEN.findall(f"{given(call.arguments)} {call.result}"):
            found[token] |= {call.seq, call.result_seq}
    for seq, message in enumerate(messages, 1):
        for token in TOKEN.findall(message.text):
            found[token].add(seq)
    return found


class Called(NamedTuple):
    """A call of the log, and what came back."""

    seq: int
    result_seq: int
    name: str
    arguments: str
    result: str
    is_error: bool


def calls_of(messages: tuple[Message, ...]) -> list[Called]:
    asked = {call.id: (seq, call) for seq, message in enumerate(messages, 1) for call in message.tool_calls}
    found: list[Called] = []
    for seq, message in enumerate(messages, 1):
        if message.role == "tool":
            place, call = asked[message.tool_call_id]
            found.append(Called(place, seq, call.name, call.arguments, message.text, message.is_error))
    return found


def nothing_asserted(trial: Trial) -> Iterator[str]:
    """6. What fails, and what came to nothing, the log shows; nothing is said to be fixed or passed."""
    for outcome in trial.outcomes():
        calls = calls_of(outcome.messages)
        newest = {(call.name, call.arguments): call for call in calls}
        yield from (
            f"is said to fail: {entry[:80]}"
            for entry in outcome.sections.get(FAILED, ())
            if not any(newest[call.name, call.arguments].is_error for call in calls_in(entry, calls))
        )
        entries = [entry for name in (DONE, CHANGED, FAILED, RAN) for entry in outcome.sections.get(name, ())]
        yield from (
            f"is said to be empty: {entry[:80]}"
            for entry in entries
            if "nothing" in entry.lower() and not any(not call.result.strip() for call in calls_in(entry, calls))
        )
        for text in outcome.own_texts:
            yield from (f"{found[0]!r} is said" for found in [ASSERTED.search(text)] if found)


def calls_in(entry: str, calls: list[Called]) -> list[Called]:
    """The calls that an entry can be about: by what was asked, else by what came back, else by its number."""
    tokens, number = set(TOKEN.findall(entry)), NUMBER.match(entry)
    return (
        [call for call in calls if tokens & set(TOKEN.findall(given(call.arguments)))]
        or [call for call in calls if tokens & set(TOKEN.findall(call.result))]
        or [call for call in calls if number and int(number[1]) in (call.seq, call.result_seq)]
    )


def last_version_wins(trial: Trial) -> Iterator[str]:
    """7. An older version of a text is never there without the newest."""
    for outcome in trial.outcomes():
        shown = outcome.shown
        for *older, newest in trial.made.versions:
            if newest not in shown and shown.intersection(older):
                yield f"version {len(older) + 1} ({newest}) is missing, an older one is there"


def nothing_grows(trial: Trial) -> Iterator[str]:
    """8. What a compaction stores is at most its room."""
    for outcome in (*trial.outcomes(), trial.continued[2]):
        if outcome is not None and outcome.compacted:
            stored = sum(map(text_tokens, outcome.records))
            if stored > outcome.target_tokens:
                yield f"{stored} tokens are stored for a target of {outcome.target_tokens}"


def whose_words(trial: Trial) -> Iterator[str]:
    """9. What the person did not type is not called their words."""
    for outcome in trial.outcomes():
        by = {said.token: said.by for said in outcome.said}
        for entry in outcome.sections.get(SAID, ()):
            speakers = {by.get(token, "typed") for token in TOKEN.findall(entry)} - {"typed"}
            if "pasted" in entry.lower():
                speakers -= {"pasted"}
            yield from (f"{speaker} stands as the person's words: {entry[:80]}" for speaker in speakers)


def answer_before(trial: Trial) -> Iterator[str]:
    """10. The newest message stands beside the answer that it answers, or beside that one's newer version."""
    for outcome in trial.outcomes():
        newest, before = newest_user(outcome.messages), outcome.messages[: newest_user(outcome.messages) - 1]
        room = outcome.target_tokens - outcome.fixed_tokens
        if not before or not is_answer(before[-1]) or room < ROOM_FOR_ANSWER:
            continue
        begun = squeezed(before[-1].text)[:BEGINNING_CHARS]
        versions = {token for tokens in trial.made.versions for token in tokens}
        is_version = bool(versions & set(TOKEN.findall(before[-1].text)))
        if not is_version and begun not in squeezed("\n".join(map(text_of_row, outcome.rows))):
            yield f"the answer {newest - 1} is missing in a room of {room}"


def unseen_is_whole(trial: Trial) -> Iterator[str]:
    """11. Results that the model has not seen are whole where they need no large part of the room."""
    for outcome in trial.outcomes():
        results = list(takewhile(lambda message: message.role == "tool", reversed(outcome.messages)))
        typed = [outcome.messages[said.message - 1] for said in outcome.said if said.by == "typed"]
        room = outcome.target_tokens - outcome.fixed_tokens
        needed = sum(min(SHORT_FORM_TOKENS, text_tokens(message.text)) for message in typed)
        if not results or needed > NEEDED_RATIO * room or sum(map(message_tokens, results)) > NEWEST_RATIO * room:
            continue
        shown = {text_of_row(row) for row in outcome.rows}
        cut = [message for message in results if message.text.strip() and message.text not in shown]
        yield from (f"a result of {message_tokens(message)} tokens is cut in a room of {room}" for message in cut[:1])


def says_what_is_missing(trial: Trial) -> Iterator[str]:
    """12. A record that lacks a message of the person does not begin as one that has all."""
    for outcome in trial.outcomes():
        text = squeezed("\n".join(map(text_of_row, outcome.rows)))
        typed = [said for said in outcome.said if said.by == "typed" and said.token not in outcome.shown]
        begun = {said.message: beginnings(outcome.messages[said.message - 1]) for said in typed}
        missing = [seq for seq, ways in begun.items() if not any(one in text for one in ways)]
        if missing and any(CLAIM in record for record in outcome.records):
            yield f"{len(missing)} messages are missing, such as {missing[0]}, and the record does not say so"


def effects_are_told(trial: Trial) -> Iterator[str]:
    """13. Where clearing results is enough, the number of a booking can still be read."""
    for outcome in trial.outcomes():
        if any(isinstance(item, Summary | Marker) for item in outcome.view.items):
            continue
        text = "\n".join(map(text_of_row, outcome.rows))
        said = {seq: BOOKED.search(message.text) for seq, message in enumerate(outcome.messages, 1)}
        gone = [seq for seq, found in said.items() if found is not None and found[1] not in text]
        yield from (f"what came of the call is cleared in message {seq}" for seq in gone[:1])


LAWS: dict[int, Law] = dict(
    enumerate(
        (
            words_stay,
            no_empty_room,
            more_room_loses_nothing,
            same_log_same_bytes,
            true_numbers,
            nothing_asserted,
            last_version_wins,
            nothing_grows,
            whose_words,
            answer_before,
            unseen_is_whole,
            says_what_is_missing,
            effects_are_told,
        ),
        1,
    )
)


def problems_of(number: int, seed: int) -> list[str]:
    """What a session has against a law."""
    return list(LAWS[number](Trial(session(seed))))


def loop_shares(trial: Trial) -> tuple[float, float] | None:
    """Of the typed and answer tokens, what the library keeps in a loop, and at once; None where all fits."""
    looped, whole = trial.looped, trial.plain
    if looped is None or whole is None or not whole.compacted:
        return None
    tokens = {said.token for said in trial.made.said if said.by in ("typed", "answer")}
    return len(tokens & looped.shown) / len(tokens), len(tokens & whole.shown) / len(tokens)


def main(count: int, first: int = 0) -> None:
    """Try so many sessions, and print what they break."""
    seeds = defaultdict[int, list[int]](list)
    examples: dict[int, str] = {}
    shares: list[tuple[float, float]] = []
    compacted = 0
    for seed in range(first, first + count):
        trial = Trial(session(seed))
        for number, law in LAWS.items():
            problems = list(law(trial))
            if problems:
                seeds[number].append(seed)
                examples.setdefault(number, problems[0])
        compacted += trial.chat is not None and trial.chat.compacted
        shares += [found for found in [loop_shares(trial)] if found is not None]
    write = sys.stdout.write
    write(f"{count} sessions, {compacted} of them compacted\n")
    for number, law in LAWS.items():
        some = f", such as {', '.join(map(str, seeds[number][:5]))}: {examples[number]}" if seeds[number] else ""
        write(f"law {number}, {law.__name__}: broken by {len(seeds[number])}{some}\n")
    if shares:
        looped, whole = (sum(found) / len(shares) for found in zip(*shares, strict=True))
        write(f"law 4, the library in a loop: keeps {looped:.1%} of words and answers, at once {whole:.1%}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
