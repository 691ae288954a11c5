"""nca as an MCP server: other agents search and read a person's sessions, over standard input and output.

history    what is searched: nca's own sessions, and those of other agents
asked      what a call asks for: ages, folders, message numbers
answers    answers as text of a bounded size
tools      the tools: recall, expand, sessions
server     the server, with the official SDK
"""
