# SPDX-License-Identifier: Apache-2.0
"""stand_ins.py - libraries that a wheel of PyTorch wants and does not bring.

They are a GPU's (2 to 3 GB). On a CPU nobody calls them, but the loader wants
each of them, with its symbols. Here each is a small library of that name, in
which every function returns an error.
"""

import os
import re
import subprocess

OF_A_GPU = re.compile(r"lib(cu|nccl|nv)")
THEIRS = re.compile(r"(cu|nccl|nv|__cuda|__nv)")
NO_DEVICE = 100


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True,
                          capture_output=True, text=True).stdout


def wanted_by(path):
    """Of a library: what it needs, {(symbol, version or None)} that others
    must have, the symbols that it has, {version: the library it is of}."""
    needs = set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path)))
    missing, has = set(), set()
    for line in readelf("--dyn-syms", path).splitlines():
        column = line.split()
        if len(column) < 8 or not column[0].endswith(":"):
            continue
        name, _, version = column[7].partition("@")
        if column[6] == "UND":
            missing.add((name, version.lstrip("@") or None))
        else:
            has.add(name)
    owner, library = {}, None
    for line in readelf("-V", path).splitlines():
        if found := re.search(r"Version: 1  File: (\S+)", line):
            library = found[1]
        elif (found := re.search(r"Name: (\S+)\s+Flags", line)) and library:
            owner[found[1]] = library
    return needs, missing, has, owner


def source_of(symbols):
    lines = []
    for symbol in sorted(symbols):
        says = re.search("String|Name", symbol)
        lines.append(f'const char *{symbol}(void) {{ return "stand-in"; }}'
                     if says else
                     f"int {symbol}(void) {{ return {NO_DEVICE}; }}")
    return "\n".join(lines) + "\n"


def make(folder, wheel):
    """Into `folder`, for the libraries of an unpacked wheel; their names."""
    there = os.path.join(wheel, "torch", "lib")
    needs, missing, has, owner = set(), set(), set(), {}
    for name in sorted(os.listdir(there)):
        if ".so" in name:
            found = wanted_by(os.path.join(there, name))
            needs |= found[0]
            missing |= found[1]
            has |= found[2]
            owner.update(found[3])
    lacks = sorted(n for n in needs - set(os.listdir(there))
                   if OF_A_GPU.match(n))
    plain = {s for s, v in missing if v is None and s not in has and
             THEIRS.match(s)}
    os.makedirs(folder, exist_ok=True)
    for library in lacks:
        nodes = {}
        for symbol, version in missing:
            if version and owner.get(version) == library:
                nodes.setdefault(version, set()).add(symbol)
        compile_one(os.path.join(folder, library), plain, nodes)
    return lacks


def compile_one(path, plain, nodes):
    """`nodes`: version -> its symbols; `plain`, which have none, are in all,
    as a loader takes the first that it finds."""
    with open(path + ".c", "w", encoding="ascii") as f:
        f.write(source_of(plain.union(*nodes.values())))
    command = ["gcc", "-w", "-shared", "-fPIC", "-fno-builtin", "-o", path,
               path + ".c", f"-Wl,-soname,{os.path.basename(path)}"]
    if nodes:
        with open(path + ".map", "w", encoding="ascii") as f:
            for version, symbols in sorted(nodes.items()):
                f.write(f"{version} {{ {'; '.join(sorted(symbols))}; }};\n")
        command.append(f"-Wl,--version-script={path}.map")
    subprocess.run(command, check=True)
