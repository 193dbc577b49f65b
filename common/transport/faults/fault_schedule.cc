#include "common/transport/faults/fault_schedule.h"

#include <utility>
#include <vector>

#include "common/base/random.h"

namespace farkv {

Fate FateOf(const FaultSpec& spec, uint64_t n) {
  // Each fault draws for itself, so adding one to a spec moves no other.
  const auto strikes = [&](uint64_t fault, double probability) {
    return probability > 0 &&
           ToUnit(CounterDraw(spec.seed, {fault, n})) < probability;
  };
  Fate fate;
  fate.drop = strikes(1, spec.drop);
  fate.duplicate = strikes(2, spec.duplicate);
  fate.truncate = strikes(3, spec.truncate);
  fate.flip = strikes(4, spec.flip);
  fate.reorder = strikes(5, spec.reorder);
  fate.delay = strikes(6, spec.delay);
  fate.stall = strikes(7, spec.stall);
  fate.where = CounterDraw(spec.seed, {8, n});
  return fate;
}

void FlipBit(Message& message, uint64_t where) {
  const std::span<std::byte> body = message.body.bytes();
  const uint64_t bits = 8 * (message.header_bytes.size() + body.size());
  const uint64_t bit = where % bits;
  const size_t byte = bit / 8;
  std::byte& target = byte < message.header_bytes.size()
                          ? message.header_bytes[byte]
                          : body[byte - message.header_bytes.size()];
  target ^= std::byte{1} << (bit % 8);
}

bool TruncateBody(Message& message, uint64_t where) {
  const std::span<std::byte> body = message.body.bytes();
  if (body.empty()) return false;
  const std::span<std::byte> rest = body.first(where % body.size());
  message.body = BufferLease(
      rest, [whole = std::move(message.body)]() mutable { whole = {}; });
  return true;
}

Message CopyOf(const Message& message) {
  const std::span<std::byte> body = message.body.bytes();
  Message copy;
  copy.header = message.header;
  copy.header_bytes = message.header_bytes;
  copy.body =
      BufferLease::Owning(std::vector<std::byte>(body.begin(), body.end()));
  return copy;
}

}  // namespace farkv
