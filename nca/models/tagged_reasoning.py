"""Divide an answer that begins with reasoning between tags in its text: servers without a parser send it so.

vLLM, LM Studio and others pass on what a model such as DeepSeek-R1 or Qwen3 writes: `<think>…</think>`, and then the
answer. Where the server's template puts the first tag into the prompt, only the second one comes.
"""

from __future__ import annotations

from typing import Literal

OPEN, CLOSE = "<think>", "</think>"
_QUOTES = ("'", '"', "`")


class TaggedReasoning:
    """Takes the text of one answer piece by piece. Only at its very beginning a tag is one.

    begins_inside  the endpoint's last answer had the second tag only: so this one is taken to begin with reasoning
    """

    def __init__(self, *, begins_inside: bool = False) -> None:
        self.begins_inside = begins_inside
        self.is_opened = False
        """Whether the answer itself has the first tag."""
        self._place: Literal["before", "inside", "behind", "answer"] = "before"
        self._held = ""
        """What may be the beginning of a tag."""
        self._unclosed: list[str] = []

    @property
    def unclosed(self) -> str:
        """The text from the tag on; "" if the tag is closed, or there is none."""
        return "".join(self._unclosed)

    def add(self, piece: str) -> tuple[str, str]:
        """The answer and the reasoning that are known with this piece."""
        answer = thought = ""
        if self._place == "before":
            piece, self._held = self._held + piece, ""
            begun = piece.lstrip()
            if OPEN.startswith(begun[: len(OPEN)]) and len(begun) < len(OPEN):
                self._held, piece = piece, ""
            elif begun.startswith(OPEN):
                self._place, self._unclosed, piece = "inside", [OPEN], begun.removeprefix(OPEN)
                self.is_opened = True
            else:
                self._place = "inside" if self.begins_inside else "answer"
        if self._place == "inside":
            thought, piece = self._thought(piece)
        if self._place == "behind" and (piece := piece.lstrip()):
            self._place = "answer"
        if self._place == "answer":
            answer = piece
        return answer, thought

    def unopened(self, text: str, *, has_calls: bool) -> tuple[str, str] | None:
        """The reasoning and the answer in a text that was taken to be all answer; None if it is.

        The second tag, without the first one before it, and not in quotes: an answer may be about tags.
        """
        thought, tag, rest = text.partition(CLOSE)
        is_end = tag and thought[-1:] not in _QUOTES and (has_calls or rest.strip())
        return (thought, rest.lstrip()) if is_end and not self.is_opened and OPEN not in thought else None

    def end(self) -> str:
        """The rest of the answer, which only looked like the beginning of a tag."""
        held, self._held = self._held, ""
        return held if self._place == "before" else ""

    def _thought(self, piece: str) -> tuple[str, str]:
        """The reasoning in a piece, and the text behind its end."""
        self._unclosed.append(piece)
        thought, tag, rest = (self._held + piece).partition(CLOSE)
        self._held = ""
        if tag:
            self._place, self._unclosed = "behind", []
        else:
            longest = min(len(thought), len(CLOSE) - 1)
            held = next((size for size in range(longest, 0, -1) if thought.endswith(CLOSE[:size])), 0)
            thought, self._held = thought[: len(thought) - held], thought[len(thought) - held :]
        return thought, rest
