// The cases of tests/golden/models (make_model_goldens.py wrote them), laid out
// as model directories.
#ifndef FARKV_TESTS_UNIT_GPU_WORKER_MODEL_GOLDEN_MODELS_H_
#define FARKV_TESTS_UNIT_GPU_WORKER_MODEL_GOLDEN_MODELS_H_

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace farkv {

inline std::filesystem::path GoldenModels() {
  const char* source = getenv("FARKV_TEST_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) /
         "tests/golden/models";
}

inline std::vector<std::string> GoldenModelCases() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(GoldenModels())) {
    if (entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A model directory while it lives.
class GoldenModel {
 public:
  explicit GoldenModel(const std::string& name)
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("farkv-golden-" + std::to_string(getpid()) + "-" + name)) {
    std::ifstream file(GoldenModels() / (name + ".json"));
    golden = nlohmann::json::parse(file);
    std::filesystem::create_directories(folder_);
    const auto weights = golden["weights"].get<std::string>();
    for (const auto& entry :
         std::filesystem::directory_iterator(GoldenModels() / weights)) {
      std::filesystem::create_symlink(entry.path(),
                                      folder_ / entry.path().filename());
    }
    std::ofstream(folder_ / "config.json") << golden["config"];
    std::ofstream(folder_ / "tokenizer.json")
        << R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
  }
  ~GoldenModel() { std::filesystem::remove_all(folder_); }
  GoldenModel(const GoldenModel&) = delete;
  GoldenModel& operator=(const GoldenModel&) = delete;

  std::string path() const { return folder_.string(); }
  std::string config_path() const { return folder_ / "config.json"; }

  nlohmann::json golden;

 private:
  const std::filesystem::path folder_;
};

}  // namespace farkv

#endif  // FARKV_TESTS_UNIT_GPU_WORKER_MODEL_GOLDEN_MODELS_H_
