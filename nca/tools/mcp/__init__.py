"""MCP servers: connections to them, and their tools, prompts and resources.

The official SDK is imported only when the first server starts (`connection`); everything else here is light. What a
server sends is untrusted: it is bounded where it arrives, and reaches the terminal only through events.
"""
