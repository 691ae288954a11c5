"""Repositories that would make git start a program or show what lies elsewhere, one trick each.

CONFIGS are settings behind those of an ordinary repository. LINKS are names below `.git` that become a link to the same
name in another repository, FILES what is written below `.git`. No git command may run unasked in any of them.
"""

from __future__ import annotations

_PROGRAM_KEYS = (
    *(
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.askPass",
        "core.sshCommand",
        "core.hooksPath",
        "core.gitProxy",
    ),
    *(
        "core.alternateRefsCommand",
        "core.attributesFile",
        "core.excludesFile",
        "core.worktree",
        "core.sharedRepository",
    ),
    *("diff.external", "diff.x.textconv", "diff.x.command", "diff.x.cachetextconv", "diff.tool", "diff.orderFile"),
    *(
        "filter.x.clean",
        "filter.x.smudge",
        "filter.x.process",
        "filter.x.required",
        "merge.x.driver",
        "mergetool.x.cmd",
    ),
    *("difftool.x.cmd", "gpg.program", "gpg.openpgp.program", "gpg.x509.program", "gpg.ssh.program", "gpg.format"),
    *("gpg.ssh.defaultKeyCommand", "gpg.ssh.allowedSignersFile", "log.showSignature", "log.mailmap", "mailmap.file"),
    *("mailmap.blob", "format.pretty", "pretty.x", "pager.log", "pager.status", "sequence.editor", "credential.helper"),
    *(
        "credential.x.helper",
        "alias.log",
        "alias.status",
        "include.path",
        "includeIf.gitdir:/.path",
        "remote.origin.vcs",
    ),
    *("remote.origin.promisor", "remote.origin.uploadpack", "remote.origin.receivepack", "remote.origin.proxy"),
    *("extensions.partialClone", "extensions.worktreeConfig", "extensions.refStorage", "protocol.ext.allow"),
    *(
        "submodule.x.update",
        "submodule.x.url",
        "submodule.recurse",
        "url.ext::x.insteadOf",
        "uploadpack.packObjectsHook",
    ),
    *(
        "interactive.diffFilter",
        "blame.ignoreRevsFile",
        "trailer.x.command",
        "trailer.x.cmd",
        "browser.x.cmd",
        "man.x.cmd",
    ),
    *(
        "web.browser",
        "guitool.x.cmd",
        "init.templateDir",
        "commit.template",
        "fetch.fsckObjects",
        "http.proxy",
        "http.cookieFile",
    ),
    *(
        "http.sslCert",
        "sendemail.smtpServer",
        "imap.tunnel",
        "instaweb.httpd",
        "trace2.eventTarget",
        "notes.displayRef",
    ),
    *("safe.directory", "status.submoduleSummary", "diff.submodule", "diff.ignoreSubmodules", "log.diffMerges"),
)


def _config(key: str) -> str:
    section, _, rest = key.partition(".")
    part, dot, name = rest.rpartition(".")
    return f'[{section} "{part}"]\n\t{name} = ./evil\n' if dot else f"[{section}]\n\t{name} = ./evil\n"


CONFIGS = {key: _config(key) for key in _PROGRAM_KEYS} | {
    "key behind its section": "[core] fsmonitor = ./evil\n",
    "key behind its section, closed": "[core] fsmonitor = ./evil #]\n",
    "key behind a part": '[remote "x"] uploadpack = "./evil"]\n',
    "part with a quote": '[remote "x\\"] a"]\n\turl = x\n',
    "line that goes on": "[core]\n\tbare = false \\\n\tfsmonitor = x\n",
    "capitals": "[CORE]\n\tFsMonitor = ./evil\n",
    "no value": "[core]\n\tfsmonitor\n",
    "carriage returns": "[core]\r\tfsmonitor = ./evil\n",
    "mark of byte order": "\ufeff[core]\n\tfsmonitor = x\n",
    "old form of a part": "[filter.x]\n\tclean = ./evil\n",
    "nothing known": "[nobody]\n\tknows = 1\n",
    "key before any section": "fsmonitor = x\n",
    "another blank": "[core]\n\u00a0fsmonitor = x\n",
    "comment that ends": "[core] # x\n\tfsmonitor = x\n",
    "empty section": "[]\n\tx = y\n",
    "NUL": "[core]\n\tbare = false\0\n\tfsmonitor = x\n",
    "too long": "[core]\n" + "\tbare = false\n" * 20_000,
}

LINKS = (
    *(
        "HEAD",
        "config",
        "index",
        "description",
        "info",
        "info/exclude",
        "objects",
        "objects/info",
        "objects/pack",
        "logs",
    ),
    *(
        "logs/HEAD",
        "logs/refs",
        "logs/refs/heads",
        "logs/refs/heads/main",
        "refs",
        "refs/heads",
        "refs/heads/main",
        "refs/tags",
    ),
    *(
        "refs/tags/v1",
        "refs/remotes",
        "refs/notes",
        "packed-refs",
        "COMMIT_EDITMSG",
        "ORIG_HEAD",
        "MERGE_HEAD",
        "refs/stash",
    ),
    *(
        "objects/{a commit}",
        "objects/{a folder}",
        "refs/heads/deep/er",
        "worktrees",
        "shallow",
        "refs/replace",
        "sharedindex.x",
    ),
    *("rebase-merge", "BISECT_LOG", "info/attributes", "info/sparse-checkout", "objects/info/commit-graph"),
)

FILES = {
    "commondir": "../../other/.git\n",
    "config.worktree": "[core]\n\tfsmonitor = ./evil\n",
    "objects/info/alternates": "../../../other/.git/objects\n",
    "info/grafts": "x\n",
}
