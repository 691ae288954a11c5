"""nca as an MCP server: other agents search and read a person's sessions, over standard input and output.

history    what is searched: nca's own sessions, and those of other agents
scope      which sessions a client may see
answers    answers of a bounded size, as text and as data
tools      the tools: recall, expand, sessions
resources  sessions as resources
prompts    questions about past sessions
server     the server, with the official SDK
"""
