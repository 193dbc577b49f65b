"""Tests that check_tree.py finds planted violations, and only those."""

import os
import tempfile
import unittest

import check_tree

TABLE = """
[arrows]
common/base:
common/net: common/base
common/net/ucx: common/*
kernels: common/base
tests: common/* kernels

[external]
ucp/*: common/net/ucx/*
grpcpp/* *.pb.h: */main.cc
"""


def header(path, body="", guard=None):
    guard = guard or "FARKV_" + path.replace("/", "_").replace(
        ".", "_").upper() + "_"
    return f"#ifndef {guard}\n#define {guard}\n{body}\n#endif\n"


def function(lines):
    body = "  x();\n" * (lines - 2)
    return "void F() {\n" + body + "}\n"


class CheckTreeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name
        self.table_path = self.write("arrows.txt", TABLE)
        for room in ("common/base", "common/net", "common/net/ucx", "kernels",
                     "tests"):
            self.write(room + "/README.md", "What.\nOf.\nWhere.\n")

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        return full

    def check(self):
        table = check_tree.read_table(self.table_path)
        return check_tree.check_tree(self.root, table)

    def expect(self, *parts):
        violations, _ = self.check()
        self.assertEqual(len(violations), 1, violations)
        for part in parts:
            self.assertIn(part, violations[0])

    def test_a_clean_tree_has_no_violations(self):
        self.write("common/base/a.h", header("common/base/a.h"))
        self.write("common/net/b.cc", '#include "common/base/a.h"\n'
                   '#include "common/net/c.h"\n#include <vector>\n')
        self.write("common/net/ucx/d.cc", '#include "common/net/c.h"\n'
                   "#include <ucp/api/ucp.h>\n")
        self.write("tests/e_test.cc", '#include "kernels/f.h"\n')
        self.write("kernels/main.cc", "#include <grpcpp/grpcpp.h>\n")

        self.assertEqual(self.check(), ([], []))

    def test_an_include_against_the_arrows_fails(self):
        self.write("common/base/a.cc", '#include "common/net/b.h"\n')

        self.expect("common/base/a.cc", "may not include common/net/b.h")

    def test_an_allowed_folder_does_not_open_the_one_below_it(self):
        self.write("kernels/a.cc", '#include "common/net/ucx/b.h"\n')

        self.expect("kernels may not include common/net/ucx/b.h")

    def test_an_include_of_an_unknown_folder_fails(self):
        self.write("kernels/a.cc", '#include "common/nowhere/b.h"\n')

        self.expect("common/nowhere/b.h")

    def test_a_folder_outside_the_table_fails(self):
        self.write("common/new/a.cc", "")

        self.expect("common/new/a.cc", "not in the table")

    def test_a_library_outside_its_folder_fails(self):
        self.write("common/net/a.cc", "#include <ucp/api/ucp.h>\n")

        self.expect("may not include ucp/api/ucp.h")

    def test_a_generated_header_outside_its_place_fails(self):
        self.write("kernels/a.cc", '#include "x.pb.h"\n')

        self.expect("may not include x.pb.h")

    def test_an_arrow_that_no_file_uses_is_named(self):
        self.write("common/net/a.cc", '#include "common/base/b.h"\n')
        self.write("common/net/ucx/c.cc", '#include "common/net/d.h"\n')
        self.write("tests/e_test.cc", '#include "common/base/b.h"\n'
                   '#include "farkv/x/v1/x.pb.h"\n')
        table = check_tree.read_table(self.table_path)

        self.assertEqual(check_tree.unused_arrows(self.root, table),
                         ["arrows: no file of kernels includes common/base",
                          "arrows: no file of tests includes kernels"])

    def test_remote_access_by_address_fails(self):
        self.write("common/net/ucx/a.cc", "// UCP_FEATURE_RMA\n"
                   "int a = UCP_FEATURE_AM | UCP_FEATURE_RMA;\n")

        self.expect("common/net/ucx/a.cc", "may not use UCP_FEATURE_RMA")

    def test_a_long_function_fails_where_it_begins(self):
        self.write("common/base/a.cc", "namespace farkv {\n\n" +
                   function(100) + function(101) + "}\n")

        self.expect("line 103", "function of 101 lines")

    def test_a_kernel_body_may_be_longer(self):
        self.write("kernels/a.cc", function(150))
        self.assertEqual(self.check()[0], [])

        self.write("kernels/b.cc", function(151))
        self.expect("kernels/b.cc", "151 lines, more than 150")

    def test_braces_in_strings_and_comments_do_not_count(self):
        self.write("common/base/a.cc", 'void F() {\n  x("{");  // {\n'
                   "  char c = '{';\n}\n" + "int x;\n" * 120)

        self.assertEqual(self.check()[0], [])

    def test_a_method_of_a_long_class_is_measured_alone(self):
        self.write("common/base/a.cc", "class A final : public B {\n" +
                   "  int f() const { return 1; }\n" * 120 + "};\n")

        self.assertEqual(self.check()[0], [])

    def test_a_long_file_fails_and_a_longish_one_warns(self):
        self.write("common/base/a.cc", "int x;\n" * 601)
        self.write("common/base/b.cc", "int x;\n" * 401)
        self.write("tests/c_test.cc", "int x;\n" * 800)

        violations, warnings = self.check()

        self.assertEqual(len(violations), 1)
        self.assertIn("601 lines, more than 600", violations[0])
        self.assertEqual(len(warnings), 2)

    def test_a_room_without_a_readme_fails(self):
        self.write("kernels/a.cc", "")
        os.remove(os.path.join(self.root, "kernels/README.md"))

        self.expect("kernels: has no README.md")

    def test_a_readme_of_four_lines_fails(self):
        self.write("kernels/a.cc", "")
        self.write("kernels/README.md", "a\nb\nc\nd\n")

        self.expect("4 lines, not three")

    def test_a_wrong_guard_fails(self):
        self.write("kernels/a.h", header("kernels/a.h", guard="A_H"))

        self.expect("must be guarded by FARKV_KERNELS_A_H_")

    def test_using_namespace_in_a_header_fails(self):
        self.write("kernels/a.h",
                   header("kernels/a.h", "using namespace std;"))

        self.expect("using namespace")

    def test_an_unreadable_table_is_refused(self):
        self.write("arrows.txt", "[arrows]\ncommon/base common/net\n")

        with self.assertRaisesRegex(SystemExit, "arrows.txt:2: cannot read"):
            self.check()


if __name__ == "__main__":
    unittest.main()
