// The texts of tests/golden/tokenizers and what the reference tokenizers make
// of them.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_TOKENIZER_REFERENCE_IDS_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_TOKENIZER_REFERENCE_IDS_H_

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace farkv {

inline std::string ReferencePath(const std::string& name) {
  return std::string(std::getenv("FARKV_TEST_SOURCE_DIR")) +
         "/tests/golden/tokenizers/" + name;
}

inline std::vector<std::string> ReferenceTexts() {
  std::ifstream file(ReferencePath("texts.jsonl"));
  std::vector<std::string> texts;
  for (std::string line; std::getline(file, line);) {
    texts.push_back(nlohmann::json::parse(line).get<std::string>());
  }
  return texts;
}

// LEB128 numbers: a count and as many ids for each text.
inline std::vector<std::vector<int32_t>> ReferenceIds(
    const std::string& family) {
  std::ifstream file(ReferencePath(family + ".ids"), std::ios::binary);
  const auto next = [&file] {
    uint32_t value = 0;
    for (int shift = 0;; shift += 7) {
      const int byte = file.get();
      if (byte == EOF) return value;
      value |= static_cast<uint32_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  std::vector<std::vector<int32_t>> ids;
  while (file.peek() != EOF) {
    ids.emplace_back(next());
    for (int32_t& id : ids.back()) id = static_cast<int32_t>(next());
  }
  return ids;
}

// What each text decodes to.
inline std::vector<std::string> ReferenceDecoded(const std::string& family) {
  std::vector<std::string> decoded = ReferenceTexts();
  std::ifstream file(ReferencePath(family + ".decoded"));
  for (std::string line; std::getline(file, line);) {
    const auto entry = nlohmann::json::parse(line);
    decoded.at(entry[0].get<size_t>()) = entry[1].get<std::string>();
  }
  return decoded;
}

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_TOKENIZER_REFERENCE_IDS_H_
