#!/usr/bin/env python3
"""Turns a text file into a C header with one string constant: embed.py FILE NAME > HEADER."""
import json
import sys

path, name = sys.argv[1], sys.argv[2]
with open(path, encoding="utf-8") as file:
    text = file.read()
if path.endswith(".json"):
    text = json.dumps(json.loads(text), ensure_ascii=True)  # a mistake in it stops the build
pieces = [text[i:i + 2000] for i in range(0, len(text), 2000)]
print(f"/* Made from {path.rsplit('/', 1)[-1]}. */\nstatic const char {name}[] =")
print("\n".join("    " + json.dumps(piece, ensure_ascii=True) for piece in pieces) + ";")
