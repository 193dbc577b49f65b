// ScoresRequest and ScoresReply; their bytes are described in bodies.h.
#include "common/base/status_macros.h"
#include "common/page/bodies.h"
#include "common/page/body_checks.h"
#include "common/page/byte_io.h"

namespace farkv {
namespace {

constexpr char kScoresRequest[] = "ScoresRequest";
constexpr char kScoresReply[] = "ScoresReply";

constexpr uint64_t kLayerBytes = 16;  // before m and l
constexpr uint64_t kPageScoresBytes = 8 + 8 * uint64_t{kPageTokens};

absl::Status CheckHead(uint32_t layers, uint32_t query_heads, uint32_t pages) {
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kScoresRequest, "layers", layers, kMaxMessageItems));
  FARKV_RETURN_IF_ERROR(CheckQueryHeads(kScoresRequest, query_heads, 1));
  return CheckLimit(kScoresRequest, "pages", pages, kMaxSequencePages);
}

absl::Status CheckRequest(const ScoresRequest& request) {
  FARKV_RETURN_IF_ERROR(
      CheckIndex(kScoresRequest, "query heads", request.num_query_heads));
  const auto query_heads = static_cast<uint32_t>(request.num_query_heads);
  FARKV_RETURN_IF_ERROR(CheckHead(static_cast<uint32_t>(request.layers.size()),
                                  query_heads,
                                  static_cast<uint32_t>(request.pages.size())));
  for (const ScoresRequest::Layer& layer : request.layers) {
    FARKV_RETURN_IF_ERROR(CheckIndex(kScoresRequest, "layer", layer.layer));
    FARKV_RETURN_IF_ERROR(
        CheckEqual(kScoresRequest, "m", layer.globals.m.size(), query_heads));
    FARKV_RETURN_IF_ERROR(
        CheckEqual(kScoresRequest, "l", layer.globals.l.size(), query_heads));
  }
  int32_t before = -1;
  for (const int32_t page : request.pages) {
    FARKV_RETURN_IF_ERROR(CheckAscending(kScoresRequest, before, page));
    before = page;
  }
  return absl::OkStatus();
}

absl::Status ReadLayers(ByteReader& reader, uint32_t layers,
                        ScoresRequest& request) {
  const auto heads = static_cast<size_t>(request.num_query_heads);
  FARKV_RETURN_IF_ERROR(
      reader.Require("layers", layers, kLayerBytes + 8 * heads));
  request.layers.resize(layers);
  for (ScoresRequest::Layer& layer : request.layers) {
    FARKV_ASSIGN_OR_RETURN(layer.layer, ReadIndex(reader, "layer"));
    FARKV_RETURN_IF_ERROR(reader.ReadZero("layer"));
    layer.globals.step = reader.Read<uint64_t>();
    layer.globals.m.resize(heads);
    layer.globals.l.resize(heads);
    reader.ReadFloats(layer.globals.m);
    reader.ReadFloats(layer.globals.l);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> EncodeScoresRequest(
    const ScoresRequest& request) {
  FARKV_RETURN_IF_ERROR(CheckRequest(request));
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(request.layers.size()));
  writer.Put(static_cast<uint32_t>(request.num_query_heads));
  writer.Put(static_cast<uint32_t>(request.pages.size()));
  writer.Put(uint32_t{0});
  writer.Put(request.collection);
  for (const ScoresRequest::Layer& layer : request.layers) {
    writer.Put(static_cast<uint32_t>(layer.layer));
    writer.Put(uint32_t{0});
    writer.Put(layer.globals.step);
    writer.PutFloats(layer.globals.m);
    writer.PutFloats(layer.globals.l);
  }
  for (const int32_t page : request.pages) {
    writer.Put(static_cast<uint32_t>(page));
  }
  std::vector<std::byte> bytes = writer.Take();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kScoresRequest, "body bytes", bytes.size(), kMaxMessageBytes));
  return bytes;
}

std::vector<std::byte> EncodeScoresReply(std::span<const PageScores> pages) {
  ByteWriter writer;
  writer.Put(static_cast<uint32_t>(pages.size()));
  writer.Put(uint32_t{0});
  for (const PageScores& page : pages) {
    writer.Put(static_cast<uint32_t>(page.page_index));
    writer.Put(uint32_t{0});
    for (const int64_t sum : page.sums) writer.Put(sum);
  }
  return writer.Take();
}

absl::StatusOr<ScoresRequest> DecodeScoresRequest(
    std::span<const std::byte> body) {
  ByteReader reader(body, kScoresRequest);
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kScoresRequest, "body bytes", body.size(), kMaxMessageBytes));
  FARKV_RETURN_IF_ERROR(reader.Require("head", 1, 24));
  const uint32_t layers = reader.Read<uint32_t>();
  ScoresRequest request;
  FARKV_ASSIGN_OR_RETURN(request.num_query_heads,
                         ReadIndex(reader, "query heads"));
  const uint32_t pages = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(reader.ReadZero("head"));
  request.collection = reader.Read<uint64_t>();
  FARKV_RETURN_IF_ERROR(
      CheckHead(layers, static_cast<uint32_t>(request.num_query_heads), pages));
  FARKV_RETURN_IF_ERROR(ReadLayers(reader, layers, request));
  FARKV_RETURN_IF_ERROR(reader.Require("pages", pages, 4));
  request.pages.resize(pages);
  for (int32_t& page : request.pages) {
    FARKV_ASSIGN_OR_RETURN(page, ReadIndex(reader, "page index"));
  }
  FARKV_RETURN_IF_ERROR(reader.Finish());
  FARKV_RETURN_IF_ERROR(CheckRequest(request));
  return request;
}

absl::StatusOr<std::vector<PageScores>> DecodeScoresReply(
    std::span<const std::byte> body) {
  ByteReader reader(body, kScoresReply);
  FARKV_RETURN_IF_ERROR(reader.Require("head", 1, 8));
  const uint32_t count = reader.Read<uint32_t>();
  FARKV_RETURN_IF_ERROR(
      CheckLimit(kScoresReply, "pages", count, kMaxSequencePages));
  FARKV_RETURN_IF_ERROR(reader.ReadZero("head"));
  FARKV_RETURN_IF_ERROR(reader.Require("pages", count, kPageScoresBytes));
  std::vector<PageScores> pages(count);
  int32_t before = -1;
  for (PageScores& page : pages) {
    FARKV_ASSIGN_OR_RETURN(page.page_index, ReadIndex(reader, "page index"));
    FARKV_RETURN_IF_ERROR(
        CheckAscending(kScoresReply, before, page.page_index));
    before = page.page_index;
    FARKV_RETURN_IF_ERROR(reader.ReadZero("page"));
    for (int64_t& sum : page.sums) sum = reader.Read<int64_t>();
  }
  FARKV_RETURN_IF_ERROR(reader.Finish());
  return pages;
}

}  // namespace farkv
