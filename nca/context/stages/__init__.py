"""The four stages of a compaction, cheapest first; each works on a draft and stops when it fits the target."""
