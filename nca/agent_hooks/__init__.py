"""nca's memory inside other agents: hooks that they call, and the server that answers them."""
