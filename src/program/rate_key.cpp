#include "program/rate_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "program/dispatch.h"
#include "program/kinds/functions.h"
#include "program/kinds/rate_names.h"

namespace snug::program {
namespace {

void append_types(const Program& program, const std::vector<TensorId>& ids, const char* before,
                  std::string& name) {
  bool first = true;
  for (const TensorId id : ids) {
    if (!base::is_float(program.tensor(id).dtype)) continue;
    name += first ? before : " ";
    name += base::name_of(program.tensor(id).dtype);
    first = false;
  }
}

}  // namespace

std::string typed_name(const OperationView& view) {
  std::string name(name_of(view.operation.kind()));
  append_types(view.program, view.operation.reads, " ", name);
  append_types(view.program, view.operation.writes, " > ", name);
  append_types(view.program, view.operation.updates, " += ", name);
  return name;
}

namespace {

// Of a kind that does not say otherwise.
RateKey key_of_bytes(const OperationView& view, const Cost& work) {
  RateKey key;
  key.name = typed_name(view);
  key.shape = {std::max(1.0, work.bytes)};
  return key;
}

}  // namespace

std::string line_of(const RateKey& key) {
  if (!key.is_product) return key.name;
  return fmt::format("{} ({:.0f})", key.name, fmt::join(key.shape, ", "));
}

RateKey rate_key(const OperationView& view, const BatchBounds& bounds) {
  const Cost work = cost(view, bounds);
  RateKey key =
      dispatch<RateKey>(view.operation.attributes, [&]<typename Struct>(const Struct& attributes) {
        const auto rate_key = FunctionsOf<Struct>::kDefined.rate_key;
        return rate_key != nullptr ? rate_key(attributes, view, extent_of(view, bounds))
                                   : key_of_bytes(view, work);
      });
  if (view.operation.channel == Channel::host && !traits_of(view.operation).ends_copy) {
    key.name += " on host";
    key.unit = Work::host_bytes;
  }
  key.is_product = traits_of(view.operation).is_product;
  key.work = key.unit == Work::flops ? work.flops : work.bytes;
  return key;
}

}  // namespace snug::program
