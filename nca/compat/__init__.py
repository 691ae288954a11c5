"""Compatibility with the programs that nca was made from: their names, settings, counts and stages.

names       their names of nca's settings; their settings, by `profile`
presets     how each program counts tokens
stages      CowAgent's stages of a compaction
strategies  Neuron's strategies: the stages for programs that hold their own list of messages
"""
