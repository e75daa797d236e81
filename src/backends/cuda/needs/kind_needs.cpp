#include "backends/cuda/needs/kind_needs.h"

#include "backends/operation_checks.h"
#include "program/kinds/dispatch.h"
#include "program/kinds/kind.h"

namespace snug::backends::cuda {
namespace {

// Calls f(attributes, needs of their kind).
template <typename Result, typename F>
Result ask(const OperationView& view, F&& f) {
  return program::dispatch_run<Result>(view.operation.attributes,
                                       [&]<typename Struct>(const Struct& attributes) {
                                         return f(attributes, NeedsOf<Struct>::kDefined);
                                       });
}

}  // namespace

bool runs(const OperationView& view, const Card& card) {
  return has_known_types(view) && ask<bool>(view, [&](const auto& attributes, const auto& kind) {
           return kind.supports == nullptr || kind.supports(attributes, view, card);
         });
}

int64_t workspace_bytes(const OperationView& view, const Card& card) {
  return ask<int64_t>(view, [&](const auto& attributes, const auto& kind) {
    return kind.workspace_bytes != nullptr ? kind.workspace_bytes(attributes, view, card) : 0;
  });
}

program::Attributes decide(const OperationView& view, const Card& card) {
  return ask<program::Attributes>(view, [&](const auto& attributes, const auto& kind) {
    return kind.decide != nullptr ? kind.decide(attributes, view, card) : attributes;
  });
}

int32_t launches(const OperationView& view, const Card& card) {
  const bool copies = program::traits_of(view.operation).copying != program::Copying::none;
  return ask<int32_t>(view, [&](const auto& attributes, const auto& kind) {
    if (kind.launches != nullptr) return kind.launches(attributes, view, card);
    return copies ? 0 : 1;
  });
}

size_t launched_together(const program::Program& program, size_t first) {
  return ask<size_t>(
      {program, program.operations[first]}, [&](const auto& /*attributes*/, const auto& kind) {
        return kind.launched_together != nullptr ? kind.launched_together(program, first) : 1;
      });
}

program::Workspace workspace(const OperationView& view, const Card& card) {
  using program::WorkspaceBasis;
  const bool is_bound = ask<bool>(view, [&](const auto& attributes, const auto& kind) {
    return kind.by_library != nullptr && kind.by_library(attributes, view);
  });
  return {.bytes = workspace_bytes(view, card),
          .basis = is_bound ? WorkspaceBasis::bound : WorkspaceBasis::computed};
}

}  // namespace snug::backends::cuda
