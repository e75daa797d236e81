#include <cstring>

#include "backends/reference/kinds.h"

namespace snug::backends::reference {

// Done at once, which is as early as it may be.
template <typename T>
void run(const program::Transfer&, const Invocation& invocation) {
  const Buffer& x = invocation[program::Transfer::kX];
  std::memcpy(invocation[program::Transfer::kY].data, x.data, static_cast<size_t>(x.bytes()));
}

template <typename T>
void run(const program::Await&, const Invocation&) {}

SNUG_INSTANTIATE(Transfer);
SNUG_INSTANTIATE(Await);

}  // namespace snug::backends::reference
