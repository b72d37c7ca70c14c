"""Copies the objects below a prefix of the bucket `bench`, or the dataset `bench/SET` of a hub, into a folder:
copy_bucket.py boto3|obstore|hf URL SET FOLDER, or prints their versions: copy_bucket.py versions.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path


def path_of(folder, key):
    path = Path(folder, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def by_boto3(url, name, folder):
    import boto3
    from botocore.config import Config

    s3 = boto3.client("s3", endpoint_url=url, config=Config(max_pool_connections=64))
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="bench", Prefix=f"{name}/")
    keys = [found["Key"] for page in pages for found in page["Contents"]]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda key: s3.download_file("bench", key, str(path_of(folder, key))), keys))


def by_obstore(url, name, folder):
    import obstore
    from obstore.store import S3Store

    # Its authorities are fixed, so that it cannot be told to trust the store's certificate.
    options = {"allow_http": True, "allow_invalid_certificates": True}
    store = S3Store("bench", endpoint=url, client_options=options, virtual_hosted_style_request=False)

    def copy(key):
        with path_of(folder, key).open("wb") as file:
            for chunk in obstore.get(store, key).stream(min_chunk_size=1024 * 1024):
                file.write(chunk)

    keys = [found["path"] for page in obstore.list(store, f"{name}/") for found in page]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(copy, keys))


def by_hf(url, name, folder):
    from huggingface_hub import snapshot_download

    snapshot_download(f"bench/{name}", repo_type="dataset", endpoint=url, local_dir=folder, max_workers=16)


tool, *rest = sys.argv[1:]
if tool == "versions":
    print(", ".join(f"{name} {version(name)}" for name in ("boto3", "obstore", "huggingface_hub")))
else:
    {"boto3": by_boto3, "obstore": by_obstore, "hf": by_hf}[tool](*rest)
