"""Hugging Face's own libraries, as `npm run test:hf` runs them: each prints what it read as JSON.

    hf-clients.py make FOLDER           writes a small model and a small dataset, as their libraries save them
    hf-clients.py read WHAT             reads `org/tiny` or `org/rows` by the environment that the caller sets
"""

import json
import os
import subprocess
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
    if what == "command":
        words = ["download", "org/rows", "--repo-type", "dataset", "--include", "data/*", "--quiet"]
        hf = [sys.executable, "-m", "huggingface_hub.cli.hf"]
        out = subprocess.run([*hf, *words], stdout=subprocess.PIPE, check=True)
        folder = Path(out.stdout.decode().strip().splitlines()[-1].removeprefix("path=").strip())
        # A prepared copy has the rest of the repository, too.
        return {"files": sorted(str(path.relative_to(folder)) for path in folder.glob("data/*"))}
    if what == "vllm":
        return read_as_vllm("org/tiny")
    raise SystemExit(f"expected something to read, found {what}")


def read_as_vllm(model: str) -> object:
    """What vLLM asks of a hub before it loads a model.

    In its order, after `vllm/transformers_utils/repo_utils.py` and `vllm/model_executor/model_loader/weight_utils.py`.
    """
    import filelock
    from huggingface_hub import (
        HfApi,
        HfFileSystem,
        constants,
        hf_hub_download,
        snapshot_download,
        try_to_load_from_cache,
    )
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    from safetensors import safe_open

    offline = constants.HF_HUB_OFFLINE
    revision = HfApi().resolve_revision(model, local_files_only=offline)
    if not isinstance(try_to_load_from_cache(model, "config.json", revision=revision), str):
        assert "config.json" in HfApi().list_repo_files(model, revision=revision)
    config = json.loads(Path(hf_hub_download(model, "config.json", revision=revision)).read_text())
    patterns = ["*.safetensors", "*.bin"]
    if not offline:
        names = [os.path.basename(name) for name in HfFileSystem().ls(model, detail=False, revision=revision)]
        patterns = [pattern for pattern in patterns if any(name.endswith(pattern[1:]) for name in names)][:1]
    with filelock.FileLock(Path(os.environ["HF_HOME"]).parent / "vllm.lock", mode=0o666):
        folder = snapshot_download(model, allow_patterns=patterns, revision=revision, local_files_only=offline)
    try:
        hf_hub_download(model, "model.safetensors.index.json", revision=revision, local_files_only=offline)
        raise AssertionError("this model has one file of weights")
    except (EntryNotFoundError, LocalEntryNotFoundError):
        pass
    if offline:  # where vLLM is told a model's name and needs its folder
        assert snapshot_download(model, local_files_only=True, ignore_patterns="*") == folder
    total = 0.0
    for path in Path(folder).glob("*.safetensors"):
        with safe_open(path, framework="pt") as weights:
            total += sum(float(weights.get_tensor(name).double().sum()) for name in weights.keys())  # noqa: SIM118 -- not a dict
    return {"sum": total, "layers": config["num_hidden_layers"]}


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        print(json.dumps(read(sys.argv[2])))
