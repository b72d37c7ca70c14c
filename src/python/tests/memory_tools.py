"""What memory tests share: the real planner (the CLI of this checkout), and steps with or without a plan."""

import contextlib
import json
import os
import shutil
import subprocess

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


@pytest.fixture(autouse=True)
def one_thread():
    """Imported by a test file, it keeps PyTorch to one thread in each of its tests."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def under(executor):
    """The plan's context, or none at all: for code that runs with and without a plan."""
    return contextlib.nullcontext() if executor is None else executor


def set_link(recorded, gbs):
    """Lets a profile say that the link carries `gbs` GB/s either way."""
    recorded["device"].update(d2hGBs=gbs, h2dGBs=gbs, bothGBs=gbs)


def link_gbs(recorded, copy_ratio):
    """Of the link over which all feature maps are copied out in the time that `copy_ratio` forward passes take here.

    What is worth a copy depends on both: with a link of so many GB/s a plan would be another one on another processor.
    """
    feature_bytes = sum(tensor["bytes"] for tensor in recorded["tensors"] if tensor["kind"] == "feature")
    return feature_bytes / (copy_ratio * sum(layer["fwdUs"] for layer in recorded["layers"])) / 1e3


def slow_gbs(recorded):
    """Of a link over which nothing is worth a copy, however slow the processor is."""
    return min(0.02, link_gbs(recorded, 100))


def node():
    own = os.path.join(ROOT, "node_modules", ".bin", "node")
    return own if os.path.exists(own) else shutil.which("node")


def run_dsc(*words, check=True):
    command = [node(), os.path.join(ROOT, "bin", "dsc.js"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if check and done.returncode != 0:
        raise AssertionError(f"dsc {' '.join(words)}: {done.returncode}\n{done.stderr}")
    return done


def make_plan(profile, folder, budget, *flags):
    """Plans ``profile`` (a dict) and returns the plan (a dict) and both paths."""
    profile_path, plan_path = os.path.join(folder, "profile.json"), os.path.join(folder, "plan.json")
    with open(profile_path, "w", encoding="utf-8") as file:
        json.dump(profile, file)
    run_dsc("memory", "plan", profile_path, "--budget", budget, "--smallest", "4KiB", "--out", plan_path, *flags)
    with open(plan_path, encoding="utf-8") as file:
        return json.load(file), profile_path, plan_path
