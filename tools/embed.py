#!/usr/bin/env python3
"""Turns a text file into a C header with one string constant: embed.py FILE NAME > HEADER."""
import json
import sys

path, name = sys.argv[1], sys.argv[2]
with open(path, encoding="utf-8") as file:
    text = file.read()
if path.endswith(".json"):
    text = json.dumps(json.loads(text))  # a mistake in it stops the build
# Bytes rather than a literal: compilers need not take literals of over 4095 characters.
data = text.encode() + b"\0"
print(f"/* Made from {path.rsplit('/', 1)[-1]}. */\nstatic const char {name}[] = {{")
for at in range(0, len(data), 20):
    print("    " + " ".join(f"{byte if byte < 128 else byte - 256}," for byte in data[at:at + 20]))
print("};")
