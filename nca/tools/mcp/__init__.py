"""MCP servers: started when a conversation first needs them, and their tools beside nca's own.

The official SDK is imported only once a server is to start (`connection`); everything else here is light. What a
server says is untrusted: it is bounded where it comes in, and it never reaches the terminal but through events.
"""
