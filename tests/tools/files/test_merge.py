"""Changed code in a file: what has the same name is replaced, what is new is added, and the rest stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.tools.files.merge import merged
from nca.tools.tool import ToolError

ITEMS = "import math\n\n\ndef last(items):\n    return items[len(items)]\n\n\ndef first(items):\n    return items[0]\n"
QUEUE = (
    "class Queue:\n    def __init__(self):\n        self.items = []\n\n    @property\n    def size(self):\n"
    "        return 0\n\n    def pop(self):\n        return self.items.pop(0)\n\n\nif __name__ == '__main__':\n    "
    "print(1)\n"
)
COLORS = "COLORS = {\n    'red': 1,\n    'green': 2,\n}\n\n\ndef color(name):\n    return COLORS[name]\n"
GETTER = "class A:\n    @property\n    def x(self):\n        return 1\n\n"
SETTER = "    @x.setter\n    def x(self, new):\n        y = 2"
TOML = '[server]\nport = 8000\n\n[log]\nlevel = "info"\nfile = "a.log"\n'
JSON = '{\n  "name": "x",\n  "scripts": {\n    "test": "jest"\n  }\n}\n'


@pytest.mark.parametrize(
    ("filename", "text", "code", "old", "new"),
    [
        ("a.py", ITEMS, "def last(items):\n    return items[-1]", "len(items)", "-1"),
        ("a.py", ITEMS, "```python\ndef last(items):\n    return items[-1]\n```", "len(items)", "-1"),
        ("a.py", ITEMS, "4\tdef last(items):\n5\t    return items[-1]", "len(items)", "-1"),
        (
            "a.py",
            ITEMS,
            "import os\n\ndef first(items):\n    return items[1]",
            "import math\n",
            "import math\nimport os\n",
        ),
        ("a.py", "A = 1\nB = 2\nC = 3\n", "B = 5", "B = 2", "B = 5"),
        ("a.py", "A = 1\n\nprint(A)\n", "print(A + 1)", "print(A)", "print(A + 1)"),
        (
            "a.py",
            'def f(a):\n    return "x" + a\n',
            "def g(a):\n    return 'x' + a",
            'f(a):\n    return "x"',
            "g(a):\n    return 'x'",
        ),
        ("a.py", "def f(a):\n    return a\n", "def g(a):\n    return a * 2", "a\n", "a\n"),
        ("a.py", QUEUE, "def pop(self):\n    return self.items.pop()", "pop(0)", "pop()"),
        ("a.py", QUEUE, "def size(self):\n    return len(self.items)", "return 0", "return len(self.items)"),
        (
            "a.py",
            QUEUE,
            "class Queue:\n    def clear(self):\n        self.items = []",
            "pop(0)\n",
            "pop(0)\n\n    def clear(self):\n        self.items = []\n",
        ),
        ("a.py", QUEUE, "def new():\n    pass", "\n\nif __", "\n\ndef new():\n    pass\n\n\nif __"),
        (
            "a.py",
            "class A:\n    a = 1\n\n    def f(self):\n        return 1\n",
            "class A:\n    a = 1\n\n    def g(self):\n        return 1",
            "f(self)",
            "g(self)",
        ),
        ("a.py", COLORS, "COLORS = {\n    'blue': 3\n}", "2,\n", "2,\n    'blue': 3,\n"),
        (
            "a.py",
            GETTER + SETTER + "\n",
            "class A:\n" + SETTER.replace("2", "3"),
            "y = 2",
            "y = 3",
        ),
        (
            "a.py",
            GETTER.rstrip("\n") + "\n",
            GETTER + SETTER,
            "return 1\n",
            "return 1\n\n" + SETTER + "\n",
        ),
        ("a.py", "class A:\n    x = 1\n", "class A(B):\n    x = 1", "A:", "A(B):"),
        ("a.py", "print()\nprint()\nprint(1)\n", "print()\nprint()\nprint(2)", "1", "2"),
        ("a.py", COLORS, "'green': 5", "2", "5"),
        ("a.py", COLORS, "COLORS['blue'] = 3", "}\n", "}\nCOLORS['blue'] = 3\n"),
        ("a.toml", TOML, '[log]\nlevel = "debug"', "info", "debug"),
        ("a.toml", TOML, 'level = "debug"', "info", "debug"),
        ("a.toml", TOML, "[server]\nhost = 'a'", "8000\n", "8000\nhost = 'a'\n"),
        ("a.json", JSON, '{\n  "scripts": {\n    "lint": "x"\n  }\n}', '"jest"', '"jest",\n    "lint": "x"'),
        ("a.json", JSON, '"version": 1', "  }\n}", '  },\n  "version": 1\n}'),
        ("a.md", "# A\n\nOne.\n\n## B\n\nTwo.\n", "# A\n\nThree.", "One", "Three"),
        ("a.js", "class A {\n  pop() {\n    return 1;\n  }\n}\n", "pop() {\n  return 2;\n}", "return 1", "return 2"),
        ("a.go", "func Pop() int {\n\treturn 1\n}\n", "func Pop() int {\n    return 2\n}", "1", "2"),
        ("a.c", "int f(int a)\n{\n    return a;\n}\n", "int f(int a)\n{\n    return 1;\n}", "return a", "return 1"),
        ("a.py", "x = 1", "x = 2", "1", "2"),
        ("a.py", "\n\nx = 1\n", "x = 2", "1", "2"),
    ],
)
def test_code_comes_to_its_place_and_the_rest_stays(filename: str, text: str, code: str, old: str, new: str) -> None:
    expected = text.replace(old, new, 1)
    if "first(" in code:
        expected = expected.replace("items[0]", "items[1]")
    if code.startswith("def g(a):\n    return a *"):
        expected += "\n\ndef g(a):\n    return a * 2\n"
    after, done = merged(text, code, filename)
    assert after == expected
    assert done
    # The same once more changes nothing.
    with pytest.raises(ToolError, match="already reads so"):
        merged(after, code, filename)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (ITEMS, "", "new_text is empty"),
        (ITEMS, "    return items[-1]", "no line of new_text shows where in a.py it belongs"),
        (ITEMS, "found = 1\nreturn found", "no line of new_text shows where"),
        (ITEMS, "def last(items):\n    # ... as before\n    return 1", "leaves something out"),
        (ITEMS, "def last(items):\n    ...\n", "leaves something out"),
        (ITEMS, "def last(items:\n    return 1", "would not be valid any more"),
        (ITEMS, "def first(items):\n    return items[0]", "already reads so"),
        (
            QUEUE + "\n\nclass B:\n    def pop(self):\n        pass\n",
            "def pop(self):\n    return 1",
            "is in a.py 2 times",
        ),
    ],
)
def test_what_has_no_clear_place_is_refused(text: str, code: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        merged(text, code, "a.py")


def test_a_file_that_was_invalid_before_can_be_changed() -> None:
    assert merged("def f(:\n    pass\n\n\nx = 1\n", "x = 2", "a.py")[0].endswith("x = 2\n")
    assert merged("", "x = 1", "a.py") == ("x = 1\n", ["written"])


NAMES = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta"]), min_size=1, unique=True)
GAPS = st.lists(st.sampled_from(["\n", "\n\n", "\n  \n\n", "\n# A word.\n"]), min_size=4, max_size=4)


@given(NAMES, GAPS, st.data())
def test_all_but_the_named_function_stays_as_it_is(names: list[str], gaps: list[str], data: st.DataObject) -> None:
    parts = [f"def {name}(x):\n    y = x\n\n    return '{name}'\n" for name in names]
    text = "".join(part + gap for part, gap in zip(parts, gaps, strict=False))
    chosen = data.draw(st.sampled_from(names))
    code = f"def {chosen}(x):\n    return 1\n"
    assert merged(text, code, "a.py")[0] == text.replace(parts[names.index(chosen)], code).rstrip("\n") + "\n"
