#include "backends/cuda/optimizer/optimizer_needs.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "backends/cuda/kernels/sizes.h"
#include "backends/cuda/needs/kind_needs.h"
#include "backends/operation_checks.h"
#include "program/kinds/optimizer/adafactor.h"
#include "program/kinds/optimizer/lion.h"
#include "program/kinds/optimizer/muon.h"
#include "program/kinds/optimizer/optimizer.h"

namespace snug::backends::cuda {
namespace {

using program::Adafactor;
using program::AdamW;
using program::AdamW8bit;
using program::Lion;
using program::MuonMomentum;
using program::MuonStep;
using program::Normalize;

int64_t capacity(const AdamW&) { return kTensorsPerStep; }
int64_t capacity(const AdamW8bit&) { return kTensorsPer8bitStep; }
int64_t capacity(const Lion&) { return kTensorsPerStep; }

template <typename Struct>
bool same_adamw(const Struct& x, const Struct& y) {
  return x.beta1 == y.beta1 && x.beta2 == y.beta2 && x.epsilon == y.epsilon && x.seed == y.seed;
}
bool same_constants(const AdamW& x, const AdamW& y) {
  return x.stochastic == y.stochastic && same_adamw(x, y);
}
bool same_constants(const AdamW8bit& x, const AdamW8bit& y) { return same_adamw(x, y); }
bool same_constants(const Lion& x, const Lion& y) {
  return x.beta1 == y.beta1 && x.beta2 == y.beta2;
}

// Whether two operations agree in what a launch's tensors share: constants, and numbers on the
// device.
template <typename Struct>
bool may_share(const OperationView& a, const OperationView& b) {
  const auto same_operand = [&](const auto& operand) {
    return id_of(a.operation, operand) == id_of(b.operation, operand);
  };
  if constexpr (requires { Struct::kStep; })
    if (!same_operand(Struct::kStep)) return false;
  return same_constants(a.operation.attributes.get<Struct>(),
                        b.operation.attributes.get<Struct>()) &&
         same_operand(Struct::kFactor) && same_operand(Struct::kLearningRate);
}

using Owners = std::unordered_set<program::TensorId>;

bool holds_any(const Owners& owners, const std::vector<program::TensorId>& ids,
               const program::Program& program) {
  return std::any_of(ids.begin(), ids.end(),
                     [&](program::TensorId id) { return owners.contains(program.owner(id)); });
}

// Consecutive operations of the list, none of which accesses what another changes.
template <typename Struct>
size_t steps_together(const program::Program& program, size_t first) {
  const auto& list = program.operations;
  const auto capacity_of_launch =
      static_cast<size_t>(capacity(list[first].attributes.get<Struct>()));
  Owners read;
  Owners changed;
  size_t end = first;
  for (; end < list.size() && end - first < capacity_of_launch; ++end) {
    const program::Operation& step = list[end];
    if (!step.attributes.is<Struct>()) break;
    if (!may_share<Struct>({program, list[first]}, {program, step})) break;
    if (holds_any(changed, step.reads, program) || holds_any(changed, step.updates, program) ||
        holds_any(read, step.updates, program))
      break;
    for (const program::TensorId id : step.reads) read.insert(program.owner(id));
    for (const program::TensorId id : step.updates) changed.insert(program.owner(id));
  }
  return end - first;
}

// Enough for both contiguous gradients and views, as run() may see either.
int64_t most_partials(const OperationView& view) {
  int64_t partials = 0;
  for (const program::TensorId gradient : view.operation.reads) {
    const program::Shape& shape = view.program.tensor(gradient).shape;
    partials +=
        std::max(norm_partials(shape.rows(), shape.columns()), norm_partials(1, shape.elements()));
  }
  return partials;
}

int64_t workspace_bytes(const program::GlobalNorm&, const OperationView& view, const Card&) {
  return norm_scratch_bytes(most_partials(view));
}

// Sums of squares for as many tensors as fit in a launch, then one or two launches for the norm.
int32_t launches(const program::GlobalNorm&, const OperationView& view, const Card&) {
  const auto tensors = static_cast<int64_t>(view.operation.reads.size());
  const int64_t sums = ceil_div(tensors, kTensorsPerNorm);
  return static_cast<int32_t>(sums + (norm_sums(most_partials(view)) == 0 ? 1 : 2));
}

bool supports(const program::GlobalNorm&, const OperationView& view, const Card&) {
  return reads_floats(view);
}

bool supports(const AdamW& adamw, const OperationView& view, const Card&) {
  if (!are_floats<AdamW>(view, {AdamW::kGradient, AdamW::kWeight})) return false;
  const base::DType moments = adamw.stochastic ? base::DType::bf16 : base::DType::f32;
  if (view[AdamW::kFirstMoment].dtype != moments || view[AdamW::kSecondMoment].dtype != moments)
    return false;
  if (adamw.stochastic) return !adamw.has_master && view[AdamW::kWeight].dtype == moments;
  return view[adamw.has_master ? AdamW::kMaster : AdamW::kWeight].dtype == base::DType::f32;
}

// A bf16 weight is rounded stochastically; an f16 weight needs a master and is not supported.
bool supports(const AdamW8bit&, const OperationView& view, const Card&) {
  return !has_any_of(view, base::DType::f16) &&
         are_floats<AdamW8bit>(view, {AdamW8bit::kGradient, AdamW8bit::kWeight}) &&
         view[AdamW8bit::kFirstScale].dtype == base::DType::f32 &&
         view[AdamW8bit::kSecondScale].dtype == base::DType::f32;
}

bool supports(const Lion& lion, const OperationView& view, const Card&) {
  return are_floats<Lion>(view, {Lion::kGradient, Lion::kWeight}) &&
         view[Lion::kMomentum].dtype == base::DType::f32 &&
         view[lion.has_master ? Lion::kMaster : Lion::kWeight].dtype == base::DType::f32;
}

bool supports(const Adafactor& adafactor, const OperationView& view, const Card&) {
  const auto is_f32 = [&](const program::Operand<Adafactor>& operand) {
    return view[operand].dtype == base::DType::f32;
  };
  return are_floats<Adafactor>(view, {Adafactor::kGradient, Adafactor::kWeight}) &&
         is_f32(Adafactor::kRows) && (!adafactor.factored || is_f32(Adafactor::kColumns)) &&
         is_f32(adafactor.has_master ? Adafactor::kMaster : Adafactor::kWeight);
}

int64_t workspace_bytes(const Adafactor& adafactor, const OperationView& view, const Card&) {
  const program::Shape& shape = view[Adafactor::kWeight].shape;
  return adafactor.factored ? adafactor_scratch_bytes(shape[0], shape[1], true)
                            : adafactor_scratch_bytes(1, shape.elements(), false);
}

// The stages of backends/cuda/optimizer/kernels/adafactor.cu, each of which is a launch.
int32_t launches(const Adafactor& adafactor, const OperationView&, const Card&) {
  return adafactor.factored ? 7 : 4;
}

int64_t partials_of(const OperationView& view) {
  return norm_partials(1, view[Normalize::kX].shape.elements());
}

bool supports(const MuonMomentum&, const OperationView& view, const Card&) {
  return are_floats<MuonMomentum>(view, {MuonMomentum::kGradient, MuonMomentum::kDirection}) &&
         are_f32<MuonMomentum>(view, {MuonMomentum::kMomentum});
}

bool supports(const MuonStep& step, const OperationView& view, const Card&) {
  return are_floats<MuonStep>(view, {MuonStep::kDirection, MuonStep::kWeight}) &&
         are_f32<MuonStep>(view, {step.has_master ? MuonStep::kMaster : MuonStep::kWeight});
}

int64_t workspace_bytes(const Normalize&, const OperationView& view, const Card&) {
  return kNormFloats * int64_t{sizeof(float)} + norm_scratch_bytes(partials_of(view));
}

// Sums of squares, one or two launches for their norm, and the quotient.
int32_t launches(const Normalize&, const OperationView& view, const Card&) {
  return norm_sums(partials_of(view)) == 0 ? 3 : 4;
}

}  // namespace

SNUG_CARD_NEEDS(GlobalNorm, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(AdamW, .supports = supports, .launched_together = steps_together<AdamW>);
SNUG_CARD_NEEDS(AdamW8bit, .supports = supports, .launched_together = steps_together<AdamW8bit>);
SNUG_CARD_NEEDS(Lion, .supports = supports, .launched_together = steps_together<Lion>);
SNUG_CARD_NEEDS(ClipFactor);
SNUG_CARD_NEEDS(Adafactor, .supports = supports, .workspace_bytes = workspace_bytes,
                .launches = launches);
SNUG_CARD_NEEDS(MuonMomentum, .supports = supports);
SNUG_CARD_NEEDS(Normalize, .workspace_bytes = workspace_bytes, .launches = launches);
SNUG_CARD_NEEDS(MuonStep, .supports = supports);

}  // namespace snug::backends::cuda
