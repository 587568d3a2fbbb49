#!/usr/bin/env python3
"""Compares the tokens that a load run counted with what the server counts.

prompts COUNT TOKENS           writes prompts, one JSON line each, that ask for so many tokens
compare RECEIPT PROMPTS URL    asks for each prompt again without streaming, where the server sends usage, and compares

An answer that comes out otherwise the second time says nothing about the first, and is only counted.
"""
import hashlib
import json
import sys
import urllib.request

BEGINNINGS = [
    "The capital of France is",
    "Count: 1, 2, 3, 4, 5, 6, 7,",
    "The first 20 digits of pi are 3.14159",
    "😀 😃 😄 😁 😆 😅",
    "Good morning in six languages: Good morning, Buenos días, Guten Morgen, おはよう",
    "def fibonacci(n):\n    ",
    "| name | age |\n|---|---|\n| Ann | 31 |\n",
    "- apples\n- bread\n- ",
    "Dear Sir or Madam,\n\n",
    "El perro duerme en la cocina porque",
    "Привет, меня зовут Анна, и я",
    "你好，我的名字是",
]


def prompts(count, tokens):
    for number in range(count):
        beginning = BEGINNINGS[number % len(BEGINNINGS)]
        print(json.dumps({"prompt": f"({number}) {beginning}", "output_tokens": tokens}))


def ask(url, prompt, max_tokens):
    body = {"model": "smollm2", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0.0}
    request = urllib.request.Request(
        url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        answer = json.load(answer)
    return answer["choices"][0]["text"], answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]


def compare(receipt, lines, url):
    with open(receipt) as file:
        receipt = json.load(file)
    with open(lines) as file:
        entries = [json.loads(line) for line in file]
    known = {}
    total = same = other = pieces = short = sent = 0
    for level in receipt["levels"]:
        for record in level["requests"]:
            number = record["request"] % len(entries)
            if number not in known:
                known[number] = ask(url, entries[number]["prompt"], entries[number]["output_tokens"])
            text, usage, reason = known[number]
            total += 1
            if record.get("failure"):
                print(f"request {number} failed: {record['failure']['detail']}")
                continue
            sent += record.get("output_tokens") is not None
            short += reason != "length"
            if record["output_sha256"] != hashlib.sha256(text.encode()).hexdigest():
                other += 1
                continue
            counted = record.get("output_tokens")
            if counted is None:
                counted = record.get("text_tokens")
            same += counted == usage
            pieces += len(record["chunk_ns"]) == usage
            if counted != usage:
                print(f"request {number}: counted {counted}, the server {usage}, pieces {len(record['chunk_ns'])}")
    compared = total - other
    print(f"{total} answers, {short} of them ended by the model before the limit; streams with usage: {sent}")
    print(f"asked again without streaming: the same text {compared} times, another {other} times")
    print(f"tokens equal to the server's usage: {same} of {compared} (pieces of the stream: {pieces} of {compared})")
    return 0 if compared > 0 and same == compared else 1


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "prompts":
        prompts(int(sys.argv[2]), int(sys.argv[3]))
    elif len(sys.argv) == 5 and sys.argv[1] == "compare":
        sys.exit(compare(*sys.argv[2:]))
    else:
        sys.exit(__doc__)
