#include "base/checksum.h"

#include <fmt/format.h>

// The library chooses its vector instructions at run time; where it is built without that, the
// compiler's target decides. The values are the same.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <new>

namespace snug::base {

uint64_t checksum(const void* data, int64_t bytes) {
  return XXH3_64bits(data, static_cast<size_t>(bytes));
}

ChecksumStream::ChecksumStream() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void ChecksumStream::add(const void* data, int64_t bytes) {
  XXH3_64bits_update(state_.get(), data, static_cast<size_t>(bytes));
}

uint64_t ChecksumStream::value() const { return XXH3_64bits_digest(state_.get()); }

uint64_t ChecksumStream::take() {
  const uint64_t checksum = value();
  XXH3_64bits_reset(state_.get());
  return checksum;
}

void ChecksumStream::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

std::string checksum_text(uint64_t checksum) { return fmt::format("{:016x}", checksum); }

std::string checksum_text(const std::vector<uint64_t>& checksums) {
  std::string text;
  text.reserve(16 * checksums.size());
  for (const uint64_t each : checksums) text += checksum_text(each);
  return text;
}

}  // namespace snug::base
