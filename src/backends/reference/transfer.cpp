#include <cstring>

#include "backends/host_collectives.h"
#include "backends/reference/kinds.h"
#include "program/kinds/transfer/transfer.h"

namespace snug::backends::reference {
namespace {

template <typename T>
void run(const program::Copy&, const Invocation& invocation) {
  const Buffer& x = invocation[program::Copy::kX];
  std::memcpy(invocation[program::Copy::kY].data, x.data, static_cast<size_t>(x.bytes()));
}

// Done at once, which is the earliest possible time.
template <typename T>
void run(const program::Transfer&, const Invocation& invocation) {
  const Buffer& x = invocation[program::Transfer::kX];
  std::memcpy(invocation[program::Transfer::kY].data, x.data, static_cast<size_t>(x.bytes()));
}

template <typename T>
void run(const program::Await&, const Invocation& invocation) {
  invocation.collectives->await(invocation);
}

}  // namespace

SNUG_REFERENCE_KIND(Copy);
SNUG_REFERENCE_KIND(Transfer);
SNUG_REFERENCE_KIND(Await);

}  // namespace snug::backends::reference
