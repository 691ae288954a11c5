"""/btw: ask a question beside the conversation."""

from __future__ import annotations

from nca.terminal.commands.command import App, Command


class BtwCommand(Command):
    name = "btw"
    usage = "/btw QUESTION"
    about = "Ask beside the work: an answer from what is in the context, which stays as it is"

    async def run(self, app: App, argument: str) -> None:
        await app.conversation.beside.ask(argument)
        app.output.notice("The context is as it was; question and answer are in the log.")


COMMAND = BtwCommand()
