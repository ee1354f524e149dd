# SPDX-License-Identifier: Apache-2.0
"""order_test.py - orders that are planted are found as they are, and what is no
tree of sums of two is told so."""

import os
import subprocess
import sys
import unittest

import box_planted
import order
import order_draw
import sum_order

HERE = os.path.dirname(os.path.abspath(__file__))
ELEMENTS = 24


def found_of(kind, n, name, elements=ELEMENTS):
    form = sum_order.FORMATS[name]
    return sum_order.probe(box_planted.sums(kind, form, elements), n, form)


def tell(words):
    return subprocess.run(
        [sys.executable, os.path.join(HERE, "order.py"), "--box",
         f"{sys.executable} {HERE}/box_planted.py {words[0]}", *words[1:]],
        check=False, capture_output=True, text=True)


class Trees(unittest.TestCase):
    """Worlds of 2 to 8 in each format."""

    def each(self):
        for n in range(2, 9):
            for name in sum_order.FORMATS:
                with self.subTest(n=n, format=name):
                    yield n, name, sum_order.FORMATS[name].bits

    def test_found_exactly(self):
        for kind in ("left", "pairwise", "halves"):
            for n, name, bits in self.each():
                (found,) = found_of(kind, n, name)
                self.assertEqual(found.why, "")
                self.assertEqual(found.tree,
                                 box_planted.tree_at(kind, n, 0, ELEMENTS))
                self.assertEqual(set(found.bits.values()),
                                 {bits} if n > 2 else set())
                self.assertEqual(found.places, [(0, ELEMENTS)])

    def test_ring_by_rank(self):
        """Each rank's part has its own, of two ranks both are one."""
        for n, name, _ in self.each():
            elements = 3 * n
            found = found_of("ring", n, name, elements)
            self.assertEqual(len(found), 1 if n == 2 else n)
            for one in found:
                for first, last in one.places:
                    for place in range(first, last):
                        self.assertEqual(one.tree, box_planted.tree_at(
                            "ring", n, place, elements))

    def test_wide_sums(self):
        """Sums of 24 bits of values of 16; of two nothing can be told."""
        for n, name, _ in self.each():
            (found,) = found_of("wide", n, name)
            self.assertEqual(found.tree, sum_order.halves(n))
            self.assertEqual(set(found.bits.values()),
                             {24} if n > 2 else set())

    def test_another_order_at_the_end(self):
        for n, name, _ in self.each():
            if n < 4:  # of three the two are one
                continue
            found = found_of("tail", n, name)
            self.assertEqual([f.places for f in found],
                             [[(0, 18)], [(18, 24)]])
            self.assertEqual([f.tree for f in found],
                             [sum_order.balanced(0, n),
                              sum_order.chain(list(range(n)))])


class NoTrees(unittest.TestCase):
    """Of three ranks and more: two have but one order."""

    def refused(self, kind, says):
        for n in range(3, 9):
            for name in sum_order.FORMATS:
                with self.subTest(n=n, format=name):
                    (found,) = found_of(kind, n, name)
                    self.assertIsNone(found.tree)
                    self.assertIn(says, found.why)

    def test_all_at_once(self):
        self.refused("fused", "meet at once")

    def test_exact(self):
        self.refused("exact", "every pair meets before the others")

    def test_smallest_first(self):
        self.refused("ascending", "begins with what is smallest")

    def test_largest_first(self):
        self.refused("descending", "begins with what is largest")

    def test_signs(self):
        self.refused("signs", "another order than the other way round")

    def test_other_values_another_order(self):
        """The pairs have a tree, which others do not follow."""
        form = sum_order.FORMATS["float32"]

        def box(probes):
            return [[box_planted.along(
                sum_order.chain([0, 1, 2, 3] if 0.0 in p or form.big in p
                                else [3, 2, 1, 0]), p, form)]
                    for p in probes]

        (found,) = sum_order.probe(box, 4, form)
        self.assertIn("other values another", found.why)

    def test_no_number_of_ones(self):
        form = sum_order.FORMATS["float32"]
        (found,) = sum_order.probe(lambda ps: [[0.5] for _ in ps], 4, form)
        self.assertIn("0.5 is left", found.why)


class CommandLine(unittest.TestCase):
    """What is printed, drawn and refused."""

    def test_text(self):
        done = tell(["left", "--of", "planted", "--ranks", "4", "--elements",
                     "5"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout,
                         "planted: all-reduce of 8 float32, 4 ranks\n"
                         "  0-7: up, (((0 + 1) + 2) + 3)\n")

    def test_wide(self):
        done = tell(["wide", "--ranks", "4", "--format", "bfloat16"])
        self.assertIn("halves, ((0 + 2) + (1 + 3)); sums in 24 bits",
                      done.stdout)

    def test_no_tree_is_an_exit_code(self):
        done = tell(["exact", "--ranks", "3-4", "--elements", "4"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("no tree: every pair"), 2)

    def test_bad_boxes(self):
        for kind, says in (("fails", "answers 'no such op'"),
                           ("silent", "answers ''"),
                           ("short", "it writes no")):
            done = tell([kind, "--ranks", "2"])
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        with self.assertRaises(order.Refused):
            order.Program("/no/such/box", 5.0).start(2)

    def test_picture(self):
        found = found_of("ring", 4, "float32")
        drawn = order_draw.picture("<a>", found, 4,
                                   sum_order.FORMATS["float32"])
        self.assertEqual(drawn.count("<circle"), 4 * 3)
        self.assertEqual(drawn.count('class="module"'), 4 * 4)
        self.assertIn("&lt;a&gt;", drawn)
        self.assertIn("prefers-color-scheme: dark", drawn)


if __name__ == "__main__":
    unittest.main()
