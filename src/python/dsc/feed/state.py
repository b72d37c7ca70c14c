"""Where a trainer is in the sequence: what it needs to go on with the very next batch."""


def make_state(dataset, epoch, step, skipped):
    """The state of a trainer that has received the steps before `step`; the end of an epoch is the start of the next."""
    info = dataset.info
    if step >= info["stepsPerEpoch"]:
        epoch, step = epoch + 1, 0
    return {"v": 1, "dataset": dataset.target, "fingerprint": info["fingerprint"], "n": info["n"],
            "order": info["order"], "seed": info["seed"], "epoch": epoch, "position": step * info["globalBatch"],
            "B": info["globalBatch"], "last": dataset.last, "mix": info.get("mix"),
            "skipped": [list(pair) for pair in sorted({tuple(pair) for pair in skipped})]}
