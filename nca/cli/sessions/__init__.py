"""`nca sessions`: list, search, export, change, archive and delete stored sessions."""

from __future__ import annotations

import typer

from nca.cli.sessions import browsing, changing, exporting

app = typer.Typer(help="List, search, export, change, archive and delete stored sessions.", no_args_is_help=True)
app.command("list")(browsing.list_sessions)
app.command("show")(browsing.show_session)
app.command("search")(browsing.search_sessions)
app.command("changes")(browsing.show_changes)
app.command("copy")(exporting.copy_sessions)
app.command("export")(exporting.export_session)
app.command("import")(exporting.import_session)
app.command("rename")(changing.rename_session)
app.command("pin")(changing.pin_session)
app.command("unpin")(changing.unpin_session)
app.command("fork")(changing.fork_session)
app.command("archive")(changing.archive_session)
app.command("restore")(changing.restore_session)
app.command("delete")(changing.delete_session)
app.command("backup")(changing.back_up_sessions)
app.command("usage")(changing.show_usage)
app.command("vacuum")(changing.vacuum_sessions)
