"""slower_load.py RUN SLOWER: the same load run, each time of which took half as long again."""
import json, sys

def slower(value, name=""):
    if isinstance(value, dict):
        return {key: slower(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [slower(inner, name) for inner in value]
    return value * 3 // 2 if name.endswith("_ns") and isinstance(value, int) else value

run = json.load(open(sys.argv[1]))
run["levels"] = slower(run["levels"])
json.dump(run, open(sys.argv[2], "w"))
