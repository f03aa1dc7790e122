#!/usr/bin/env python3
"""Draws folded stacks as one small SVG, root at the top: tools/flamegraph_svg.py IN.folded OUT.svg

For pictures in the documentation. Frames below half a percent, and those deeper than 24, are left out."""
import html
import re
import sys
import zlib

WIDTH, ROW, MARGIN, CHARACTER = 960, 17, 8, 6.1
SMALLEST = 0.005
MAX_DEPTH = 24


def read_tree(path):
    root = {"value": 0, "children": {}}
    for line in open(path, encoding="utf-8"):
        stack, _, value = line.rstrip("\n").rpartition(" ")
        node, value = root, int(value)
        node["value"] += value
        for name in stack.split(";"):
            node = node["children"].setdefault(name, {"value": 0, "children": {}})
            node["value"] += value
    return root


def short_name(name):
    """std::vector<int>::push_back(int const&) -> std::vector::push_back"""
    name = re.sub(r"\[clone [^]]*\]", "", name).strip()
    if name.startswith("[") or "+0x" in name:
        return name
    while True:
        shorter = re.sub(r"<[^<>]*>|\([^()]*\)|\{[^{}]*\}", "", name)
        if shorter == name:
            break
        name = shorter
    name = name.replace(" const", "").replace("&", "").strip()
    return name.split(" ")[-1] or name


def color(name):
    if name.startswith("["):
        return "#b8b8b8"  # what was missed is grey
    hue = zlib.crc32(name.encode()) % 40 + 15
    return f"hsl({hue},70%,{62 + hue % 5 * 3}%)"


def draw(node, name, left, depth, scale, total, out):
    width = node["value"] * scale
    if depth > MAX_DEPTH or node["value"] < SMALLEST * total:
        return depth - 1
    top = MARGIN + depth * ROW
    share = f"{100 * node['value'] / total:.1f} %"
    out.append(f'<g><title>{html.escape(name)}: {share}</title><rect x="{left:.1f}" y="{top}" '
               f'width="{max(width - 0.5, 0.5):.1f}" height="{ROW - 1}" fill="{color(name)}"/>')
    room = int((width - 6) / CHARACTER)
    text = short_name(name)
    if depth == 0:
        text = f"{text} {share}"
    if room >= 4:
        shown = text if len(text) <= room else text[:room - 1] + "…"
        out.append(f'<text x="{left + 3:.1f}" y="{top + 12}">{html.escape(shown)}</text>')
    out.append("</g>")
    deepest = depth
    for child_name, child in sorted(node["children"].items(), key=lambda item: -item[1]["value"]):
        deepest = max(deepest, draw(child, child_name, left, depth + 1, scale, total, out))
        left += child["value"] * scale
    return deepest


def main():
    source, target = sys.argv[1:3]
    tree = read_tree(source)
    out, total = [], tree["value"]
    name = "all"
    if len(tree["children"]) == 1:  # one process: its name is the root
        name, tree = next(iter(tree["children"].items()))
    depth = draw(tree, name, MARGIN, 0, (WIDTH - 2 * MARGIN) / total, total, out)
    height = 2 * MARGIN + (depth + 1) * ROW
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            'font-family="monospace" font-size="10"><rect width="100%" height="100%" fill="#fff"/>')
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join([head, *out, "</svg>\n"]))


if __name__ == "__main__":
    main()
