"""Start SmolLM2, print the server's address and wait, for tests that kill the process."""

from __future__ import annotations

import asyncio

from nca.models.embedded.server import EmbeddedModel, open_embedded


async def main() -> None:
    model = await open_embedded("smollm2-135m", 512)
    assert isinstance(model, EmbeddedModel)
    await model.warm()
    assert model.address
    print(model.address.api_base, flush=True)  # noqa: T201 - the test reads it
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
