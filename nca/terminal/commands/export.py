"""/export: write the session to a file, to read or to import again, or as a session of another agent.
/copy: copy an answer, or a code block of it, to the clipboard.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nca.agent.turn import GOES_ON
from nca.errors import UsageError
from nca.humanize import counted
from nca.messages import Entry
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, takes_no
from nca.terminal.input.pastes import installed, run_program
from nca.terminal.render.markdown_blocks import BlockSplitter
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.terminal.render.sessions import place, short_id, written_lines

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation


_FLAGS = {
    "--html": ("html", "one page with a picture of the context"),
    "--md": ("markdown", "to read (the default)"),
    "--json": ("json", "everything; nca sessions import reads it back"),
    "--jsonl": ("jsonl", "the messages, one per line, for other programs"),
}
_WORDS = {flag.removeprefix("--"): flag for flag in _FLAGS} | {"markdown": "--md"}
"""`/export html` and `/export html FILE` mean the format; a file of that name is `./html`."""
_FORCE = "--force"
_AS = "--as"


class _Asked(NamedTuple):
    """`agent`: the agent that gets the session; None for a file in one of nca's formats."""

    flags: list[str]
    name: str
    agent: str | None = None


class ExportCommand(Command):
    name = "export"
    usage = "/export [FILE] [--html|--md|--json|--jsonl] [--force] [--as AGENT]\n/export FORMAT FILE"
    about = "Write this session to a file or for another agent, with keys removed"

    def needs_person(self, app: App, argument: str) -> str:
        asked = _parsed(argument)
        directory = app.conversation.directory.resolve()
        path = (directory / Path(asked.name).expanduser()).resolve()
        is_inside = path.is_relative_to(directory) and bool(asked.name or asked.agent is None)
        return "" if is_inside else "writes a file outside of the project"

    async def run(self, app: App, argument: str) -> None:
        asked = _parsed(argument)
        # On a thread: a long session takes a moment, and the screen lives meanwhile.
        for line in await asyncio.to_thread(_exported, app.conversation, asked):
            app.output.notice(line)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        before, _, last = argument.rpartition(" ")
        if before.rpartition(" ")[2] == _AS:
            from nca.transcripts.outgoing.conversation import AGENTS

            return beginning_with(last, [(name, "") for name in AGENTS])
        known = [
            *((flag, about) for flag, (_, about) in _FLAGS.items()),
            (_FORCE, "overwrite an existing file"),
            (_AS, "claude, codex, gemini or pi: a session that it resumes"),
        ]
        return beginning_with(last, known)


def _exported(conversation: Conversation, asked: _Asked) -> list[str]:
    """Write the file; what to say of it, line by line."""
    # Imported here: most chats are never exported.
    from nca.models.providers import known_secrets
    from nca.redact import Redactor
    from nca.transcripts.export_formats import FORMATS, format_of, rendered, write_private
    from nca.transcripts.outgoing.conversation import agent_named, write_for
    from nca.transcripts.session_file import redacted

    session = conversation.session.info.id
    path = conversation.directory / Path(asked.name).expanduser()
    copy = redacted(conversation.store.copy_of(session), Redactor(known_secrets(os.environ)))
    if asked.agent is not None:
        agent = agent_named(asked.agent)
        written = write_for(agent, copy, os.environ, Path.home(), str(path) if asked.name else "")
        return [*written_lines(written), f"Resume it with: {written.command}"]
    formats = [_FLAGS[flag][0] for flag in asked.flags if flag != _FORCE]
    if asked.name and not formats and not Path(asked.name).suffix:
        name = one_line(asked.name, 40)
        raise UsageError(
            f"The name {name} does not say the format.",
            advice=f"Valid: /export FORMAT {name}, with html, md, json or jsonl; or an ending, as in {name}.md.",
        )
    chosen = format_of(formats, asked.name)
    path = path if asked.name else path / f"nca-{short_id(session)}{FORMATS[chosen][0]}"
    write_private(path, rendered(copy, chosen), overwrites=_FORCE in asked.flags)
    return [f"Wrote {counted(len(copy.entries), 'message')} to {place(str(path))} ({chosen})."]


def _parsed(argument: str) -> _Asked:
    """The file's name is all that is not a flag, blanks and all."""
    words = argument.split(" ")
    agent = None
    if _AS in words:
        at = words.index(_AS)
        agent = "".join(words[at + 1 : at + 2])
        del words[at : at + 2]
    flags = [word for word in words if word.startswith("--")]
    for flag in flags:
        if flag not in _FLAGS and flag != _FORCE:
            raise UsageError(
                f"/export has no flag {one_line(flag, 40)}.", advice=f"Valid: {', '.join(_FLAGS)}, {_FORCE}, {_AS}."
            )
    name = " ".join(word for word in words if not word.startswith("--")).strip()
    if agent is not None and flags:
        raise UsageError(f"{_AS} excludes {', '.join(_FLAGS)} and {_FORCE}.")
    first, _, rest = name.partition(" ")
    if agent is None and (chosen := _WORDS.get(first.lower())) is not None:
        return _Asked([*flags, chosen], rest.strip())
    return _Asked(flags, name, agent)


OSC_52_MOST_BYTES = 74_994
"""xterm's limit: its whole sequence may have 100,000 bytes. Terminals silently drop a longer one."""


class Copied(NamedTuple):
    """Whether it was copied, and how or why not, for a person."""

    is_done: bool
    how: str


def copy_text(text: str, send_codes: Callable[[str], bool], environment: Mapping[str, str]) -> Copied:
    """Put `text`, which is safe already, on the clipboard."""
    for command in _programs(environment):
        encoding = "utf-16-le" if command[0].lower().endswith("clip.exe") else "utf-8"
        if run_program(command, text.encode(encoding, "replace")) is not None:
            return Copied(is_done=True, how=f"with {command[0]}")
    data = text.encode("utf-8", "replace")
    if len(data) > OSC_52_MOST_BYTES:
        return Copied(
            is_done=False, how=f"terminals take {OSC_52_MOST_BYTES:,} bytes at most, and this has {len(data):,}"
        )
    if send_codes(f"\x1b]52;c;{base64.b64encode(data).decode()}\x1b\\"):
        return Copied(is_done=True, how="through the terminal, if it allows that")
    return Copied(is_done=False, how="found no terminal and no program (pbcopy, wl-copy, xclip, xsel, clip)")


def _programs(environment: Mapping[str, str]) -> list[list[str]]:
    """Programs that may be installed, best first. Over ssh a program would fill the other machine's clipboard."""
    found: list[list[str]] = []
    if environment.get("TMUX"):
        found.append(["tmux", "load-buffer", "-w", "-"])
    if not any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")):
        if sys.platform == "darwin":
            found.append(["pbcopy"])
        if environment.get("WAYLAND_DISPLAY"):
            found.append(["wl-copy"])
        if environment.get("DISPLAY"):
            found += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
        if environment.get("WSL_DISTRO_NAME"):
            found.append(["clip.exe"])
    return installed(found, environment)


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
        # Copied text is as safe as the text shown here: a terminal may take pasted controls for keys.
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
    """The model's answers to the person, last first; the conversation is given newest first.

    An answer that was asked to go on is one with what followed.
    """
    later, goes_on = "", False
    for message in (entry.message for entry in entries):
        if message.source == "nca" and message.text in GOES_ON:
            goes_on = True
        elif message.role == "assistant" and message.text.strip():
            if later and not goes_on:
                yield later.strip()
            later, goes_on = message.text + later if goes_on else message.text, False
    if later:
        yield later.strip()


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
    raise takes_no("copy", argument, "Valid: code, or a number (1 is the last).")


def _pick(texts: Sequence[str], number: int, what: str) -> tuple[str, str]:
    if len(texts) < number:
        few = f"{number:,} is too large: 1 is the last {what}, {len(texts):,} the first."
        raise UsageError(few if texts else f"There is no {what} yet.")
    return texts[number - 1], f"the last {what}" if number == 1 else f"{what} {number} from the end"
