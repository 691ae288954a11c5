"""nca as an MCP server: other agents search and read a person's sessions, over standard input and output.

history       what is searched, nca's own sessions and those of other agents; which of them a client may see
other_agents  the sessions of other agents, indexed in the background
answers       answers of a bounded size, as text and as data
tools         the tools: recall, expand, sessions
server        the server, with the official SDK: tools, resources, prompts (their texts: `prompts.toml`)
install       adding nca to the settings of other agents; `json_insert`: and keeping every other character of them
"""
