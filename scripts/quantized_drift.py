#!/usr/bin/env python3
"""How far rounding alone moves the logits of a quantized model, and how far mistakes do: where `drift_tolerance` has to lie.

`python3 scripts/quantized_drift.py [COMMAND]`, where the command is `cargo xtask` if none is given. It needs the packages gguf and
numpy from PyPI, and fetches SmolLM2-135M (Q4_1) with .ci/fetch-model. Each change is made to a copy of the file in target/drift, and the
outputs of both are compared.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "drift"
CASE = "decode/p128"
# A Q4_1 block: scale and minimum as f16, then 32 values of four bits.
BLOCK_BYTES = 20


def last_bits(every):
    """Flips the last bit of every so many of the weights that are kept as f32, those of the norms."""

    def change(reader):
        for tensor in reader.tensors:
            if tensor.tensor_type.name == "F32":
                tensor.data.reshape(-1).view(np.uint32)[::every] ^= 1

    return change


def attention_scale(factor):
    """Multiplies all queries, and so what goes into each softmax."""

    def change(reader):
        for tensor in reader.tensors:
            if "attn_q.weight" in tensor.name:
                blocks = tensor.data.reshape(-1, BLOCK_BYTES)
                scales = blocks[:, :4].copy().view(np.float16).astype(np.float32) * factor
                blocks[:, :4] = scales.astype(np.float16).view(np.uint8)

    return change


def epsilon(value):
    """Another epsilon in every norm."""

    def change(reader):
        for name, field in reader.fields.items():
            if name.endswith("layer_norm_rms_epsilon"):
                field.parts[field.data[0]][0] = value

    return change


CHANGES = {
    "the last bit of every other weight of the norms": last_bits(2),
    "the last bit of every weight of the norms": last_bits(1),
    "attention scale 2 % off": attention_scale(1.02),
    "attention scale 10 % off": attention_scale(1.10),
    "epsilon 1e-3 in place of 1e-5": epsilon(1e-3),
}


def bench(command, model, out):
    arguments = ["bench", "--model", str(model), "--runs", "1", "--cases", CASE, "--out", str(out)]
    subprocess.run(command + arguments, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main():
    command = sys.argv[1:] or ["cargo", "xtask"]
    fetched = subprocess.run(["bash", ".ci/fetch-model"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    model = pathlib.Path(fetched.stdout.strip())
    FOLDER.mkdir(parents=True, exist_ok=True)
    base = FOLDER / "base.json"
    bench(command, model, base)
    print(f"{'change':<50} {'difference':>10}   output")
    for name, change in CHANGES.items():
        # Models are compared by name, too.
        copy = FOLDER / model.name
        shutil.copyfile(model, copy)
        reader = gguf.GGUFReader(copy, "r+")
        change(reader)
        reader.data.flush()
        head, verdict = FOLDER / "head.json", FOLDER / "verdict.json"
        bench(command, copy, head)
        # A changed output is exit 1.
        judged = command + ["compare", str(base), str(head), "--json", str(verdict)]
        subprocess.run(judged, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        rows = json.loads(verdict.read_text())["rows"]
        evidence = next(row["evidence"] for row in rows if row["evidence"]["kind"] == "output")
        print(f"{name:<50} {evidence['relative_drift']:>10.4f}   {evidence['comparison']}", flush=True)


main()
