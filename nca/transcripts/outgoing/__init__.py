"""Sessions of nca written as those of another agent, which resumes them.

conversation  what every format writes: the messages before the compaction, its summary, those after it
written       chooses the format, writes the file where the agent looks, and says what resumes it

The other modules hold one agent each: where its files are, and the rows of one.
"""
