"""The engine over HTTP: `nca serve`. Stateless, beside an optional store of views.

operations   what each path does: a JSON object in, one out
service      the paths, tokens, limits and errors, as an ASGI application
"""
