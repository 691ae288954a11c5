"""The stages of a compaction, cheapest first. Each works on a draft until it fits the target."""
