"""Records what a training step does to its memory: tensors, storages, segments, blocks, times."""
