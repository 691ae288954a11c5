"""The prompt: history, completion, several lines, and a status line below."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import is_searching, to_filter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_width
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.styles import DynamicStyle

from nca.errors import UsageError
from nca.humanize import clean_text
from nca.terminal.input import display
from nca.terminal.input.display import Hint, ShownText, TypedLines, give_back_rows, prompt_style, sign, typed_ahead
from nca.terminal.input.edited_line import Line
from nca.terminal.input.file_finder import written
from nca.terminal.input.history import DraftFile, HistorySuggestion, PrivateHistory, remember
from nca.terminal.input.keyboard import ESCAPE_SECONDS, Keyboard
from nca.terminal.input.keys import REWIND, completes, prompt_keys, typed_by_key
from nca.terminal.input.line_kind import pasted_text
from nca.terminal.input.pastes import FoldedPastes, PastedImages, PastedPaths
from nca.terminal.input.prompt_text import Offering, PromptText, ReturnedText, is_typed_in
from nca.terminal.input.toolbar import ToolbarStatus, toolbar
from nca.terminal.input.type_ahead import TypeAhead
from nca.terminal.interrupts import AGAIN_SECONDS, Interrupts, Leave
from nca.terminal.render.sanitize import one_line
from nca.words import Source, Span, Words, part_of, text_of, words

if TYPE_CHECKING:
    from nca.config.schema import TerminalSettings
    from nca.terminal.render.screen import Screen

_HINT_SECONDS = 6.0
_MENU_ROWS = 8
_MAX_TEXT_CHARS = 20_000
"""A longer text from an editor is folded, since it would slow the prompt down."""


class Prompt:
    """Reads what a person types; one object for the whole session. `type_ahead` has the keys of between two prompts."""

    def __init__(
        self,
        settings: TerminalSettings,
        directory: Path,
        history: History,
        pastes: FoldedPastes,
        text: PromptText,
        draft: DraftFile,
        interrupts: Interrupts,
    ) -> None:
        """`directory` is where `@path` begins. `text` is the prompt's text, with the source of each part."""
        self._settings, self._directory, self._history = settings, directory, history
        self._pastes, self._text, self._draft = pastes, text, draft
        self._put: Span | None = None
        """Text that is being inserted by something other than a typed key."""
        self._is_told = False
        """The text is being changed to what `_text` is already."""
        self._paths = PastedPaths(directory, pastes.unfold, self._draw_again)
        self._interrupts = interrupts
        self._returned, self._images, self._keyboard = ReturnedText(), PastedImages(), Keyboard()
        self._status: ToolbarStatus | None = None
        self._screen: Screen | None = None
        self._hint = Hint(self._draw_again)
        self._has_stood = False
        self._left_over: Words = ()
        """The text of a prompt that a signal ended."""
        self._editing: asyncio.Task[None] | None = None
        self.next_mode: Callable[[], None] = lambda: None
        self.type_ahead = TypeAhead(
            self._keyboard,
            interrupts,
            self._is_vi,
            pastes=pastes,
            pasted=partial(pasted_text, directory=directory, pastes=pastes),
            note=draft.note_ahead,
            on_unknown=lambda: self.hint("That key works at the prompt only."),
        )
        self._session: PromptSession[str] = self._create_session()

    def _is_vi(self) -> bool:
        return self._settings.keys == "vi"

    def apply(self, settings: TerminalSettings) -> None:
        """Use these settings from the next `read` on."""
        self._settings = settings

    def serve(self, completer: Callable[[Offering], Completer], next_mode: Callable[[], None]) -> None:
        """Suggest what this completer finds, even in a prompt that is already shown; Shift-Tab calls `next_mode`."""
        self._session.completer = self.type_ahead.completer = completer(self._text.offer)
        self.next_mode = self.type_ahead.next_mode = next_mode

    def show_status(self, status: ToolbarStatus) -> None:
        """Show a status below the prompt."""
        self._status = status
        self._draw_again()

    def hint(self, text: str) -> None:
        """Show a line for a moment, below the prompt or below what nca does."""
        self._hint.show(text, _HINT_SECONDS)

    def close(self) -> None:
        """Keep unsent text, and remove pasted images: sent messages hold them."""
        self.keep_unsent()
        self._images.close()

    def keep_unsent(self) -> tuple[list[str], bool]:
        """The unsent text, and whether the history on disk has it now, so that Up brings it back."""
        said = [one for one in (self._left_over, *self.type_ahead.take_unsent()) if text_of(one).strip()]
        self._left_over = ()
        kept = [isinstance(self._history, PrivateHistory) and self._history.keep(one) for one in said]
        self._draft.write()
        return [text_of(one) for one in said], all(kept)

    async def read(self, default: Words = ()) -> Words:
        """Return the typed and pasted text. Raises EOFError for Ctrl-D, Leave(130) for Ctrl-C twice."""
        self._hint.show("")
        self._session.app.editing_mode = EditingMode.VI if self._is_vi() else EditingMode.EMACS
        self._keyboard.parser.was_flushed = False  # what comes next was typed ahead
        self._has_stood = False
        line = Line(self._pastes.refold(default))
        if (held := self.type_ahead.offer(line.said)) is not None:
            # Typing replaces it, and then Up brings it back.
            remember(held, self._history, self._text)
            line = Line(held)
        elif not default:
            line = self.type_ahead.take_open()
        self._returned.begin(held or default, was_sent=held is not None and not default)
        self._text.become(line.said)
        self._paths.look(line.said)
        shown = Document(line.text, line.place)
        prompting = self._session.prompt_async(default=shown, handle_sigint=False, pre_run=self._note_standing)
        reading = asyncio.ensure_future(prompting)
        try:
            return self._taken(await asyncio.shield(reading))
        except asyncio.CancelledError:
            # First the editor: the prompt would wait for it.
            if self._editing is not None:
                self._editing.cancel()
            reading.cancel()
            await asyncio.wait([reading])
            self._left_over = self._taken(self._session.default_buffer.text)
            raise

    def _taken(self, text: str) -> Words:
        """The text that leaves the prompt, with pastes unfolded."""
        said = self._text.said_of(text)
        self._text.known.add(said)
        self._text.become(())
        self._draft.write()
        self._paths.begin()
        self._returned.sent()
        return tuple(Span(clean_text(span.text), span.source) for span in self._pastes.unfold(said))

    @property
    def gives_way(self) -> bool:
        return self._returned.gives_way

    def clear(self, buffer: Buffer) -> None:
        buffer.save_to_undo_stack()
        buffer.append_to_history()
        self._text.known.add(self._text.said)
        self._show(buffer, ())

    def _note_key(self, _: object) -> None:
        app = self._session.app
        if app.renderer.last_rendered_screen and not app.key_processor.key_buffer:  # no Ctrl-L, no part of a key
            self._returned.gives_way = False

    def _note_standing(self) -> None:
        self._has_stood = True

    @property
    def is_sent(self) -> bool:
        """Enter was pressed in the current prompt, or the last one."""
        return not self._session.app.is_running or self._session.app.is_done

    def erase_when_sent(self, is_erased: bool) -> None:
        """Whether a line that is sent leaves the screen."""
        self._session.app.erase_when_done = is_erased

    async def drawn(self) -> None:
        """Wait until the prompt is on the screen."""
        await display.drawn(self._session.app)

    def interrupt(self) -> bool:
        """Handle a SIGINT like Ctrl-C. False: Enter was quicker, so it is meant for the work that begins."""
        app = self._session.app
        if app.is_running and not app.is_done:
            app.key_processor.send_sigint()
            return True
        return not self._has_stood

    @contextmanager
    def typing_ahead(self, screen: Screen) -> Iterator[None]:
        """While nca works, keep keys for the next `read`. The tail is cleared when Ctrl-Z suspends the program."""
        self._screen = screen
        self._hint.show("")
        try:
            with self.type_ahead.collecting():
                yield
        finally:
            self._screen = None

    @contextmanager
    def lent_terminal(self, *, is_quiet: bool = False, is_typed_kept: bool = False) -> Iterator[None]:
        """While another program, such as an editor, has the terminal, or a list of nca's own (`TypeAhead.lent`)."""
        if not (is_quiet or is_typed_kept):  # those write no text
            self._returned.written()
        with self._interrupts.lent(), self.type_ahead.lent(is_quiet=is_quiet, is_typed_kept=is_typed_kept):
            yield

    def suspend(self) -> None:
        """Suspend the program as Ctrl-Z does; the shell's `fg` continues it."""
        if self._session.app.is_running:
            run_in_terminal(partial(self._keyboard.in_line_mode, self.type_ahead.suspend))
            return
        if self._screen is not None:
            self._screen.clear_tail()
        self.type_ahead.suspend()

    def typed_ahead_lines(self, *, is_turn: bool) -> TypedLines:
        """The text typed while nca works, and the effect of a key."""
        if self.type_ahead.is_lent:
            return TypedLines()
        self._draft.write_entered()
        size = self._session.app.output.get_size()
        return typed_ahead(self.type_ahead.typed(), self._hint.text, size, is_turn=is_turn)

    def labelled(self, text: str) -> str:
        """A text that was sent, with labels in place of long pastes."""
        return self._pastes.shown(text_of(self._pastes.refold(words(text))))

    def above(self, write: Callable[[], None]) -> None:
        display.write_above(self._session.app, write)

    def _create_session(self) -> PromptSession[str]:
        session: PromptSession[str] = PromptSession(
            message=self._message,
            prompt_continuation=lambda width, *_: [("class:continuation", " " * width)],
            multiline=True,
            complete_while_typing=completes(self),
            reserve_space_for_menu=_MENU_ROWS,
            auto_suggest=HistorySuggestion(self._text),
            input_processors=[ShownText(self._pastes, lambda: fragment_list_width(self._message())), self._returned],
            history=self._history,
            bottom_toolbar=self._toolbar,
            key_bindings=prompt_keys(self),
            search_ignore_case=True,
            style=DynamicStyle(lambda: prompt_style(self._settings.theme)),
            include_default_pygments_style=False,
            input=self._keyboard,
            output=display.terminal_output(),
        )
        # Set here: PromptSession would take it for a reason not to complete while a person types.
        session.default_buffer.enable_history_search = to_filter(True)
        session.default_buffer.on_text_changed += self._note_change
        session.app.ttimeoutlen = ESCAPE_SECONDS
        give_back_rows(session.app)
        session.app.key_processor.after_key_press += self._note_key
        return session

    def _message(self) -> StyleAndTextTuples:
        """The sign before the text, with the mode for vi keys."""
        return sign(self._session.app)

    def _toolbar(self) -> StyleAndTextTuples:
        width = self._session.app.output.get_size().columns
        waiting = display.waiting(self.type_ahead.held, width - 2, is_empty=not self._session.default_buffer.text)
        lines = [waiting, self._paths.line(width - 2), hint := self._hint.text or self._returned.hint]
        above = "\n".join(f" {line}" for line in lines if line)
        rows: StyleAndTextTuples = [("class:hint", above)] if above else []
        if hint or self._status is None:
            return rows
        return [*rows, ("", "\n" if above else ""), *toolbar(self._status, width)]

    @property
    def is_lone_escape(self) -> bool:
        """The Escape at hand was pressed by itself."""
        return self._keyboard.parser.was_flushed

    def paste(self, buffer: Buffer, pasted: str) -> None:
        if self.gives_way:
            self.clear(buffer)
        if is_searching():
            buffer.insert_text(pasted.partition("\n")[0].partition("\r")[0])
        else:
            text = pasted_text(buffer.document.text_before_cursor, pasted, self._directory, self._pastes)
            self._insert(buffer, text, "pasted")

    def attach_pasted(self, event: KeyPressEvent) -> None:
        """Attach the files that the pasted text names, or none of them again."""
        said = self._paths.toggled(self._text.said)
        if said is None:
            self.hint("The pasted text names no file with @.")
            return
        self._show(event.current_buffer, self._pastes.refold(said), event.current_buffer.cursor_position)

    @property
    def has_pasted(self) -> bool:
        """Whether something in the prompt was pasted, or is attached because it was."""
        return not is_typed_in(self._text.said) or bool(self._paths.line())

    def rewind(self, event: KeyPressEvent) -> None:
        # It is not a line for the history.
        self._insert(event.current_buffer, REWIND, "typed")
        event.app.exit(result=REWIND)

    def _insert(self, buffer: Buffer, text: str, source: Source) -> None:
        """Insert a text with a known source. No menu opens over it."""
        self._put = Span(text, source)
        try:
            buffer.insert_text(text, fire_event=False)
        finally:
            self._put = None

    def _show(self, buffer: Buffer, said: Words, cursor: int | None = None) -> None:
        """Put words in the place of the whole text, with the cursor at its end, or where it is to be."""
        self._text.become(said)
        self._is_told = True
        try:
            buffer.document = Document(text_of(self._text.said), cursor)
        finally:
            self._is_told = False
        self._paths.look(self._text.said)

    def _note_change(self, buffer: Buffer) -> None:
        """Keep who said what of the text, which has changed."""
        if self._is_told:
            return
        self._text.change(buffer.text, buffer.cursor_position, self._put or typed_by_key(buffer, self._text.said))
        self._paths.look(self._text.said)

    def paste_image(self, event: KeyPressEvent) -> None:
        event.app.create_background_task(self._take_image(event.current_buffer))

    async def _take_image(self, buffer: Buffer) -> None:
        path = await asyncio.to_thread(self._images.take)
        if path is None:
            self.hint("There is no image on the clipboard; text is pasted by the terminal's own key.")
            return
        blank = "" if buffer.document.text_before_cursor[-1:].isspace() or not buffer.text else " "
        # Their own key, and a file that nca made.
        self._insert(buffer, f"{blank}@{written(str(path))} ", "typed")

    def edit(self, event: KeyPressEvent) -> None:
        if self._editing is None or self._editing.done():
            self._editing = event.app.create_background_task(self._edit_outside(event.current_buffer))

    async def _edit_outside(self, buffer: Buffer) -> None:
        """Edit the text in the person's editor. The prompt's undo restores the text of before."""
        from nca.terminal.input.editor import edited_words

        try:
            async with in_terminal():
                with self._keyboard.line_mode():
                    said = await edited_words(self._pastes.unfold(self._text.said), self.lent_terminal())
        except UsageError as error:
            self.hint(one_line(str(error)))
            return
        said = self._pastes.refold(part_of(said, 0, len(text_of(said).rstrip("\n"))))
        if len(text_of(said)) > _MAX_TEXT_CHARS:
            said = self._pastes.fold(said)
        buffer.save_to_undo_stack()
        self._show(buffer, said)

    def on_interrupt_key(self, event: KeyPressEvent) -> None:
        buffer = event.app.current_buffer
        dropped = [] if buffer.text else self.type_ahead.drop_held()
        for said in dropped:
            remember(said, self._history, self._text)
        if buffer.text or dropped:
            # Emptied, not lost: Up brings it back.
            buffer.append_to_history()
            buffer.reset()
            self._taken(text_of(self._text.said))
            return
        if self._interrupts.is_leaving():
            event.app.exit(exception=Leave(130))
            return
        self._hint.show("Ctrl-C again or Ctrl-D leaves", AGAIN_SECONDS)

    def _draw_again(self) -> None:
        if self._session.app.is_running:
            self._session.app.invalidate()
