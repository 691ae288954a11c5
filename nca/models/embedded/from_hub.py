"""Download weights from Hugging Face with huggingface_hub, which litellm depends on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nca.errors import ModelUnavailable
from nca.models.embedded.known import KnownModel
from nca.models.redirects import refuse_inward

_MOST_CHARS = 200


def folder_of(part: Path) -> Path:
    """The folder where huggingface_hub keeps an interrupted download."""
    return part.with_name(f"{part.name}.hub")


def bring(model: KnownModel, part: Path, report: Callable[[int], None], env: Mapping[str, str]) -> None:
    """Download the file to `part`, resuming an earlier download. Raises ModelUnavailable.

    `env` is unused: the library reads the process's environment.
    """
    try:
        # A heavy import that nothing else needs.
        from huggingface_hub import hf_hub_download
        from huggingface_hub.utils import logging
    except ImportError as error:
        raise ModelUnavailable(
            "The library huggingface_hub is not installed.", advice="Use the other source: --source pip."
        ) from error
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    _guard_redirects()
    hub = model.hub
    try:
        path = hf_hub_download(
            hub.repository,
            hub.filename,
            revision=hub.revision,
            local_dir=folder_of(part),
            # The file is public: send no token.
            token=False,
            tqdm_class=_meter(report),
        )
    # The errors of the library and httpx share no other base class.
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ModelUnavailable(
            f"{hub.repository} could not be downloaded from Hugging Face: {_one_line(error)}",
            advice="Check the network, or use the other source: --source pip.",
        ) from error
    Path(path).replace(part)
    shutil.rmtree(folder_of(part), ignore_errors=True)


def _guard_redirects() -> None:
    """Redirects lead to where the hub keeps its files, but into no private network."""
    try:
        from huggingface_hub import set_client_factory
        from huggingface_hub.utils._http import default_client_factory
    except ImportError:
        # Releases before 1.0 have another HTTP library and no such hook.
        return

    def guarded() -> Any:
        client = default_client_factory()
        hooks = client.event_hooks
        client.event_hooks = hooks | {"response": [refuse_inward, *hooks.get("response", [])]}
        return client

    set_client_factory(guarded)


def _meter(report: Callable[[int], None]) -> Any:
    """A progress bar class that draws nothing and calls `report`."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Meter(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*args, **options | {"disable": True})
            self._arrived = int(options.get("initial") or 0)

        def update(self, n: float | None = 1) -> None:
            self._arrived += int(n or 0)
            report(self._arrived)

    return Meter


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:_MOST_CHARS] or type(error).__name__
