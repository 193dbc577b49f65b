#include "gpu_worker/tiering/compact_positions.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/bf16.h"
#include "common/policy/head_vectors.h"
#include "common/policy/streaming_llm_policy.h"
#include "gpu_worker/tiering/row_reader.h"
#include "kernels/elementwise.h"

namespace farkv {
namespace {

void StoreKey(const std::vector<float>& key, DType dtype, std::byte* to) {
  if (dtype == DType::kF32) {
    std::memcpy(to, key.data(), key.size() * sizeof(float));
    return;
  }
  for (size_t c = 0; c < key.size(); ++c) {
    const uint16_t bits = FloatToBf16(key[c]);
    std::memcpy(to + c * sizeof(bits), &bits, sizeof(bits));
  }
}

// Where the key of a row in T0 lies.
std::byte* KeyPlace(const Sequence& sequence, const T0Lines& lines,
                    const KvGeometry& geometry, int layer, int head,
                    int64_t position) {
  const Page& page =
      sequence.table.page(static_cast<int>(position / kPageTokens));
  const auto g = static_cast<size_t>(lines.granularity());
  const auto slot = static_cast<size_t>(position % kPageTokens);
  return lines.Line(layer, page.lines[slot / g]) +
         geometry.KeyOffset(g, static_cast<size_t>(head), slot % g);
}

// Live positions of one layer and KV head whose place among them is not the
// one that their key is turned to; notes the new ones.
std::vector<int64_t> TakeMoved(const Sequence& sequence, int layer, int head,
                               int num_heads, WrittenKeys& keys) {
  std::vector<int64_t> moved;
  int64_t next = 0;
  for (int64_t p = 0; p < sequence.table.num_tokens(); ++p) {
    const Page& page = sequence.table.page(static_cast<int>(p / kPageTokens));
    const uint64_t live = page.layer_live(layer, num_heads)[head];
    if ((live >> (p % kPageTokens) & 1) == 0) continue;
    int64_t& turned = keys.turned_to[static_cast<size_t>(p)];
    if (turned != next) moved.push_back(p);
    turned = next++;
  }
  return moved;
}

}  // namespace

absl::Status CheckCompaction(const SequenceSpec& spec,
                             const KvGeometry& geometry, bool has_nodes) {
  if (spec.compact_frequencies.empty()) return absl::OkStatus();
  const char* const wrong =
      has_nodes ? "memory nodes, whose rows never change"
      : spec.selection.policy != SelectionPolicy::kNone
          ? "selection, whose bounds are of keys that never change"
      : spec.compact_frequencies.size() * 2 !=
              static_cast<size_t>(geometry.head_dim)
          ? "other frequencies than one for each pair of a head"
          : nullptr;
  if (wrong == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sequence ", spec.request_id,
                   ": compact positions do not go with ", wrong));
}

void KeepWrittenKeys(const StepPart& part, const T0Lines& lines,
                     const KvGeometry& geometry, Stream& stream) {
  Sequence& sequence = *part.sequence;
  if (sequence.spec.compact_frequencies.empty()) return;
  sequence.written_keys.resize(static_cast<size_t>(geometry.num_layers));
  const auto dim = static_cast<size_t>(geometry.head_dim);
  const int64_t end = sequence.table.num_tokens();
  const int64_t gone = sequence.destruction.destroyed;
  RowReader reader(sequence, lines, geometry, stream, nullptr,
                   absl::ZeroDuration());
  for (int layer = 0; layer < geometry.num_layers; ++layer) {
    reader.LoadResident(layer);
    auto& heads = sequence.written_keys[static_cast<size_t>(layer)];
    heads.resize(static_cast<size_t>(geometry.num_kv_heads));
    for (int head = 0; head < geometry.num_kv_heads; ++head) {
      WrittenKeys& keys = heads[static_cast<size_t>(head)];
      keys.floats.resize(static_cast<size_t>(end) * dim);
      for (int64_t p = part.first_position; p < end; ++p) {
        const std::byte* const row = reader.Key(head, p);
        ReadRow({{&row, 1}, geometry.head_dim, geometry.dtype}, 0,
                keys.floats.data() + static_cast<size_t>(p) * dim);
        keys.written_for.push_back(p - gone);
        keys.turned_to.push_back(p - gone);
      }
    }
  }
}

void TurnMovedKeys(Sequence& sequence, const T0Lines& lines,
                   const KvGeometry& geometry, Stream& stream) {
  const std::vector<double>& frequencies = sequence.spec.compact_frequencies;
  if (frequencies.empty() || sequence.destruction.destroyed == 0) return;
  const auto dim = static_cast<size_t>(geometry.head_dim);
  const size_t bytes = geometry.VectorBytes();
  std::vector<float> key(dim);
  for (int layer = 0; layer < geometry.num_layers; ++layer) {
    for (int head = 0; head < geometry.num_kv_heads; ++head) {
      WrittenKeys& keys = sequence.written_keys[static_cast<size_t>(layer)]
                                               [static_cast<size_t>(head)];
      const std::vector<int64_t> moved =
          TakeMoved(sequence, layer, head, geometry.num_kv_heads, keys);
      std::vector<std::byte> turned(moved.size() * bytes);
      std::vector<CopyPiece> pieces;
      for (size_t i = 0; i < moved.size(); ++i) {
        const auto at = static_cast<size_t>(moved[i]);
        std::memcpy(key.data(), keys.floats.data() + at * dim,
                    dim * sizeof(float));
        RotateKey(key, keys.turned_to[at] - keys.written_for[at], frequencies);
        StoreKey(key, geometry.dtype, turned.data() + i * bytes);
        pieces.push_back(
            {KeyPlace(sequence, lines, geometry, layer, head, moved[i]),
             turned.data() + i * bytes, bytes});
      }
      if (pieces.empty()) continue;
      CopyPieces(stream, pieces);
      stream.Synchronize();
    }
  }
}

}  // namespace farkv
