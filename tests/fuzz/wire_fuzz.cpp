// SPDX-License-Identifier: Apache-2.0
// links: gl_train_sync
// Any bytes as what a peer sends: through a connection of a socket pair, as the messages' payloads, and as a
// setup. What is accepted must fit what it says, and a setup that is accepted comes back as it was.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "sync/connection.hpp"
#include "sync/setup.hpp"
#include "sync/wire.hpp"

namespace {

using namespace gradlane;         // NOLINT: short
using namespace gradlane::train;  // NOLINT: short

class Checker final : public Receiver {
 public:
  Result<std::span<std::byte>> place(Connection& /*connection*/, const Header& header) override {
    if (header.bytes > kMaxSliceBytes || header.lane >= GL_LANES) std::abort();
    if (header.bytes > (1U << 16U)) return make_error("more than a test has memory for");
    memory_.assign(header.bytes, std::byte{0});
    return std::span<std::byte>(memory_);
  }
  Status taken(Connection& /*connection*/, const Header& header,
               std::span<const std::byte> payload) override {
    if (payload.size() != header.bytes || payload.data() != memory_.data()) std::abort();
    if (header.type == MessageType::report) {
      const auto report = decode_report(payload.first<kReportBytes>());
      if (report && (report->samples == 0 || report->correct > report->samples)) std::abort();
    }
    if (header.type == MessageType::ask) static_cast<void>(decode_rank(payload.first<4>()));
    return {};
  }

 private:
  std::vector<std::byte> memory_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (size >= kHeaderBytes) {
    if (const auto header = decode_header(bytes.first<kHeaderBytes>()); header) {
      const auto again = encode_header(*header);
      if (!std::equal(again.begin(), again.end(), bytes.begin())) std::abort();
    }
  }
  if (const auto setup = setup_from_json(std::string_view(reinterpret_cast<const char*>(data), size));
      setup) {
    const auto again = setup_from_json(setup_to_json(*setup));
    if (!again || setup_to_json(*again) != setup_to_json(*setup)) std::abort();
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
  Fd writer(ends[1]);
  Connection connection(Fd(ends[0]), 0, 0);
  Checker checker;
  // In two pieces, so that headers and payloads are torn.
  const std::size_t first = size / 3;
  for (const auto piece : {bytes.first(first), bytes.subspan(first)}) {
    if (!piece.empty() && ::write(writer.get(), piece.data(), piece.size()) < 0) break;
    if (!connection.read(checker)) break;
  }
  return 0;
}
