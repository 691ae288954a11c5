"""Sessions of other agents, read into sessions of nca. Nothing here writes to another program's files.

records    what a reader yields: messages, compactions, usage, facts about the session, and what it cannot read; the
           base of all formats: each is a table of places of sessions, and a reader of its oddities
building   the messages: parts, calls and results, and who said each part
source     the file that is read: its lines with their numbers, and its first bytes
row        an object of its JSON, read field by field
registry   all formats; which one a file has (by content), and where each agent keeps its sessions
assemble   the records as a session: log, views, compactions, usage
"""
