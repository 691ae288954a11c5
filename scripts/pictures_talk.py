"""The chat in the pictures: the files of a small project, the person's messages, and the provider's answers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from nca.testing.scripted import Answer, text_of

WINDOW_TOKENS = 4_450
"""Small, so that the fourth question passes the threshold. Other texts need another number."""

INVOICE = '''\
"""Invoices of the shop: lines, discounts, tax, and the total that a customer sees."""

from dataclasses import dataclass, field

TAX_RATE = 0.19


@dataclass
class Line:
    """One article on an invoice. Prices are in euros."""

    article: str
    quantity: int
    price: float

    def amount(self) -> float:
        return round(self.quantity * self.price, 2)


@dataclass
class Invoice:
    number: str
    lines: list[Line] = field(default_factory=list)
    discount: float = 0.0

    def net(self) -> float:
        """What the lines come to, less the discount."""
        total = sum(line.amount() for line in self.lines)
        return round(total * (1 - self.discount), 2)

    def tax(self) -> float:
        return round(self.net() * TAX_RATE, 2)

    def total(self) -> float:
        return round(self.net() + self.tax(), 2)

    def mean_price(self) -> float:
        """The mean price of an article on this invoice."""
        return sum(line.price for line in self.lines) / len(self.lines)


def parse_line(text: str) -> Line:
    """One line of the import file: article;quantity;price."""
    article, quantity, price = text.split(";")
    return Line(article.strip(), int(quantity), float(price))


def parse_invoice(number: str, text: str) -> Invoice:
    lines = [parse_line(row) for row in text.splitlines() if row.strip()]
    return Invoice(number, lines)
'''

_CASES = (
    ("one article", "pen;2;1.50", "3.57"),
    ("two articles", "pen;2;1.50\\nink;1;7.25", "12.20"),
    ("a third of a cent", "clip;3;0.335", "1.20"),
    ("nothing at all", "", "0.00"),
    ("blank lines", "\\npen;1;1.00\\n\\n", "1.19"),
)
TESTS = '"""Tests of invoice.py."""\n\nfrom invoice import parse_invoice\n' + "".join(
    f'''

def test_{name.replace(" ", "_")}() -> None:
    invoice = parse_invoice("2024-{number:03}", "{text}")
    assert f"{{invoice.total():.2f}}" == "{total}"
    assert invoice.net() <= invoice.total()
    assert invoice.number == "2024-{number:03}"
'''
    for number, (name, text, total) in enumerate(_CASES, 1)
)

REPORT = '''\
"""The monthly report: one row for each invoice, and what the month came to."""

from collections.abc import Iterable

from invoice import Invoice

HEAD = f"{'number':<10} {'net':>10} {'tax':>10} {'total':>10} {'mean':>8}"


def row(invoice: Invoice) -> str:
    numbers = f"{invoice.net():>10.2f} {invoice.tax():>10.2f} {invoice.total():>10.2f}"
    return f"{invoice.number:<10} {numbers} {invoice.mean_price():>8.2f}"


def report(invoices: Iterable[Invoice]) -> str:
    """Head, rows in the order of their numbers, and the sum of the totals."""
    ordered = sorted(invoices, key=lambda invoice: invoice.number)
    total = round(sum(invoice.total() for invoice in ordered), 2)
    return "\\n".join([HEAD, *map(row, ordered), f"{'':<10} {'':>10} {'':>10} {total:>10.2f}"])
'''

FILES = {"invoice.py": INVOICE, "test_invoice.py": TESTS, "report.py": REPORT}

FIRST = "What does invoice.py do? Is anything wrong with it?"
SECOND = "Look at the tests: which case is missing?"
THIRD = "Fix it so that report.py works. Never change parse_line."
FOURTH = "Which rule did I set?"
CHANGE = "Fix mean_price for an invoice without lines."
CLEAN = "Clean up: only invoice.py is needed."
LONG = [
    f"{question} ({number})"
    for number in range(1, 9)
    for question in ("What does invoice.py add up", "Which cases do the tests have", "What does the report print")
]
"""A long session, for the picture of its context over the turns: each question reads one of the files."""

MEAN = "        return sum(line.price for line in self.lines) / len(self.lines)\n"
FIXED = "        if not self.lines:\n            return 0.0\n" + MEAN
FINDING = "It does what the names say; every number is rounded to cents, and nothing is kept between two calls.\n"

TALK: dict[str, Sequence[Answer]] = {
    FIRST: (
        Answer(tool_calls=[("read_file", {"path": "invoice.py"})]),
        Answer(
            text="It reads invoices and adds up **net**, **tax** and **total**.\n\n"
            "One bug: `mean_price` divides by `len(self.lines)`, so an invoice without lines ends in "
            "`ZeroDivisionError`.\n"
        ),
    ),
    SECOND: (
        Answer(tool_calls=[("read_file", {"path": "test_invoice.py"})]),
        Answer(text="`nothing at all` checks the total of an empty invoice, but nothing calls `mean_price`.\n"),
    ),
    THIRD: (
        Answer(tool_calls=[("read_file", {"path": "report.py"})]),
        Answer(tool_calls=[("edit_file", {"path": "invoice.py", "old_text": MEAN, "new_text": FIXED})]),
        Answer(text="`report.py` prints the mean of every invoice; it is now **0.0** without lines.\n"),
    ),
    FOURTH: (Answer(text="One: `parse_line` is **never changed**, and it was not.\n"),),
    CHANGE: (
        Answer(tool_calls=[("read_file", {"path": "invoice.py"})]),
        Answer(tool_calls=[("edit_file", {"path": "invoice.py", "old_text": MEAN, "new_text": FIXED})]),
        Answer(text="`mean_price` is now 0.0 if there are no lines.\n"),
    ),
    CLEAN: (
        Answer(tool_calls=[("shell", {"command": "rm report.py test_invoice.py"})]),
        Answer(text="`report.py` and `test_invoice.py` are deleted.\n"),
    ),
    **{
        question: (Answer(tool_calls=[("read_file", {"path": path})]), Answer(text=FINDING))
        for question, path in zip(LONG, itertools.cycle(FILES), strict=False)
    },
}

SUMMARY = """\
### 1. Goal and intent
Find and fix what is wrong with invoice.py.
### 2. Constraints and rules the user set
Never change parse_line.
### 3. Decisions and findings
mean_price ended in ZeroDivisionError for an invoice without lines; it returns 0.0 now.
### 4. Key concepts
net, tax (TAX_RATE 0.19), total; import lines are article;quantity;price.
### 5. Files and code
invoice.py, test_invoice.py and report.py (read).
### 6. Errors and fixes
ZeroDivisionError in mean_price: guarded by `if not self.lines`.
### 7. Pending and done
Done: the guard. Pending: a test of mean_price for an invoice without lines.
### 8. Current work
The user reviews the change.
### 9. Next step
Write the test.
"""


def talk(request: dict[str, Any]) -> Answer:
    """The answer to the newest question of the chat, or a summary if one is asked for."""
    messages = request["messages"]
    last = text_of(messages[-1])
    if "<transcript>" in last:
        return Answer(text=SUMMARY)
    asked = max(index for index, message in enumerate(messages) if message["role"] == "user")
    answers = next(answers for question, answers in TALK.items() if text_of(messages[asked]).startswith(question))
    step = sum(1 for message in messages[asked:] if message["role"] == "assistant")
    return answers[min(step, len(answers) - 1)]
