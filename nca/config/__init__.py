"""Settings: schema, layers, and the origin of each value."""
