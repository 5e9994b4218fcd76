"""The executor of buckets on a GPU, whose messages go over NCCL."""
