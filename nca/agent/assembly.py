"""Build the parts of a conversation, in order: each gets all that it needs when it is built."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, NamedTuple, get_args

from nca.agent.approvals import Approvals, Nobody, Person, SavedRules
from nca.agent.archive import Archive
from nca.agent.background import Background
from nca.agent.fallbacks import Fallbacks
from nca.agent.hooks import Hooks
from nca.agent.instructions import ProjectPrompts
from nca.agent.mcp import ServerRequests
from nca.agent.memory import Memory
from nca.agent.parts import ConversationParts
from nca.agent.project_instructions import NestedInstructions
from nca.agent.spending import Spending
from nca.agent.state import SessionState
from nca.agent.subtask import Subtasks
from nca.agent.tool_selection import own_toolbox
from nca.agent.user_input import UserInput
from nca.agent.window import Window
from nca.config.loaded import LoadedSettings
from nca.context.view import is_in
from nca.errors import UsageError
from nca.events import Listener, Notice
from nca.file_history.history import FileHistory
from nca.humanize import check_choice, check_kind
from nca.models.choose import open_model
from nca.models.model import Model
from nca.models.providers import known_secrets
from nca.redact import Redactor
from nca.sessions.session import Kind, Session
from nca.sessions.store import Store
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.text_file import unsaved_among
from nca.tools.mcp.servers import Servers
from nca.tools.planning import CompactionWish
from nca.tools.shell.jobs import Jobs
from nca.tools.tool import Editor, Tool
from nca.tools.toolbox import Toolbox, ToolContext


class Given(NamedTuple):
    """Arguments of Conversation.open: its tools, and what they and the compactor may do."""

    toolbox: Toolbox | None
    tools: Sequence[Tool]
    prepares: bool
    sees_all: bool


def assemble(
    loaded: LoadedSettings,
    store: Store,
    session: Session,
    model: Model,
    directory: Path,
    person: Person,
    emit: Listener,
    given: Given,
) -> ConversationParts:
    """All parts of one conversation, from the arguments of Conversation.open. Raises ConfigError as it does."""
    state = SessionState(store, session, loaded, model.facts, is_chat=not isinstance(person, Nobody))
    memory = Memory(state, directory)
    archive = Archive(state, memory, sees_all=given.sees_all)
    redactor = Redactor(secrets_of(loaded))
    prompts = ProjectPrompts(directory, redactor, tools=given.toolbox.names if given.toolbox else None, env=loaded.env)
    prompt = prompts.of(state.settings, state.facts)
    outputs, files_read, wish = store.outputs_folder(session.info.id), FilesRead(), CompactionWish()
    subtasks, jobs, files = Subtasks(prompt.agents), _jobs(state, emit), _file_history(state, directory, person.editor)
    # A fork names the files of the session that it came from: where other sessions may be read, so may their outputs.
    read = (outputs.parent if given.sees_all else outputs,) if outputs else ()
    tool_context = ToolContext(
        readable=lambda: read,
        files_read=files_read,
        skills=prompt.skills,
        subtasks=subtasks,
        recorder=files.recorder,
        jobs=jobs,
        wish=wish,
        editor=person.editor,
    )
    box = (given.toolbox or own_toolbox(state, directory, archive, outputs, tool_context)).with_tools(given.tools)
    window = Window(state, box, prompts.of)
    models = Fallbacks(model, lambda name: open_model(name, state.loaded, emit), window.use_model, emit)
    hooks = Hooks(window, directory, emit, redactor, models, files.recorder)
    approvals = Approvals(state, directory, SavedRules(window), emit, person)
    spending = Spending(window, emit)
    host = ServerRequests(directory, window, models, spending, approvals, emit)
    servers = Servers(
        lambda: state.settings.mcp, directory, lambda: state.can_see, emit, files.recorder, host, loaded.env
    )
    has_own, reading = state.settings.agent.use_claude_home, state.reading(directory)
    parts = ConversationParts(
        directory=directory,
        window=window,
        toolbox=box,
        models=models,
        compactor=Background(
            window, models, emit, memory, prepares=given.prepares, hooks=hooks, files=files, wish=wish
        ),
        spending=spending,
        approvals=approvals,
        redactor=redactor,
        archive=archive,
        outputs=outputs,
        nested=NestedInstructions(directory, redactor, reading, has_own=has_own),
        hooks=hooks,
        files=files,
        jobs=jobs,
        user_input=UserInput(window, directory, redactor, emit, files_read, servers, person, hooks, jobs, files),
        emit=emit,
        memory=memory,
        servers=servers,
    )
    subtasks.serve(parts)
    return parts


def check_arguments(*given: Any, session: Any, kind: Any) -> None:
    """Raise UsageError for an argument of Conversation.open that has the wrong type, or names no session.

    given  in the order of _ARGUMENTS
    """
    for value, name in zip(given, _ARGUMENTS, strict=True):
        if value is not None or name not in _OPTIONAL:
            check_argument(value, name)
    check_kind(session, str | None, "session", "an id")
    if session == "":
        raise UsageError("session: is empty; valid: an id, its beginning, or None for a new session.")
    check_choice(kind, get_args(Kind), "kind")


def check_argument(value: Any, name: str) -> None:
    """Raise UsageError for one of _ARGUMENTS that has the wrong type."""
    wanted, words = _ARGUMENTS[name]
    check_kind(value, wanted, name, words)
    if name == "listener" and iscoroutinefunction(value):
        raise UsageError("listener: is asynchronous; valid: a function that returns at once, as put_nowait of a queue.")


_OPTIONAL = ("listener", "toolbox", "person")
_ARGUMENTS: dict[str, tuple[Any, str]] = {
    "loaded": (LoadedSettings, "settings of nca.load_settings"),
    "store": (Store, "an nca.Store"),
    "model": (Model, "a model of nca.open_model, or one of your own (nca.Model)"),
    "listener": (Callable, "a function that takes an event"),
    "toolbox": (Toolbox, "an nca.Toolbox"),
    "tools": (list | tuple, "a list of tools"),
    "person": (Person, "an nca.Person"),
}


def secrets_of(loaded: LoadedSettings) -> dict[str, str]:
    """The keys in the environments of process and settings, and in the variables that commands get, by name."""
    variables = dict(one.split("=", 1) for one in loaded.settings.tools.variables)
    return known_secrets({**os.environ, **loaded.env, **variables})


def _jobs(state: SessionState, emit: Listener) -> Jobs:
    return Jobs(
        lambda job: emit(Notice(f"Job {job.number} has ended ({job.state}): {job.name}")),
        head=lambda: state.history.head,
        is_left=lambda seq: is_in(seq, state.history.view.aside),
    )


def _file_history(state: SessionState, directory: Path, editor: Editor | None) -> FileHistory:
    return FileHistory(
        state.store,
        state.session.info.id,
        directory,
        head=lambda: state.history.head,
        limits=lambda: state.settings.rewind,
        unsaved=partial(unsaved_among, editor.files) if editor and editor.files else lambda _: (),
    )
