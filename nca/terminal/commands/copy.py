"""/copy: copy an answer, or a code block of it, to the clipboard."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from itertools import islice

from nca.errors import UsageError
from nca.messages import Entry
from nca.terminal.clipboard import copy_text
from nca.terminal.commands.command import App, Command, Suggestion
from nca.terminal.render.markdown_blocks import BlockSplitter
from nca.terminal.render.sanitize import one_line, to_terminal

SUGGESTED = 9
_ABOUT_CHARS = 60


class CopyCommand(Command):
    name = "copy"
    usage = "/copy [N]\n/copy code [N]"
    about = "Copy the last answer as Markdown, the Nth latest one, or its last code block"

    def needs_person(self, app: App, argument: str) -> str:
        return "starts a program"

    async def run(self, app: App, argument: str) -> None:
        words = argument.lower().split()
        is_code = words[:1] == ["code"]
        number = _number(words[1:] if is_code else words, argument)
        answers = answers_backwards(app.conversation.context.backwards())
        if is_code:
            blocks = [block for answer in answers for block in reversed(code_blocks(answer))]
            text, what = _pick(blocks, number, "block of code")
        else:
            text, what = _pick(list(islice(answers, number)), number, "answer")
        # What is pasted elsewhere is as safe as what is shown here: a terminal may take pasted controls for keys.
        text = to_terminal(text)
        copied = await asyncio.to_thread(copy_text, text, app.output.send_codes, os.environ)
        size = f"{len(text):,} characters"
        if not copied.is_done:
            raise UsageError(f"Not copied: {copied.how}.", advice="/export writes the session to a file.")
        app.output.show(f"Copied {what} ({size}) {copied.how}.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        if "code".startswith(argument.lower()):
            yield Suggestion("code", "the last block of code")
        for number, answer in enumerate(islice(answers_backwards(app.conversation.context.backwards()), SUGGESTED), 1):
            if str(number).startswith(argument):
                yield Suggestion(str(number), one_line(answer, _ABOUT_CHARS))


def answers_backwards(entries: Iterable[Entry]) -> Iterable[str]:
    """What the model said to the person, the last first, of a conversation that is given newest first."""
    for entry in entries:
        if entry.message.role == "assistant" and entry.message.text.strip():
            yield entry.message.text.strip()


def code_blocks(markdown: str) -> list[str]:
    """The blocks of code of an answer, in order, each with a newline at its end."""
    splitter = BlockSplitter()
    found: dict[int, list[str]] = {}
    for block in [*splitter.feed(markdown), *splitter.finish()]:
        if block.kind == "code":
            found.setdefault(block.fence, []).append(block.text)
    return ["\n".join(pieces) + "\n" for pieces in found.values()]


def _number(words: Sequence[str], argument: str) -> int:
    if not words:
        return 1
    if len(words) == 1 and words[0].isdecimal() and 0 < len(words[0]) < 9 and int(words[0]) > 0:
        return int(words[0])
    raise UsageError(
        f"/copy {one_line(argument, 40)} is not known.", advice="Valid: code, or a number (1 is the last)."
    )


def _pick(texts: Sequence[str], number: int, what: str) -> tuple[str, str]:
    if len(texts) < number:
        few = f"{number:,} is too large: 1 is the last {what}, {len(texts):,} the first."
        raise UsageError(few if texts else f"There is no {what} yet.")
    return texts[number - 1], f"the last {what}" if number == 1 else f"{what} {number} from the end"


COMMAND = CopyCommand()
