"""Hugging Face's own libraries, as `npm run test:hf` runs them: each prints what it read as JSON.

    hf-clients.py make FOLDER           writes a small model and a small dataset, as their libraries save them
    hf-clients.py read WHAT             reads `org/tiny` or `org/rows` by the environment that the caller sets
"""

import json
import sys
from pathlib import Path


def make(folder: Path) -> None:
    import torch
    from datasets import Dataset
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    BertModel(config).save_pretrained(folder / "tiny")
    for shard in range(3):
        part = Dataset.from_dict({
            "text": [f"row {index}" for index in range(shard * 100, shard * 100 + 100)],
            "label": list(range(100)),
        })
        part.to_parquet(folder / "rows" / "data" / f"train-{shard:05d}-of-00003.parquet")
    (folder / "rows" / "README.md").write_text("---\nlicense: mit\n---\n# rows\n")


def read(what: str) -> object:
    if what == "model":
        from transformers import AutoModel

        model = AutoModel.from_pretrained("org/tiny")
        return {"sum": sum(float(tensor.double().sum()) for tensor in model.state_dict().values())}
    if what == "dataset":
        from datasets import load_dataset

        rows = load_dataset("org/rows", split="train")
        return {"rows": len(rows), "first": rows[0]["text"], "last": rows[-1]["text"]}
    if what == "streaming":
        from datasets import load_dataset

        rows = load_dataset("org/rows", split="train", streaming=True)
        return {"rows": sum(1 for _ in rows)}
    if what == "snapshot":
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download("org/rows", repo_type="dataset"))
        return {"files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())}
    if what == "file":
        from huggingface_hub import hf_hub_download

        return {"bytes": Path(hf_hub_download("org/tiny", "model.safetensors")).stat().st_size}
    if what == "filesystem":
        from huggingface_hub import HfFileSystem

        files = HfFileSystem()
        return {"glob": sorted(files.glob("datasets/org/rows/**/*.parquet"))}
    if what == "missing":
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

        told = []
        for name, path, expected in (
            ("org/tiny", "none.json", EntryNotFoundError),
            ("org/other", "config.json", RepositoryNotFoundError),
        ):
            try:
                hf_hub_download(name, path)
            except expected:
                told.append(expected.__name__)
        return {"told": told}
    raise SystemExit(f"expected something to read, found {what}")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        print(json.dumps(read(sys.argv[2])))
