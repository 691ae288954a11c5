"""What nca has because the programs that it was made from had it: their ways to count, stages, names and numbers.

names       their names of nca's settings
presets     how each program counts tokens
profiles    their settings, by `profile`
stages      CowAgent's stages of a compaction
strategies  Neuron's strategies: the stages for programs that hold their own list of messages
"""
