"""The shapes in which programs keep a conversation: OpenAI's chat messages, Anthropic's messages, Responses items.

Each shape has one class that reads it and writes it back; `detect.read_shape` chooses by content.

shaped      the protocol of a shape, and how a message finds what it was read from; OpenAI's chat messages
detect      which shape something has
anthropic   `system` beside `messages`, with blocks such as tool_use and tool_result
responses   `instructions` beside `input`, with items such as function_call and reasoning
"""
