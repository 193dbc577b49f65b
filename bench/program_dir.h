// Where this program lies; the nodes that a bench starts lie beside it.
#ifndef FARKV_BENCH_PROGRAM_DIR_H_
#define FARKV_BENCH_PROGRAM_DIR_H_

#include <filesystem>
#include <string>

namespace farkv::bench {

inline std::string ProgramDir() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error)
      .parent_path()
      .string();
}

}  // namespace farkv::bench

#endif  // FARKV_BENCH_PROGRAM_DIR_H_
