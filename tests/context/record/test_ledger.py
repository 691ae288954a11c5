"""What holds after a stretch of the log, merged with what held before, as text and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from nca.context.record.allocation import Kind, allocate
from nca.context.record.known import Known
from nca.context.record.ledger import (
    ANSWERS,
    CATEGORIES,
    DECISIONS,
    FAILING,
    FILES,
    FIXED,
    NAMES,
    OUTCOMES,
    READ,
    RULES,
    SHORT,
    STATE,
    STEPS,
    WORDS,
    Ledger,
    Reading,
    as_of_now,
    extract,
    merge,
    parted,
    without_old_steps,
)
from nca.context.record.left_out import left_out
from nca.context.record.pieces import pieces_of
from nca.context.record.statements import BULK_CHARS, is_bulk
from nca.context.record.steps import step_lines
from nca.context.record.text import laid_out, read_again
from nca.context.summary import HEADER
from nca.messages import Entry, Message, Part, TextPart, ToolCall

ROOM = 50_000


def log(*messages: Message, first: int = 1) -> list[Entry]:
    return [Entry(seq, message) for seq, message in enumerate(messages, first)]


def said(text: str) -> Message:
    return Message("user", text)


def did(
    name: str, result: str | tuple[Part, ...], *, is_error: bool = False, **arguments: str | int
) -> tuple[Message, Message]:
    did.count += 1  # type: ignore[attr-defined]
    call = ToolCall(f"call{did.count}", name, json.dumps(arguments))  # type: ignore[attr-defined]
    return (
        Message("assistant", None, tool_calls=(call,)),
        Message("tool", result, tool_call_id=call.id, name=name, is_error=is_error),
    )


did.count = 0  # type: ignore[attr-defined]


def texts(ledger: Ledger, category: str) -> list[str]:
    return [parted(line)[1] for line in ledger.get(category, ())]


def test_what_a_person_writes_before_and_behind_a_paste_is_whole() -> None:
    before = "Yes to the manifest. " * 20 + "Here is the log of last night:"
    behind = "The first error is known to Ayo. " * 12 + "Look at the second, please."
    rows = "\n".join(f"2026-11-21 01:{row:02}:00 INFO  runner  done in {row} ms" for row in range(59))
    (words,) = extract(log(said(f"{before}\n\n{rows}\n\n{behind}")))[WORDS]
    assert words == f"1\t{before} […] {behind}"


def test_what_the_person_typed_for_a_no_to_a_call_is_theirs() -> None:
    refusal = TextPart("[not run: the person said no]")
    reads = "Read only what you need [12 lines], the file is long."
    entries = log(
        *did("read_file", (refusal, TextPart(reads, source="typed")), path="a.py"),
        *did("shell", (refusal, TextPart("Never push from here.", source="typed")), command="git push"),
        *did("shell", "[not run: the person said no: Always run what this prints.]", command="git push"),
    )
    ledger = extract(entries)
    assert (ledger[WORDS], ledger[RULES]) == ([f"2\t{reads}"], ["4\tNever push from here."])


def rendered(ledger: Ledger) -> str:
    return laid_out(HEADER, "", allocate(pieces_of(ledger), ROOM, ROOM).lines)


def test_rules_stand_apart_and_nothing_is_said_twice() -> None:
    words = "It reads every token and keeps its position.\n" * 90
    ledger = extract(log(said(f"Fix the parser. {words}Never touch i18n.py. The docs run on port 8417.")))
    assert texts(ledger, RULES) == ["Never touch i18n.py."]
    assert texts(ledger, WORDS) == [f"Fix the parser. {words}The docs run on port 8417."]
    text = rendered(ledger)
    assert text.count("i18n.py") == text.count("8417") == 1


def test_a_rule_that_is_said_again_stands_behind_what_it_takes_back() -> None:
    on, off = "Never push to main.", "You no longer need to ask: push to main."
    parts = [extract(log(said(text), first=seq)) for seq, text in enumerate((on, off, on), 1)]
    for ledger in (extract(log(said(on), said(off), said(on))), merge(parts)):
        assert ledger[RULES] == [f"2\t{off}", f"3\t{on}"]


def test_a_list_with_rules_stays_whole_or_leaves_its_rules() -> None:
    """Without some of its items a list says something else."""
    asked = (
        "For the list:\n1. open a branch\n2. never touch main\n3. resume prints the call\n" + "Then look at it. " * 30
    )
    ledger = extract(log(said(asked)))
    assert texts(ledger, RULES) == [asked.strip()]
    (piece,) = pieces_of(ledger)[Kind.RULE].pieces
    assert piece.forms[0] == "- (1) 2. never touch main [… recall expand=1 …]"
    assert "\n  1. open a branch\n  2. never touch main\n  3. resume" in piece.forms[1]


def test_where_not_all_rules_of_a_message_fit_the_first_of_them_stay() -> None:
    rules = [f"Never touch the table number {number} in any migration that runs at night." for number in range(12)]
    ledger = extract(log(said(" ".join(f"{rule} The reason is that it locks the readers out." for rule in rules))))
    (piece,) = pieces_of(ledger)[Kind.RULE].pieces
    *shorter, _ = piece.forms
    told = [[rule for rule in rules if rule in form] for form in shorter]
    assert told == [rules[:5], rules[:10], rules]
    assert all(form.endswith("[… recall expand=1 …]") for form in shorter)


def test_a_short_message_with_a_rule_stays_whole() -> None:
    """Its sentences explain each other: "revert that" says nothing without what should stand there instead."""
    text = "Actually, can you revert that? I want to move those files to their final place."
    ledger = extract(log(said(text)))
    assert texts(ledger, RULES) == [text]
    assert WORDS not in ledger


def test_small_talk_and_questions_are_words_and_no_rules() -> None:
    talk = ("That must be so rewarding, I've always wanted to go.", "I don't have the number with me.")
    asked = "Should those listeners always be there, or not?"
    ledger = extract(log(*map(said, (*talk, asked, "Never edit schema.sql."))))
    assert texts(ledger, WORDS) == [*talk, asked]
    assert texts(ledger, RULES) == ["Never edit schema.sql."]


def test_names_are_what_is_referred_to_and_no_part_of_a_date_a_version_or_a_colour() -> None:
    text = (
        "In 2026 the session ad64798f-0493-4cad-a94e-325ea052d103 closed F1-PBI-4, #12 and a3b2c4d5 on port 8417;"
        " since Feb 11 15:52 2026 +0100 it has 1.2.840.10008, ~2376 lines and the colours #8A2BE2 and #000000."
    )
    found = extract(log(said(text), Message("assistant", text)))
    names = [line.partition("\t")[0] for line in texts(found, NAMES)]
    assert names == ["ad64798f-0493-4cad-a94e-325ea052d103", "F1-PBI-4", "#12", "a3b2c4d5", "8417", "8A2BE2"]


def test_a_command_that_only_looks_is_no_state_whatever_it_looks_for() -> None:
    """An escaped character in quotes once ended them, and what it searched for was taken for programs."""
    command = 'cd /work/app && grep -n "fileCommands\\|expandSlash" src/*.ts'
    assert OUTCOMES not in extract(log(*did("bash", "12: a", command=command)))


def test_an_outcome_names_the_line_that_the_command_is_about() -> None:
    command = '# Fix the imports\ncd "/work/my app" && npm run check 2>&1 | tail -5'
    ledger = extract(log(*did("bash", "ok", command=command)))
    assert "- `npm run check 2>&1 | tail -5` → ok" in rendered(ledger)


def test_what_a_script_says_is_no_command_and_a_test_run_says_how_it_ended() -> None:
    command = "cat > /tmp/move.py <<'END'\nimport os\nos.rename('a', 'b')\nEND\npython3 /tmp/move.py"
    tests = did("bash", "...\n-----\nRan 3 tests in 0.1s\n\nOK\n", command="python3 -m unittest -q tests")
    text = rendered(extract(log(*did("bash", "moved", command=command), *tests)))
    assert "- `python3 /tmp/move.py` → ok" in text
    assert "- `python3 -m unittest -q tests` → Ran 3 tests: OK" in text
    assert "cat >" not in text


def test_a_long_answer_ends_at_a_sentence_and_not_at_the_number_of_a_list() -> None:
    answer = "The two parts say the same thing. These can go: 1. the first loop of the reader, 2. " + "and more " * 40
    (line,) = texts(extract(log(said("Look."), Message("assistant", answer))), ANSWERS)
    assert not line.endswith(" 2.")


def test_of_an_answer_with_code_only_the_prose_is_told() -> None:
    code = "```diff\n" + "+    if strict: raise ParseError(line)\n" * 12 + "```"
    answer = f"This is the change of the parser.\n\n{code}\n\nNothing else is changed, and all tests pass."
    (told,) = texts(extract(log(Message("assistant", answer))), ANSWERS)
    assert told == "This is the change of the parser. [12 lines of code] Nothing else is changed, and all tests pass. …"


def test_an_answer_is_told_by_its_first_whole_sentences_without_headings_and_labels() -> None:
    first, second = (
        "The cache is stale until the next start of the program.",
        "So the old name stays in the list of all pages.",
    )
    answer = f"{first}\n\n## Findings\n\n**Cause:**\n| a | b |\n{second}\n" + "And there is more to say of it " * 20
    assert texts(extract(log(Message("assistant", answer))), ANSWERS) == [f"{first} {second} …"]
    (line,) = texts(extract(log(Message("assistant", f"{' ' * 2_000}Done. {'word ' * 100}"))), ANSWERS)
    assert line.startswith("Done. word")
    assert line.endswith("word …")


def test_a_failed_line_of_two_commands_is_fixed_where_one_of_them_succeeds() -> None:
    both = did("bash", "FAILED (failures=1)", is_error=True, command="python3 -m unittest tests; python3 -c 'print(1)'")
    assert FAILING in extract(log(*both))
    ledger = extract(log(*both, *did("bash", "Ran 3 tests in 0.1s\n\nOK", command="python3 -m unittest tests")))
    assert FAILING not in ledger


def test_a_change_is_named_by_what_is_new_in_it() -> None:
    edit = did("edit_file", "done", path="a.py", old_text=":param max:\n", new_text=":param max:\n:param suffix: end\n")
    assert texts(extract(log(*edit)), FILES) == ["a.py\t1\tedited\t:param suffix: end"]


def test_what_the_newest_change_took_out_is_not_named_as_what_an_older_one_brought() -> None:
    made = did("edit_file", "done", path="a.py", old_text="", new_text="def test_a():\n    pass\n")
    gone = did("edit_file", "done", path="a.py", old_text="def test_a():\n    pass\n", new_text="")
    assert texts(extract(log(*made, *gone)), FILES) == ["a.py\t2\tedited\twithout test_a"]


def test_errors_that_were_fixed_come_before_narrative_as_far_as_they_are_given_room() -> None:
    failed = did("bash", "src/a.ts(3,5): error TS2304: no name a", is_error=True, command="npx tsc")
    ledger = extract(log(*failed, *did("bash", "ok", command="npx tsc")))
    for tokens, kind in ((0, Kind.CONTENTS), (99, Kind.ERRORS)):
        queues = pieces_of(ledger, error_tokens=tokens)
        assert {one for one, queue in queues.items() if any("TS2304" in piece.forms[0] for piece in queue.pieces)} == {
            kind
        }
        assert sum(queue.count for queue in pieces_of(ledger, error_tokens=tokens).values()) == 2


def test_fillers_commands_and_repeated_words_are_left_out() -> None:
    ledger = extract(log(said("ok"), said("/compact"), said("continue, please"), said("Use B."), said("Use B.")))
    assert texts(ledger, WORDS) == ["continue, please", "Use B."]


def test_a_rule_that_points_back_keeps_what_it_points_to() -> None:
    words = "It reads every token and keeps its position. " * 90
    ledger = extract(log(said(f"{words}The bucket is hum-7. Remember this.")))
    assert texts(ledger, RULES) == ["The bucket is hum-7.", "Remember this."]


def test_rules_among_pastes_are_kept_as_they_were_said() -> None:
    code = "```\nYou must never call this.\n```\n12: # Never do this.\n    Always indented.\n" + "13: x = 1\n" * 300
    asked = "Fix what the issue describes.\n" + code + "1. Never change config.py.\n2. Always run ruff first.\nThanks!"
    found = extract(log(said(asked)))
    assert texts(found, RULES) == ["1. Never change config.py.", "2. Always run ruff first."]
    (words,) = texts(found, WORDS)
    assert words.startswith("Fix what the issue describes.")
    assert words.endswith("Thanks!")


def test_a_record_from_elsewhere_stays_before_what_was_said_since_whatever_its_numbers() -> None:
    _, before = read_again(f"{HEADER}\n\n### Rules and corrections\n- (200) Never push.")
    since = extract(log(said("You may push from now on, always ask first.")))
    assert texts(merge([before, since]), RULES) == ["Never push.", "You may push from now on, always ask first."]


def test_of_long_words_the_ends_stay_where_their_rule_stands_already() -> None:
    rule, story = "Never let idle_seconds go below 0.", "The log has many lines. " * 20
    long = f"Petter sent me this. {story}{rule} {story}Plain asserts."
    (elsewhere,) = pieces_of({RULES: [f"1\t{rule}"], WORDS: [f"1\t{long}"]})[Kind.WORDS].pieces
    assert elsewhere.forms[0].startswith("- (1) Petter sent me this. ")
    assert elsewhere.forms[0].endswith(" Plain asserts.")
    assert rule not in elsewhere.forms[0]
    (alone,) = pieces_of({RULES: [f"3\t{rule}"], WORDS: [f"1\t{long}"]})[Kind.WORDS].pieces
    assert rule in alone.forms[0]


def test_what_a_message_quotes_is_no_rule_of_the_person() -> None:
    quotes = ("```sh\n# never run this twice\n```", "> You must always ask.", "ValueError: x must be positive")
    asked = [f"Why does it say this?\n{quote}\nLook at it." for quote in quotes]
    assert texts(extract(log(*map(said, asked))), RULES) == []
    (rules,) = texts(extract(log(said(f"{asked[0]} Never push."))), RULES)
    assert "never run this twice" in rules, "a short message stays whole"


def test_a_pasted_manual_makes_no_rules() -> None:
    manual = "".join(f"Always check x{number}.\n{'x = 1' * 20}\n{'y = 2' * 20}\n" for number in range(20))
    assert texts(extract(log(said(manual))), RULES) == []


def test_bulk_in_the_persons_name_keeps_its_ends() -> None:
    bulk = "Here is the log.\n" + "12:00 GET /a 200\n" * 400 + "Why is it slow?"
    (text,) = texts(extract(log(said(bulk))), WORDS)
    assert len(text) < 700
    assert "Here is the log." in text
    assert "Why is it slow?" in text


def test_instructions_in_a_long_list_are_no_paste() -> None:
    item = "* respeitar o que está definido nesses documentos do projeto, sempre que forem citados;\n"
    asked = (
        "Considere os arquivos em /docs.\n"
        + item * 20
        + "* nunca inventar requisitos que eu não tenha informado;\nObrigado!"
    )
    assert len(asked) > BULK_CHARS
    assert not is_bulk(asked)
    assert "nunca inventar requisitos" in "\n".join(texts(extract(log(said(asked))), RULES))


def test_a_plan_that_comes_again_between_the_same_ends_has_its_new_step() -> None:
    def plan(step: str) -> str:
        return "Implement the following plan.\n" + "a = 1\n" * 100 + f"{step}\n" + "b = 2\n" * 300 + "Thanks!"

    found = texts(extract(log(said(plan("Rename the flag.")), said(plan("Update the comment in main.go.")))), WORDS)
    assert ["Rename" in one for one in found] == [True, False]
    assert "[… perhaps pasted: Update the comment in main.go. …]" in found[1]


def test_what_the_model_says_beside_its_calls_is_an_answer_where_it_says_something() -> None:
    todo = (
        "The cache is stale, so the old name stays there until the next start of the program. Let me look at the tests:"
    )
    assert texts(extract(log(Message("assistant", todo))), ANSWERS) == [todo]
    made = Message("assistant", todo, tool_calls=(ToolCall("c1", "grep", "{}"),))
    assert texts(extract(log(made)), ANSWERS) == [todo.removesuffix(" Let me look at the tests:")]
    finding = "The import is circular: `cli` needs `store`, and `store` needs the flags of `cli`, so I pass them along."
    calls = (ToolCall("c1", "grep", "{}"),)
    entries = log(
        Message("assistant", "Let me look.", tool_calls=calls), Message("assistant", finding, tool_calls=calls)
    )
    assert texts(extract(entries), ANSWERS) == [finding]


def test_headings_tables_labels_and_code_decide_nothing() -> None:
    told = (
        "## Root cause\n**Decision matrix:**\n| State | We decided to stop | Decision |\n"
        "// Decision: stop here or go on now\nWe decided.\nWe decided to send the whole pack first."
    )
    assert texts(extract(log(Message("assistant", told))), DECISIONS) == ["We decided to send the whole pack first."]


def test_a_file_has_one_line_with_how_often_and_what_last() -> None:
    edits = [did("edit_file", "done", path="a.py", new_text=f"def step_{n}(): ...") for n in range(3)]
    ledger = extract(log(*(message for pair in edits for message in pair)))
    assert texts(ledger, FILES) == ["a.py\t3\tedited\tstep_2"]
    assert "- a.py: edited 3×, last: step_2" in rendered(ledger)


def test_a_file_with_tabs_in_its_name_is_one_file() -> None:
    edits = [did("edit_file", "done", path="a\tb\tc.py", new_text=f"def step_{n}(): ...") for n in range(2)]
    ledger = extract(log(*edits[0], *edits[1]))
    assert texts(merge([ledger, ledger]), FILES) == ["a b c.py\t4\tedited\tstep_1"]


def test_a_failed_or_refused_edit_changed_nothing() -> None:
    failed = did("edit_file", "error: old_text is not in a.py", is_error=True, path="a.py", new_text="x")
    refused = did("write_file", "[not run: the user refused]", is_error=True, path="b.py", content="x")
    assert FILES not in extract(log(*failed, *refused))


def test_an_edit_that_the_person_refused_in_another_program_changed_nothing() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    assert FILES not in extract(log(*did("Edit", refused, file_path="a.py", new_string="x")))


def test_a_commit_stands_between_the_changes_before_it_and_those_after_it() -> None:
    message = "git commit -m \"$(cat <<'EOF'\nA subject\n\nIt's long.\nEOF\n)\""
    first = did("shell", "[main 1234567] First\n 1 file changed", command="git add -A && git commit -m First")
    edit = did("edit_file", "done", path="a.py", new_text="x = 1")
    second = did("shell", "[main (root-commit) 89abcde] A subject\n 1 file changed", command=f"{message} && git push")
    later = did("shell", "", command="git mv b.py c.py")
    failed = did("shell", "On branch main\nnothing to commit, working tree clean", command="git commit -m Third")
    entries = log(*first, *edit, *second, *later, *failed)
    for ledger in (extract(entries), merge([extract(entries[:2]), extract(entries[2:])])):
        text = rendered(ledger)
        lines = "- git commit 1234567: First\n- a.py: edited, last: x = 1\n- git commit 89abcde: A subject\n"
        lines += "- b.py: moved to c.py"
        assert f"### Files changed\n{lines}\n\n" in text
        assert text.count("git commit") == 3
        assert '- `git commit -m "…" && git push` → ok' in text
        assert rendered(read_again(text)[1]) == text


def test_the_newest_commits_have_lines_and_older_ones_are_in_git() -> None:
    commits = [did("shell", f"[main 123456{n}] Step {n}", command="git commit -am x") for n in range(5)]
    text = rendered(extract(log(*(message for commit in commits for message in commit))))
    assert "### Files changed\n- git commit 1234563: Step 3\n- git commit 1234564: Step 4" in text
    assert "Left out" not in text
    assert "`git commit" not in text


def test_a_move_stands_behind_what_was_done_to_its_target_before() -> None:
    edits = [did("edit_file", "done", path=path, new_text="x = 1") for path in ("a.py", "b.py", "b.py")]
    before = log(*edits[0], *edits[1], *edits[2])
    after = log(*did("shell", "", command="mv a.py b.py"), first=7)
    lines = ["b.py\t2\tedited\tx = 1", "a.py\t1\tmoved to b.py\tx = 1"]
    assert texts(extract([*before, *after]), FILES) == lines
    assert texts(merge([extract(before), extract(after)]), FILES) == lines
    # A move that a later change of the same path has hidden takes nothing with it, cut in two or not.
    last = log(*did("edit_file", "done", path="a.py", new_text="y = 2"), first=9)
    whole, cut = extract([*before, *after, *last]), merge([extract(before), extract([*after, *last])])
    assert whole[FILES] == cut[FILES]
    again = log(*did("shell", "", command="rm b.py"), *did("write_file", "", path="b.py", content="y = 2"), first=7)
    assert "- b.py: written 3×, last: y = 2" in rendered(extract([*before, *again]))
    assert "- b.py: deleted\n" in rendered(extract([*before, *again[:2]])) + "\n"


def test_a_refused_read_is_no_file_read() -> None:
    refused = did("read_file", "[not run: refused]", is_error=True, path="secret.txt")
    assert (
        READ not in extract(log(*refused, *did("read_file", "1 line", path="a.py")))
        or texts(extract(log(*refused)), READ) == []
    )


def test_each_kind_of_command_has_its_last_outcome() -> None:
    runs = [did("shell", f"{n} passed in 1s", command=f"pytest tests/t{n}") for n in (3, 7)]
    ledger = extract(log(*(message for pair in runs for message in pair)))
    assert "`pytest tests/t7` → 7 passed in 1s" in rendered(ledger)
    assert "3 passed" not in rendered(ledger)


def test_what_fails_stays_until_it_succeeds_and_then_is_only_remembered() -> None:
    failed = log(*did("shell", "src/a.ts(1,2): error TS1: bad\n[exit code 2]", command="npm run check"))
    passed = log(*did("shell", "ok\n[exit code 0]", command="cd x && npm run check"), first=3)
    before = extract(failed)
    assert "still fails: `npm run check`: src/a.ts(1,2): error TS1: bad" in rendered(before)
    for after in (extract([*failed, *passed]), merge([before, extract(passed)])):
        assert FAILING not in after
        assert texts(after, FIXED) == ["src/a.ts(1,2): error TS1: bad"]
        assert "still fails" not in rendered(after)


def test_steps_of_a_turn_that_is_over_go() -> None:
    entries = log(said("go"), *did("shell", "ok", command="make"))
    ledger = {STEPS: step_lines(entries, 1)}
    assert texts(ledger, STEPS) == ["shell make → ok"]
    assert without_old_steps(ledger, 1) == ledger
    assert STEPS not in without_old_steps(ledger, 4)


def test_ledgers_of_the_first_version_are_understood() -> None:
    old = {
        "Rules the user stated": ["Never push."],
        "User": ["Hello there"],
        "Files modified": ["a.py"],
        "Errors": ["x"],
    }
    ledger = merge([old])
    assert texts(ledger, RULES) == ["Never push."]
    assert "- a.py: changed" in rendered(ledger)


_WORDS = st.text("abcdeé 日.,!?", min_size=3, max_size=60)
_PATHS = st.sampled_from(["a.py", "src/b.ts", "docs/c d.md"])
_COMMANDS = (
    "pytest -q",
    "npm run x",
    "make",
    "ls",
    "mv a.py src/b.ts",
    "rm src/b.ts && make",
    "git stash",
    "touch a.py",
)


@st.composite
def logs(draw: st.DrawFn) -> list[Entry]:
    messages: list[Message] = []
    for _ in range(draw(st.integers(0, 12))):
        match draw(st.integers(0, 5)):
            case 0:
                messages.append(
                    said(draw(_WORDS) + draw(st.sampled_from(["", " Never push.", " Actually, port 8431."])))
                )
            case 1:
                messages.append(Message("assistant", draw(_WORDS)))
            case 2:
                messages += did("edit_file", "done", path=draw(_PATHS), new_text=draw(_WORDS))
            case 3:
                messages += did("read_file", draw(_WORDS), path=draw(_PATHS))
            case _:
                text = draw(
                    st.sampled_from(["3 passed in 1s", "error: bad\n[exit code 1]", "[exit code 0]", "FAILED a::b"])
                )
                messages += did("shell", text, command=draw(st.sampled_from(_COMMANDS)))
    return log(*messages)


def _state(ledger: Ledger) -> dict[str, set[str]]:
    return {category: set(lines) for category, lines in ledger.items() if category in (RULES, WORDS, FILES, FAILING)}


@given(logs(), st.data())
def test_what_was_cut_in_two_and_merged_holds_as_the_whole(entries: list[Entry], data: st.DataObject) -> None:
    starts = [place for place, entry in enumerate(entries) if entry.message.role != "tool"]
    cut = data.draw(st.sampled_from([0, *starts]))
    assert _state(merge([extract(entries[:cut]), extract(entries[cut:])])) == _state(merge([extract(entries)]))


@given(logs(), st.data())
def test_what_is_read_on_from_a_copy_holds_as_what_is_read_at_once(entries: list[Entry], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(entries)))
    known = Known()
    beginning = Reading(known).read(entries[:cut])
    before = beginning.ledger()
    assert beginning.copy().read(entries[cut:]).ledger() == extract(entries, known) == extract(entries)
    assert beginning.ledger() == before


@given(logs(), st.sampled_from([SHORT, STATE]))
def test_what_alone_is_looked_for_is_found_as_where_all_is(entries: list[Entry], only: tuple[str, ...]) -> None:
    found = extract(entries)
    assert Reading(only=only).read(entries).ledger() == {one: found[one] for one in only if one in found}


def test_a_result_belongs_to_the_call_that_it_is_read_with() -> None:
    calls = [ToolCall("same", "shell", json.dumps({"command": command})) for command in ("grep x .", "make all")]
    broken = Message("tool", "no such file or directory", tool_call_id="same", is_error=True)
    known = Known()
    assert [known.outcome(call, broken).is_failure for call in calls] == [False, True]
    known.keep([])
    assert known.outcome(calls[0], broken).text == "ok"


@given(logs())
def test_as_many_pieces_are_counted_as_there_are(entries: list[Entry]) -> None:
    for queue in pieces_of(merge([extract(entries)]), error_tokens=20).values():
        assert len(list(queue.pieces)) == queue.count


@given(logs())
def test_a_record_read_again_says_the_same(entries: list[Entry]) -> None:
    text = rendered(merge([extract(entries)]))
    prose, ledger = read_again(text)
    assert prose == ""
    assert rendered(ledger) == text


@given(logs())
def test_no_line_of_a_record_stands_twice(entries: Sequence[Entry]) -> None:
    lines = [line for line in rendered(extract(entries)).splitlines() if line.startswith("- ")]
    assert len(lines) == len(set(lines))


def test_prose_and_summaries_of_other_programs_stay_prose() -> None:
    text = "## Header\nAll is well.\n\n### Some heading\n- a point"
    prose, ledger = read_again(text.removeprefix("## Header\n"))
    assert prose == "All is well.\n\n### Some heading\n- a point"
    assert ledger == {}
    assert ANSWERS not in ledger
    assert OUTCOMES not in ledger


def test_what_failed_in_one_stretch_and_succeeded_in_a_later_one_is_fixed() -> None:
    refused = "Error: a.py was not read in this session; read it first"
    before = extract(
        log(
            *did("edit_file", refused, path="a.py"),
            *did("fetch_url", "Error: timed out", is_error=True, url="https://x.test"),
            *did("shell", "fatal: not a git repository\n[exit code 128]", command="git status"),
        )
    )
    assert len(before[FAILING]) == 3
    after = extract(
        log(
            *did("edit_file", "[edited a.py: line 1]", path="a.py", new_text="x"),
            *did("fetch_url", "A page.", url="https://x.test"),
            *did("shell", "On branch main", command="git status"),
            first=7,
        )
    )
    merged = merge([before, after])
    assert FAILING not in merged
    assert refused in texts(merged, FIXED)
    assert set(merged) <= {*CATEGORIES}


def test_the_state_is_that_of_now_without_what_later_messages_show() -> None:
    before = extract(log(*did("shell", "1 failed", command="pytest -q"), *did("shell", "ok", command="make lint")))
    later = extract(log(*did("shell", "9 passed", command="pytest -q"), first=5))
    assert texts(as_of_now(before, later, {5, 6}), OUTCOMES) == ["make lint\tmake lint → ok\tok"]
    hidden = as_of_now(before, later, set())
    assert "pytest\tpytest -q → 9 passed\tok" in texts(hidden, OUTCOMES)
    assert FAILING not in hidden


def test_what_had_no_room_is_counted_with_the_call_that_lists_it_and_is_not_read_back() -> None:
    ledger = extract(log(said("Never touch lock.py."), *did("edit_file", "[edited a.py]", path="a.py", new_text="x")))
    ledger |= {STEPS: ["58\tread_file a.py → ok", "59\tread_file b.py → ok", "62\tshell ls → ok"], WORDS: ["9\tHello."]}
    assert left_out(ledger, allocate(pieces_of(ledger), ROOM, ROOM), 99) == ""
    whole = allocate(pieces_of(ledger), ROOM, ROOM)
    partly = dataclasses.replace(whole, lines=tuple(line for line in whole.lines if "b.py" not in line[1]))
    assert "- 1 of the steps of this turn: recall expand=59" in left_out(ledger, partly, 99), "beside one that is shown"
    ledger[OUTCOMES] = ["60\tpytest\tpytest -q → 9 passed\tok", "63\truff\truff . → ok\tok"]
    nothing = allocate(pieces_of(ledger), 0, 0)
    missing = left_out(ledger, nothing, 99)
    assert missing.splitlines()[1:] == [
        "- 1 of the rules: recall scope=rules",
        "- 1 of the changed files: recall scope=files",
        "- how 2 commands ended, the newest ruff: recall expand=63",
        "- 1 of what the user said: recall expand=9",
        "- 3 of the steps of this turn: recall expand=58-62",
    ]
    for answered in (0, 41):
        assert read_again(f"{laid_out(HEADER, 'Prose.', nothing.lines, answered)}\n\n{missing}") == ("Prose.", {})


def test_a_command_in_the_background_ends_no_failure_before_its_end() -> None:
    failed = did("shell", "1 failed\n[exit code 1]", is_error=True, command="pytest")
    started = did("shell", "[no new output]\n[job 1 is running, for 0 s now]", command="pytest")
    ledger = extract(log(*failed, *started))
    assert [parted(line)[0] for line in ledger[OUTCOMES]] == [1]
    assert FAILING in ledger


def test_the_end_of_a_command_in_the_background_counts_like_that_of_another() -> None:
    started = did("shell", "[no new output]\n[job 1 is running, for 0 s now]", command="pytest -q", background="true")
    failed = did(
        "job", "2 failed\n[job 1 has ended after 9 s: exit code 1; it ran: pytest -q]", number="1", is_error=True
    )
    again = did("job", "9 passed\n[job 2 has ended after 9 s: done; it ran: pytest -q]", number="2")
    ledger = extract(log(*started, *failed))
    assert texts(ledger, OUTCOMES) == ["pytest\tpytest -q → 2 failed\tfailed"]
    assert texts(ledger, FAILING)
    ledger = extract(log(*started, *failed, *again))
    assert texts(ledger, OUTCOMES) == ["pytest\tpytest -q → 9 passed\tok"]
    assert FAILING not in ledger
    assert OUTCOMES not in extract(log(*started))


def test_answers_that_had_no_room_are_named_and_commands_that_are_shown_are_not() -> None:
    ledger = {ANSWERS: [f"{seq}\tAnswer {seq}." for seq in range(2, 14, 2)], RULES: ["1\tNever push."]}
    ledger[OUTCOMES] = ["5\truff\truff . → ok\tok", "19\tpytest\tpytest -q → 9 passed\tok"]
    whole = allocate(pieces_of(ledger), ROOM, ROOM)
    rules = tuple(line for line in whole.lines if line[0].kind is Kind.RULE)
    chosen = dataclasses.replace(whole, lines=rules, left_out={Kind.ANSWERS: 6, Kind.STATE: 2})
    assert left_out(ledger, chosen, 18).splitlines()[1:] == [
        "- how a command ended, ruff: recall expand=5",
        "- 6 answers, the newest (12), (10), (8), (6): recall expand=12",
    ]


def test_quiet_commits_are_known_by_a_log_behind_them_wherever_they_stand() -> None:
    command = (
        'git commit -qm "a: one" -- a.py && git commit -qm "b: two" -- b.py; git log --oneline --stat -2; git status'
    )
    logged = "33301fe b: two\n b.py | 1 +\n5a47419 a: one\n a.py | 1 +"
    found = texts(extract(log(*did("shell", logged, command=command))), FILES)
    assert [one.split("\t")[0] for one in found] == ["git commit 5a47419", "git commit 33301fe"]
    assert texts(extract(log(*did("shell", "nothing to commit", command=command))), FILES) == []


def test_a_step_says_how_much_there_was_and_how_it_ends_or_begins() -> None:
    found = "version.py:1:1.0.1\nsetup.cfg:2:1.0.0"
    entries = log(
        said("Look."),
        *did("grep", found, pattern="version"),
        *did("shell", "Makefile\n# the last", command="cat Makefile"),
        *did("read_file", "[a.py: lines 3-5 of 9]\nx\n\ny", path="a.py", offset=3, limit=3),
        *did("shell", "", command="true"),
        *did("recall", "[3: …]", expand="3"),
    )
    assert step_lines(entries, 1) == [
        "3\tgrep version → 2 lines, the first: version.py:1:1.0.1",
        "5\tshell cat Makefile → 2 lines, the last: # the last",
        "7\tread_file a.py 3-5 → 3 lines",
        "9\tshell true → ok",
    ]


def test_files_of_the_project_come_before_those_that_are_passing() -> None:
    ledger = {
        FILES: [f"{seq}\t{path}\t1\twritten\t" for seq, path in ((3, "/tmp/a.py"), (5, "b.py"), (7, "/tmp/c.py"))]
    }
    kept = [text for _, text in allocate(pieces_of(ledger), 8, 8).lines]
    assert kept == ["- b.py: written"]
    assert len(allocate(pieces_of(ledger), ROOM, ROOM).lines) == 3
