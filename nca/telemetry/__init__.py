"""Traces and metrics for OpenTelemetry, in its conventions for generative AI, where `OTEL_*` variables ask for them."""
