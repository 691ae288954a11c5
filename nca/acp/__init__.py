"""nca as an agent for editors: the Agent Client Protocol on standard input and output.

This room translates between the protocol and the conversation. It decides nothing: permissions, compactions and
commands are those of the chat.
"""
