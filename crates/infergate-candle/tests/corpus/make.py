#!/usr/bin/env python3
"""Writes the files that once broke a parser of models, or would break a careless one: `python3 tests/corpus/make.py`.

Each file is small and lies in the folder of its parser. `expected.json` says for each which words the one line of its error has.
"""
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
EXPECTED = {}


def write(name, content, *words):
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    EXPECTED[name] = list(words)


# GGUF ----------------------------------------------------------------------------------------------------------------
U8, U32, BOOL, TEXT, ARRAY, U64, I32 = 0, 4, 7, 8, 9, 10, 5


def size(number):
    return struct.pack("<Q", number % 2**64)


def text(content):
    content = content if isinstance(content, bytes) else content.encode()
    return size(len(content)) + content


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def u32(key, number):
    return entry(key, U32, struct.pack("<I", number))


def weight(name, dimensions, kind=0, offset=0):
    shape = b"".join(size(d) for d in dimensions)
    return text(name) + struct.pack("<I", len(dimensions)) + shape + struct.pack("<I", kind) + size(offset)


def gguf(entries=(), weights=(), version=3, entry_count=None, weight_count=None, tail=b"\0" * 512):
    counts = size(len(weights) if weight_count is None else weight_count)
    counts += size(len(entries) if entry_count is None else entry_count)
    return b"GGUF" + struct.pack("<I", version) + counts + b"".join(entries) + b"".join(weights) + tail


def make_gguf():
    def case(name, content, *words):
        write(f"gguf/{name}.gguf", content, *words)

    alignment = "general.alignment"
    case("alignment-zero", gguf([u32(alignment, 0)]), "general.alignment is 0")
    case("alignment-three", gguf([u32(alignment, 3)]), "power of two")
    case("alignment-huge", gguf([u32(alignment, 1 << 31)]), "power of two")
    case("alignment-twice", gguf([u32(alignment, 32), u32(alignment, 0)]), "general.alignment", "twice")
    case("alignment-nul-ended", gguf([u32(alignment + "\0", 0)]), "general.alignment is 0")
    case("alignment-nul-ended-twice", gguf([u32(alignment, 32), u32(alignment + "\0\0", 0)]), "twice")
    case("alignment-64-bit", gguf([entry(alignment, U64, size(2**63))]), "power of two")
    case("alignment-negative", gguf([entry(alignment, I32, struct.pack("<i", -32))]), "not a whole number")
    case("alignment-text", gguf([entry(alignment, TEXT, text("32"))]), "not a whole number")
    array = lambda kind, length, content=b"": struct.pack("<I", kind) + size(length) + content
    case("array-of-2-30-bytes", gguf([entry("a", ARRAY, array(U8, 2**30))]), "more than 4194304 values")
    case("array-of-2-60-texts", gguf([entry("a", ARRAY, array(TEXT, 2**60))]), "more than 4194304 values")
    case("array-cut-short", gguf([entry("a", ARRAY, array(U8, 4_000_000))]), "truncated or damaged")
    nested = array(U8, 1, b"\0")
    for _ in range(100):
        nested = array(ARRAY, 1, nested)
    case("array-100-deep", gguf([entry("a", ARRAY, nested)]), "8 deep")
    case("entries-2-60", gguf([u32("a", 1)], entry_count=2**60), "damaged")
    case("entries-2-64", gguf([u32("a", 1)], entry_count=2**64 - 1), "damaged")
    case("weights-2-40", gguf([u32("a", 1)], weight_count=2**40), "claims 1099511627776 weights")
    case("key-of-2-63-bytes", gguf([size(2**63) + b"key"]), "does not lie inside the file")
    case("key-of-2-64-bytes", gguf([size(2**64 - 1) + b"key"]), "does not lie inside the file")
    case("text-of-2-62-bytes", gguf([entry("a", TEXT, size(2**62))]), "does not lie inside the file")
    case("bool-of-two", gguf([entry("a", BOOL, b"\2")]), "neither true nor false")
    case("type-99", gguf([entry("a", 99, b"")]), "unknown type 99")
    case("version-4", gguf(version=4), "version is 4")
    case("version-0", gguf(version=0), "version is 0")
    case("big-endian", b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "damaged")
    case("only-the-magic", b"GGUF", "truncated or damaged")
    case("weight-twice", gguf(weights=[weight("w", [32]), weight("w", [32])]), "weight `w` twice")
    case("weight-of-5-dimensions", gguf(weights=[weight("w", [1] * 5)]), "5 dimensions")
    case("weight-of-2-32-dimensions", gguf(weights=[text("w") + struct.pack("<I", 2**32 - 1)]), "dimensions")
    case("weight-that-overflows", gguf(weights=[weight("w", [2**40, 2**40])]), "`w`")
    case("weight-of-2-63-rows", gguf(weights=[weight("w", [2, 2**63])]), "`w`")
    case("weight-behind-the-end", gguf(weights=[weight("w", [32], offset=2**40)]), "ends at byte")
    case("weight-at-2-64", gguf(weights=[weight("w", [32], offset=2**64 - 32)]), "larger than any file")
    case("weight-type-23", gguf(weights=[weight("w", [32], kind=23)]), "candle cannot read")
    case("weight-with-half-a-block", gguf(weights=[weight("w", [16, 2], kind=8)]), "does not fill blocks of 32")
    case("name-that-clears-the-screen", gguf(weights=[weight("\x1b[2J\x1b[Hverdict: pass\n", [2**40])]), "verdict")
    architecture = lambda name: entry("general.architecture", TEXT, text(name))
    case("architecture-that-rings", gguf([architecture("\x07\x1b[31mmamba\r\n")]), "not supported")
    case("architecture-not-utf8", gguf([architecture(b"\xff\xfe\x80")]), "not supported")
    case("architecture-a-number", gguf([u32("general.architecture", 1)]), "no general.architecture")

    def llama(**changed):
        keys = {"block_count": 1, "context_length": 64, "embedding_length": 32, "feed_forward_length": 32}
        keys.update({"attention.head_count": 2, **{k.replace("__", "."): v for k, v in changed.items()}})
        entries = [architecture("llama")] + [u32(f"llama.{k}", v) for k, v in keys.items()]
        entries.append(entry("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)))
        return gguf(entries, [weight("token_embd.weight", [32, 2])])

    case("llama-of-2-32-blocks", llama(block_count=2**32 - 1), "layers = 4294967295")
    case("llama-without-heads", llama(attention__head_count=0), "above zero")
    case("llama-of-2-32-heads", llama(attention__head_count=2**32 - 1), "head")
    case("llama-of-2-31-tokens", llama(context_length=2**31), "context")
    case("llama-wide", llama(embedding_length=2**32 - 1), "hidden size")
    case("llama-without-weights", llama(), "missing")


# config.json -----------------------------------------------------------------------------------------------------------
def make_config():
    gpt2 = {"model_type": "gpt2", "vocab_size": 96, "n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 3}
    llama = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 288, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
    }

    def case(name, base, *words, **changed):
        write(f"config/{name}.json", json.dumps({**base, **changed}), *words)

    case("gpt2-of-10-12-layers", gpt2, "n_layer is 1000000000000", n_layer=10**12)
    case("gpt2-of-2-64-layers", gpt2, "n_layer", n_layer=2**64 - 1)
    case("gpt2-of-2-62-wide", gpt2, "n_embd", n_embd=2**62, n_head=2)
    case("gpt2-of-10-12-positions", gpt2, "n_positions", n_positions=10**12)
    case("gpt2-of-10-12-words", gpt2, "vocab_size", vocab_size=10**12)
    case("gpt2-inner-2-63", gpt2, "n_inner", n_inner=2**63)
    case("gpt2-without-heads", gpt2, "n_head is 0", n_head=0)
    case("gpt2-negative", gpt2, "-1", n_layer=-1)
    case("gpt2-epsilon-infinite", gpt2, "config", layer_norm_epsilon=1e308 * 10)
    case("llama-of-2-40-layers", llama, "layers", num_hidden_layers=2**40)
    case("llama-without-heads", llama, "above zero", num_attention_heads=0)
    case("llama-of-2-63-heads", llama, "head", num_attention_heads=2**63)
    case("llama-of-2-62-tokens", llama, "context", max_position_embeddings=2**62)
    case("llama-head-too-wide", llama, "head", head_dim=2**62)
    case("qwen3-too-wide", {**llama, "model_type": "qwen3"}, "wide", num_attention_heads=2**21, head_dim=2**20, num_key_value_heads=1)
    case("theta-zero", llama, "rope_theta", rope_theta=0)
    case("llama3-factors-zero", llama, "factor", rope_scaling={"rope_type": "llama3", "factor": 0, "low_freq_factor": 0, "high_freq_factor": 0, "original_max_position_embeddings": 0})
    case("type-that-clears-the-screen", llama, "not supported", model_type="\x1b[2Jverdict: pass")
    case("type-a-list", llama, "model_type", model_type=["llama"])
    write("config/empty.json", "", "is no JSON")
    write("config/deep.json", "[" * 2_000, "is no JSON")
    write("config/list.json", "[]", "model_type")
    write("config/number.json", "1e999", "is no JSON")
    write("config/not-utf8.json", b'{"model_type": "\xff\xfe"}', "is no JSON")
    write("config/twice.json", '{"model_type": "gpt2", "model_type": "mamba"}', "`mamba`")


# safetensors, and the list of shards -----------------------------------------------------------------------------------
def make_safetensors():
    def case(name, header, *words, tail=b"", claimed=None):
        header = header if isinstance(header, bytes) else json.dumps(header).encode()
        length = size(len(header) if claimed is None else claimed)
        write(f"safetensors/{name}.safetensors", length + header + tail, "truncated or damaged", *words)

    one = lambda **info: {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **info}}
    case("header-of-2-64", b"{}", "claims", claimed=2**64 - 1)
    case("header-of-2-40", b"{}", "claims", claimed=2**40)
    case("header-behind-the-end", b"{}", "claims", claimed=99)
    case("deep", b'{"w":' * 2_000)
    case("shape-that-overflows", one(shape=[2**40, 2**40]), tail=b"\0" * 4)
    case("shape-of-2-64", one(shape=[2**64 - 1]), tail=b"\0" * 4)
    case("offsets-reversed", one(data_offsets=[4, 0]), tail=b"\0" * 4)
    case("offsets-at-2-64", one(data_offsets=[2**64 - 4, 2**64 - 1]), tail=b"\0" * 4)
    case("offsets-apart", {**one(), "v": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}, tail=b"\0" * 12)
    case("overlapping", {**one(), "v": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, tail=b"\0" * 4)
    case("type-unknown", one(dtype="F31"), tail=b"\0" * 4)
    case("tail-behind", one(), "need 4 bytes", tail=b"\0" * 64)
    case("not-utf8", b'{"\xff": 1}')
    write("safetensors/empty.safetensors", b"", "truncated or damaged")
    write("safetensors/length-only.safetensors", size(0), "truncated or damaged")

    def index(name, content, *words):
        write(f"index/{name}.json", content if isinstance(content, str) else json.dumps(content), *words)

    shard = lambda name: {"weight_map": {"w": name}}
    index("parent", shard("../../escaped.safetensors"), "no plain file name")
    index("absolute", shard("/etc/passwd"), "no plain file name")
    index("hidden", shard(".ssh"), "no plain file name")
    index("drive", shard("C:x"), "no plain file name")
    index("nameless", shard(""), "no plain file name")
    index("number", {"weight_map": {"w": 7}}, "no plain file name")
    index("that-clears-the-screen", shard("\x1b[2J/verdict: pass"), "no plain file name")
    index("nul", shard("a\0b"), "no plain file name")
    index("no-shards", {"weight_map": {}}, "lists no shards")
    index("no-map", {"weight_map": []}, "weight_map")
    index("deep", "{" + '"a":{' * 2_000, "is no JSON")


# tokenizer.json --------------------------------------------------------------------------------------------------------
def make_tokenizer():
    bpe = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}

    def case(name, content, *words):
        content = content if isinstance(content, (str, bytes)) else json.dumps(content)
        write(f"tokenizer/{name}.json", content, "is damaged", *words)

    case("empty", "")
    case("no-object", "[]")
    case("no-model", {"version": "1.0"})
    case("deep", '{"model":' * 2_000)
    case("deep-sequence", '{"model":{"type":"BPE","vocab":{},"merges":[]},"normalizer":' + '{"type":"Sequence","normalizers":[' * 1_000)
    case("merge-of-nothing", {"model": {**bpe, "merges": [["x", "y"]]}})
    case("merge-of-three", {"model": {**bpe, "merges": ["a b c"]}})
    case("id-of-2-32", {"model": {**bpe, "vocab": {"a": 2**32}}})
    case("id-negative", {"model": {**bpe, "vocab": {"a": -1}}})
    case("id-a-text", {"model": {**bpe, "vocab": {"a": "0"}}})
    case("unigram-unknown-outside", {"model": {"type": "Unigram", "unk_id": 9, "vocab": [["a", 0.0]]}})
    case("unigram-empty", {"model": {"type": "Unigram", "unk_id": 0, "vocab": []}})
    case("pattern-that-is-none", {"model": bpe, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "((("}, "behavior": "Isolated", "invert": False}})
    case("pattern-that-clears-the-screen", {"model": bpe, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(\x1b[2J\n"}, "behavior": "Isolated", "invert": False}})
    case("type-unknown", {"model": {"type": "\x1b[2J\nverdict: pass"}})
    case("not-utf8", b'{"model": "\xff"}')


make_gguf()
make_config()
make_safetensors()
make_tokenizer()
(HERE / "expected.json").write_text(json.dumps(EXPECTED, indent=1) + "\n")
print(len(EXPECTED), "files")
