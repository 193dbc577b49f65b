// The rows of one head as policies read them: T1 rows where they lie, T2 rows
// decoded to the KV dtype, so that every party sees the same bits.
//
// Thread-compatible. Borrows the ticket, whose pins keep the pages in place.
#ifndef FARKV_MEMORY_NODE_DATA_HEAD_ROW_READER_H_
#define FARKV_MEMORY_NODE_DATA_HEAD_ROW_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/policy/eviction_call.h"
#include "memory_node/directory/data_access.h"

namespace farkv {

// The rows that a decision reads: what Directory::BeginRead is asked for, one
// item per page and at least one for the head. Rows that are always kept are
// left out unless `read` wants them.
std::vector<RowsWanted> RowsToRead(const EvictionHead& head,
                                   const HeadRows& rows,
                                   const VectorsRead& read);

class HeadRowReader {
 public:
  // `ticket` outlives the reader and has the pages of RowsToRead.
  HeadRowReader(const ReadTicket& ticket, const EvictionHead& head);

  // Once. DATA_LOSS for a T2 page that cannot be decoded.
  absl::Status Read(const HeadRows& rows, const VectorsRead& read);

  // One vector per position; rows that were not read are zero. Valid as long as
  // the reader and the ticket.
  HeadVectors keys() const { return Vectors(keys_); }
  HeadVectors values() const { return Vectors(values_); }

 private:
  HeadVectors Vectors(const std::vector<const std::byte*>& rows) const {
    return {rows, ticket_.geometry.head_dim, ticket_.geometry.dtype};
  }
  // Positions of one page, ascending.
  absl::Status ReadPage(std::span<const int64_t> positions);
  absl::Status ReadT2Page(const PageRead& page,
                          std::span<const int64_t> positions);
  void ReadT1Page(const PageRead& page, std::span<const int64_t> positions);

  const ReadTicket& ticket_;
  const int32_t layer_;
  const int32_t kv_head_;
  std::vector<std::byte> zero_;  // one vector
  std::vector<const std::byte*> keys_, values_;
  std::vector<std::unique_ptr<std::byte[]>> decoded_;
};

}  // namespace farkv

#endif  // FARKV_MEMORY_NODE_DATA_HEAD_ROW_READER_H_
