#include "tests/golden/golden_file.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace farkv::testing {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::vector<std::byte> GoldenBytes(const std::string& name) {
  const char* root = std::getenv("FARKV_TEST_SOURCE_DIR");
  const std::string path = absl::StrCat(root == nullptr ? "." : root,
                                        "/tests/golden/", name, ".hex");
  std::string digits = Read(path);
  std::erase_if(digits, [](char c) { return c == ' ' || c == '\n'; });
  const bool hex = std::all_of(digits.begin(), digits.end(), [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
  });
  if (digits.empty() || digits.size() % 2 != 0 || !hex) {
    ADD_FAILURE() << path << " is missing or not hex"
                  << " (set FARKV_TEST_SOURCE_DIR)";
    return {};
  }
  const std::string raw = absl::HexStringToBytes(digits);
  std::vector<std::byte> bytes(raw.size());
  std::transform(raw.begin(), raw.end(), bytes.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

std::string FirstDifference(const std::vector<std::byte>& found,
                            const std::vector<std::byte>& golden) {
  const size_t common = std::min(found.size(), golden.size());
  for (size_t i = 0; i < common; ++i) {
    if (found[i] == golden[i]) continue;
    return absl::StrCat(
        "offset ", i, ": ",
        absl::Hex(static_cast<uint8_t>(found[i]), absl::kZeroPad2),
        " != ", absl::Hex(static_cast<uint8_t>(golden[i]), absl::kZeroPad2));
  }
  if (found.size() == golden.size()) return "";
  return absl::StrCat(found.size(), " bytes, golden has ", golden.size());
}

std::vector<std::byte> Pattern(size_t count, size_t start) {
  std::vector<std::byte> bytes(count);
  for (size_t k = 0; k < count; ++k) {
    const size_t i = start + k;
    bytes[k] = static_cast<std::byte>((i * 131 + (i >> 8) * 17 + 7) & 0xff);
  }
  return bytes;
}

}  // namespace farkv::testing
