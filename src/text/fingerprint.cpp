#include "text/fingerprint.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace snug::text {

void Fingerprint::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Fingerprint::Fingerprint() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state_.get());
}

void Fingerprint::add(const void* bytes, int64_t size) {
  XXH3_64bits_update(state_.get(), bytes, static_cast<size_t>(size));
}

std::string Fingerprint::text() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_.get()));
}

}  // namespace snug::text
