"""A sibling of the exercise: a log of measurements that survives a crash."""


# --8<-- [start:count]
def count_words(disk, texts):
    """Count words in texts, one after the other, and remember where it stands."""
    total, done = disk.read("count") if disk.has("count") else (0, 0)
    for text in texts[done:]:
        total, done = total + len(text.split()), done + 1
        disk.write("count.new", (total, done))  # both, or neither: they belong to one moment
        disk.rename("count.new", "count")
    return total


# --8<-- [end:count]
