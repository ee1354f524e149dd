# SPDX-License-Identifier: Apache-2.0
"""order_draw.py - trees of sums as a picture, for light and for dark pages."""

from xml.sax.saxutils import escape

import sum_order

WIDTH, MARGIN, MOST = 800, 24, 4
STEP, TOP, PANEL_TOP = 30, 62, 40

# The colours of conformance/judge/report/picture_frame.c.
STYLE = """<style>
text { font: 13px sans-serif; fill: #1f2328; }
.title { font-size: 17px; font-weight: bold; }
.small { font-size: 12px; }
.muted { fill: #59636e; }
.middle { text-anchor: middle; }
.page { fill: #ffffff; }
.module { fill: #eaeef2; stroke: #afb8c1; }
.line { stroke: #59636e; stroke-width: 1.5; fill: none; }
.reduce { fill: #bc4c00; }
.gather { fill: #0969da; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.muted { fill: #9198a1; }
.page { fill: #0d1117; }
.module { fill: #21262d; stroke: #57606a; }
.line { stroke: #9198a1; }
.reduce { fill: #f0883e; }
.gather { fill: #58a6ff; }
}
</style>
"""


def depth(tree):
    """Sums on the longest way to a rank."""
    return 0 if isinstance(tree, int) else 1 + max(depth(t) for t in tree)


class Panel:
    """One tree, in a place of its own."""

    def __init__(self, found, form, left, top, width):
        self.found, self.form = found, form
        self.left, self.top, self.width = left, top, width
        self.out = []
        self.leaf = 0
        self.bottom = top + PANEL_TOP + STEP * depth(found.tree)

    def text(self, x, y, words, kind=""):
        self.out.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">'
                        f'{escape(words)}</text>')

    def place(self, tree):
        """Draws it; where its sum is."""
        if isinstance(tree, int):
            n = len(sum_order.leaves(self.found.tree))
            x = self.left + (self.leaf + 0.5) * self.width / n
            self.leaf += 1
            y = self.bottom
            self.out.append(f'<rect class="module" x="{x - 11:.1f}" '
                            f'y="{y:.1f}" width="22" height="20" rx="4"/>')
            self.text(x, y + 14.5, str(tree), "middle")
            return x, y
        ends = [self.place(part) for part in tree]
        x = sum(e[0] for e in ends) / len(ends)
        y = self.bottom - STEP * depth(tree)
        for there in ends:
            self.out.append(f'<path class="line" d="M{there[0]:.1f},'
                            f'{there[1]:.1f} V{y:.1f} H{x:.1f}"/>')
        wide = self.found.bits.get(tree, self.form.bits) != self.form.bits
        self.out.append(f'<circle class="{"gather" if wide else "reduce"}" '
                        f'cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
        return x, y


def places_of(found):
    """The first of them, where there are many."""
    first, last = found.places[0]
    more = len(found.places) - 1
    return f"elements {first} to {last - 1}" + \
        (f", and {more} more such parts" if more else "")


def caption(found, n):
    if found.why:
        return "no tree of sums of two"
    return sum_order.names(n).get(found.tree, sum_order.text_of(found.tree))


def picture(title, all_found, n, form):
    """Four of the trees, each over the elements that have it."""
    shown = [f for f in all_found if f.tree is not None][:MOST]
    columns = 2 if len(shown) > 1 else 1
    width = (WIDTH - MARGIN * (columns + 1)) / columns
    panels, top = [], TOP
    for at in range(0, len(shown), columns):
        row = [Panel(f, form, MARGIN + i * (width + MARGIN), top, width)
               for i, f in enumerate(shown[at:at + columns])]
        panels += row
        top = max(p.bottom for p in row) + 48
    for p in panels:
        p.text(p.left, p.top, f"{places_of(p.found)}: {caption(p.found, n)}",
               "small")
        p.place(p.found.tree)
    left = len(all_found) - len(shown)
    notes = f"Blue: a sum with other than {form.bits} bits." if any(
        b != form.bits for f in shown for b in f.bits.values()) else ""
    if left:
        notes = f"{notes} Of {left} more orders see the text.".strip()
    body = "\n".join(line for p in panels for line in p.out)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
            f'{top}" role="img" aria-label="{escape(title)}">\n{STYLE}'
            f'<rect class="page" width="{WIDTH}" height="{top}" rx="6"/>\n'
            f'<text class="title" x="{MARGIN}.0" y="26.0">{escape(title)}'
            f'</text>\n<text class="small muted" x="{MARGIN}.0" y="44.0">'
            f'{escape(notes)}</text>\n{body}\n</svg>\n')
