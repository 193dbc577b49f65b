// A directory of one test, removed with its files at the end. Test only.
#ifndef FARKV_TESTS_UNIT_MAPPING_TEMP_DIR_H_
#define FARKV_TESTS_UNIT_MAPPING_TEMP_DIR_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace farkv::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "farkv-map-XXXXXX").string();
    path_ = mkdtemp(pattern.data()) == nullptr ? "" : pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string Sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace farkv::testing

#endif  // FARKV_TESTS_UNIT_MAPPING_TEMP_DIR_H_
