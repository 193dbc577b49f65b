// The pieces of a vocabulary by their bytes. Immutable after the last Add;
// thread-safe then.
#ifndef FARKV_GPU_WORKER_TOKENIZER_PIECE_TABLE_H_
#define FARKV_GPU_WORKER_TOKENIZER_PIECE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace farkv {

// Whole pieces only.
class PieceTable {
 public:
  // False when there is such a piece already; it keeps its id.
  bool Add(absl::string_view piece, int32_t id) {
    return ids_.try_emplace(std::string(piece), id).second;
  }
  // -1 when there is none.
  int32_t Find(absl::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? -1 : found->second;
  }

 private:
  absl::flat_hash_map<std::string, int32_t> ids_;
};

// Pieces that a text starts with: a tree whose edges are bytes.
class PieceTree {
 public:
  bool Add(absl::string_view piece, int32_t id) {
    uint32_t node = 0;
    for (const char byte : piece) {
      const auto [edge, made] = edges_.try_emplace(Edge(node, byte), 0);
      if (made) {
        edge->second = static_cast<uint32_t>(ends_.size());
        ends_.push_back(-1);
      }
      node = edge->second;
    }
    if (ends_[node] >= 0) return false;
    ends_[node] = id;
    return true;
  }

  // Calls visit(bytes, id) for each piece that `text` starts with, shortest
  // first.
  template <typename Visit>
  void ForEachPrefix(absl::string_view text, Visit visit) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto edge = edges_.find(Edge(node, text[i]));
      if (edge == edges_.end()) return;
      node = edge->second;
      if (ends_[node] >= 0) visit(i + 1, ends_[node]);
    }
  }

 private:
  static uint64_t Edge(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<uint8_t>(byte);
  }

  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::vector<int32_t> ends_{-1};  // by node: the id of the piece, or -1
};

}  // namespace farkv

#endif  // FARKV_GPU_WORKER_TOKENIZER_PIECE_TABLE_H_
