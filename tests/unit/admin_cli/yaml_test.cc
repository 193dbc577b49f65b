#include "admin_cli/yaml.h"

#include <gtest/gtest.h>

namespace farkv {
namespace {

using Json = nlohmann::ordered_json;

TEST(YamlTest, MapsAndListsAreBlocks) {
  const Json document =
      Json::parse(R"({"b": {"x": 1, "why": []}, "a": [1, {"p": 2, "q": [3, 4]},
                      [5], {}], "z": null})");

  EXPECT_EQ(ToYaml(document),
            "b:\n"
            "  x: 1\n"
            "  why: []\n"
            "a:\n"
            "- 1\n"
            "- p: 2\n"
            "  q:\n"
            "  - 3\n"
            "  - 4\n"
            "-\n"
            "  - 5\n"
            "- {}\n"
            "z: null\n");
}

TEST(YamlTest, WhatMightBeReadAsSomethingElseIsInQuotes) {
  EXPECT_EQ(ToYaml("plain-text.1/2_3"), "plain-text.1/2_3\n");
  for (const char* text :
       {"", "no", "Yes", "true", "null", "NULL", "off", "7", "1e3", "0x10", "-",
        "- a", "a: b", "a #b", "127.0.0.1:7402", "*a", " a", "a b"}) {
    EXPECT_EQ(ToYaml(text), Json(text).dump() + "\n") << text;
  }
  EXPECT_EQ(ToYaml("a\n\x1b\"\xc3\xa9"), "\"a\\n\\u001b\\\"\\u00e9\"\n");
}

TEST(YamlTest, TextThatIsNoUtf8DoesNotThrow) {
  EXPECT_EQ(ToYaml("a\xff"), "\"a\\ufffd\"\n");
}

}  // namespace
}  // namespace farkv
