"""Which files a Python script changes, where its text says so without doubt. Models often edit files with a script.

Statements that run in any case are read. What a condition, a `try` or a loop over unknown values does is in doubt: a
file that may be changed there is not named.
"""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from posixpath import join, normpath

from nca.context.record.changes import MOVED_TO, Change, is_named, undone_by

MOST_CHARS = 100_000
"""A longer script is data rather than steps."""
MOST_STEPS = 50_000
"""Parts of statements that are looked at, each as often as it runs."""
MOST_DEPTH = 20
_WRITES = ("write_text", "write_bytes")
_READS = ("read_text", "read_bytes")
_DELETES = ("os.remove", "os.unlink", "shutil.rmtree")
_MOVES = ("os.rename", "os.replace", "shutil.move")
_COPIES = ("shutil.copy", "shutil.copy2", "shutil.copyfile")
_LEAVES = ("exit", "quit", "sys.exit", "os._exit", "SystemExit", "os.chdir")
"""Behind these nothing runs, or in another folder."""
_MAY_FAIL_UNSEEN = ("contextlib.suppress", "suppress", "pytest.raises")
_OPENS = ("open", "io.open", "codecs.open")
_MAY_NOT_RUN = (ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


class _Path(str):
    """The value of a `pathlib.Path`."""

    __slots__ = ()


class _End(Exception):  # not an error
    """What follows is not known: the script leaves, or may leave."""


class _TooLong(Exception):  # not an error
    """It would take too long to read."""


def changes_by_python(text: str) -> Iterator[Change]:
    """The changes in their order. Nothing of a script that cannot be read."""
    if len(text) > MOST_CHARS:
        return iter(())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            script = ast.parse(text)
        return _Script().read(script.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, _TooLong):
        return iter(())


class _Script:
    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        """The texts and paths that names stand for."""
        self._functions: dict[str, ast.FunctionDef] = {}
        self._changes: list[Change] = []
        self._is_read: set[str] = set()
        self._in_doubt: set[str] = set()
        self._replaced = "", ""
        """The last text that was replaced, and what it was replaced by."""
        self._awaits_text = False
        """The newest change opened a file, and what it writes there is not known yet."""
        self._steps = self._depth = 0

    def read(self, statements: Sequence[ast.stmt]) -> Iterator[Change]:
        with contextlib.suppress(_End):
            self._run(statements)
        return (change for change in self._changes if not is_named(change, self._in_doubt))

    def _run(self, statements: Sequence[ast.stmt]) -> None:
        for place, statement in enumerate(statements):
            self._count()
            try:
                self._step(statement)
            except _End:
                self._doubt(statements[place + 1 :])
                raise

    def _count(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise _TooLong

    def _step(self, statement: ast.stmt) -> None:
        match statement:
            case ast.FunctionDef():
                self._functions[statement.name] = statement
            case ast.If() if _is_main(statement.test):
                self._run(statement.body)
            case ast.With(items=items) if not any(_called(item.context_expr) in _MAY_FAIL_UNSEEN for item in items):
                for item in items:
                    self._evaluate(item)
                    self._assign(item)
                self._run(statement.body)
            case ast.For() if (rounds := self._rounds(statement)) is not None:
                for values in rounds:
                    self._values |= values
                    self._run(statement.body)
            case ast.If() | ast.With() | ast.For() | ast.While() | ast.Try() | ast.Match():
                if self._doubt([statement]):
                    raise _End
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                self._evaluate(statement)
                raise _End
            case ast.ClassDef() | ast.AsyncFunctionDef():
                pass
            case _:
                self._evaluate(statement)
                self._assign(statement)

    def _rounds(self, loop: ast.For) -> list[dict[str, str]] | None:
        """What each round of a loop over values that are written there gives its names; None for another loop."""
        if not isinstance(loop.iter, ast.Tuple | ast.List) or loop.orelse:
            return None
        return [self._given(loop.target, value) for value in loop.iter.elts]

    def _given(self, target: ast.expr, value: ast.expr) -> dict[str, str]:
        """What an assignment gives its names, as far as it is known; what is not takes their values away."""
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            pairs = zip(target.elts, value.elts, strict=False)
            return {name: given for one, other in pairs for name, given in self._given(one, other).items()}
        known = self._value(value) if isinstance(target, ast.Name) else ""
        return {one.id: known for one in ast.walk(target) if isinstance(one, ast.Name)}

    def _assign(self, statement: ast.AST) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for given in [self._given(target, value) for target in targets]:
                    self._values |= given
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._values |= self._given(target, value)
            case _:
                stored = (one for one in ast.walk(statement) if isinstance(one, ast.Name))
                self._values |= {one.id: "" for one in stored if not isinstance(one.ctx, ast.Load)}

    def _value(self, node: ast.expr) -> str:
        """A text or a path that is written there; "" for anything else."""
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.Name(id=name):
                return self._values.get(name, "")
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined(left, right) if isinstance(self._value(left), _Path) else ""
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self._value(left), self._value(right)
                return first + second if first and second else ""
            case ast.JoinedStr(values=parts):
                texts = [self._value(part) for part in parts]
                return "".join(texts) if all(texts) else ""
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._value(value)
            case ast.Call(args=[*parts], keywords=[]) if parts and _called(node) in ("Path", "pathlib.Path"):
                return self._joined(*parts)
            case ast.Call(args=[value], keywords=[]) if _called(node) == "str":
                return str(self._value(value))
            case ast.Call(args=[*parts], keywords=[]) if parts and _called(node) == "os.path.join":
                return str(self._joined(*parts))
        return ""

    def _joined(self, *parts: ast.expr) -> _Path:
        values = [self._value(part) for part in parts]
        return _Path(join(*values) if all(values) else "")

    def _evaluate(self, node: ast.AST) -> None:
        """Note what the calls in it do, the inner ones first."""
        self._count()
        if isinstance(node, _MAY_NOT_RUN):
            if self._doubt([node]):
                raise _End
            return
        for inner in ast.iter_child_nodes(node):
            self._evaluate(inner)
        if isinstance(node, ast.Call):
            self._call(node)

    def _call(self, call: ast.Call) -> None:
        name = _called(call)
        if name in _LEAVES:
            raise _End
        if name in self._functions:
            self._call_own(self._functions[name], call)
            return
        if len(call.args) > 1 and name.endswith((".replace", "re.sub")) and name not in _MOVES:
            old, new = map(self._value, call.args[:2])
            self._replaced = ("" if name == "re.sub" else old), new
        made, method = list(self._changes_by(name, call)), name.rpartition(".")[2]
        for change in made:
            self._forget(change)
        made = [change for change in made if change.path and change.verb]
        self._changes += made
        if method in ("open", *_WRITES):
            self._awaits_text = bool(made)
        if method in ("write", *_WRITES) and call.args:
            self._note_text(self._value(call.args[0]))

    def _forget(self, change: Change) -> None:
        """Drop what this change may undo."""
        if undone := undone_by(change, self._changes):
            self._changes = [one for one in self._changes if one not in undone]

    def _note_text(self, text: str) -> None:
        """What was written to the file that was opened last, or else the newest replacement in an edited one."""
        if self._awaits_text:
            is_edited = self._changes[-1].verb == "edited"
            old, new = ("", text) if text else self._replaced if is_edited else ("", "")
            self._changes[-1] = self._changes[-1]._replace(new=new, old=old)
        self._awaits_text, self._replaced = False, ("", "")

    def _call_own(self, function: ast.FunctionDef, call: ast.Call) -> None:
        """Read a function of the script with what it is given."""
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        before, given = self._values, dict.fromkeys(names, "")
        given |= {name: self._value(value) for name, value in zip(names, call.args, strict=False)}
        given |= {one.arg: self._value(one.value) for one in call.keywords if one.arg}
        self._values = before | given
        self._depth += 1
        try:
            if self._depth > MOST_DEPTH:
                raise _TooLong
            body = function.body
            if any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(function)):
                self._doubt_call(function, call)
                return
            # A return at its end ends nothing but the function.
            ends = isinstance(body[-1], ast.Return)
            self._run(body[:-1] if ends else body)
            if ends:
                self._evaluate(body[-1])
        finally:
            self._values = before
            self._depth -= 1

    def _changes_by(self, name: str, call: ast.Call) -> Iterator[Change]:
        """What one call does to files that are known."""
        texts = [self._value(one) for one in (*call.args, ast.Constant(""), ast.Constant(""))]
        owner = self._value(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        method = name.rpartition(".")[2]
        if name in _OPENS or (method == "open" and isinstance(owner, _Path)):
            path, *rest = texts if name in _OPENS else (owner, *texts)
            mode = next((self._value(one.value) for one in call.keywords if one.arg == "mode"), rest[0])
            yield from self._opened(path, mode)
        elif isinstance(owner, _Path) and method == "touch":
            yield Change(_normal(owner), "written")
        elif isinstance(owner, _Path) and method in _WRITES:
            yield from self._opened(owner, "w")
        elif isinstance(owner, _Path) and method in _READS:
            self._is_read.add(_normal(owner))
        elif name in _DELETES or (isinstance(owner, _Path) and method == "unlink"):
            yield Change(_normal(texts[0] if name in _DELETES else owner), "deleted")
        elif name in _MOVES or (isinstance(owner, _Path) and method in ("rename", "replace")):
            source, target = texts[:2] if name in _MOVES else (owner, texts[0])
            yield Change(_normal(source), f"{MOVED_TO}{_normal(target)}" if target else "")
        elif name in _COPIES:
            yield Change(_normal(texts[1]), "written", f"copied from {texts[0]}")

    def _opened(self, path: str, mode: str) -> Iterator[Change]:
        is_known = _normal(path) in self._is_read
        if set("wax+") & set(mode):
            yield Change(_normal(path), "edited" if is_known or set("a+") & set(mode) else "written")
        elif path:
            self._is_read.add(_normal(path))

    def _doubt(self, nodes: Iterable[ast.AST]) -> bool:
        """Files that may be changed there are in doubt, and names that may be given there; whether it may leave."""
        may_leave = False
        for node in [inner for one in nodes for inner in ast.walk(one)]:
            self._count()
            if isinstance(node, ast.Call):
                name = _called(node)
                may_leave = may_leave or name in _LEAVES
                for change in self._changes_by(name, node):
                    self._forget(change)
                    self._in_doubt |= {change.path, change.target} - {""}
                if name in self._functions:
                    self._doubt_call(self._functions[name], node)
            elif isinstance(node, ast.Name):
                may_leave = may_leave or node.id == "SystemExit"
                if not isinstance(node.ctx, ast.Load):
                    self._values[node.id] = ""
            may_leave = may_leave or isinstance(node, ast.Return | ast.Break | ast.Continue)
        return may_leave

    def _doubt_call(self, function: ast.FunctionDef, call: ast.Call) -> None:
        """Whatever this call of a function of the script may name is in doubt."""
        for node in [*ast.walk(call), *ast.walk(function)]:
            self._count()
            if isinstance(node, ast.expr) and (value := self._value(node)):
                self._in_doubt.add(_normal(value))


def _normal(path: str) -> str:
    return normpath(path) if path else ""


def _dotted(node: ast.expr) -> str:
    """`a.b.c` of a name; `.c` for an attribute of anything else; "" where it has no name."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _called(node: ast.expr) -> str:
    """What a call calls; "" for anything else."""
    return _dotted(node.func) if isinstance(node, ast.Call) else ""


def _is_main(test: ast.expr) -> bool:
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")
