"""Sessions of other agents, read into sessions of nca. Nothing here writes to another program's files.

records    what a reader yields: messages, compactions, usage, facts about the session, and what it cannot read
source     the file that is read: its lines with their numbers, and its first bytes
registry   all formats; which one a file has (by content), and where each agent keeps its sessions
assemble   the records as a session: log, views, compactions, usage
"""
