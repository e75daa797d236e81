#include "methods/lora_slots.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "formats/adapter/adapter_modules.h"
#include "methods/lora.h"
#include "methods/lora_targets.h"
#include "program/ir/builder.h"
#include "program/ir/operands.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/product/embedding.h"
#include "program/kinds/product/matmul.h"

namespace snug::methods {
namespace {

using namespace program;  // NOLINT: rewrites speak the program's words throughout

class SlotRewrite {
 public:
  SlotRewrite(const Program& forward, const LoraSlots& slots)
      : forward_(forward),
        slots_(slots),
        targets_(forward, {std::string(formats::kAllLinear)}),
        adapted_(slots.modules.begin(), slots.modules.end()),
        result_(without_operations(forward)) {}

  Program run() {
    declare_rows();
    for (const Operation& operation : forward_.operations) {
      const std::string linear = targets_.adapted_linear(operation);
      if (adapted_.contains(linear))
        adapt(operation, linear);
      else
        result_.emit(operation);
    }
    return result_.take();
  }

 private:
  static Program without_operations(Program program) {
    program.operations.clear();
    return program;
  }

  // Where each row of the batch has the part of its own slot.
  void declare_rows() {
    const std::optional<ProgramKey> key = program_key(forward_.name);
    SNUG_CHECK(key.has_value(), "{} is no program of a job", forward_.name);
    const TensorId tokens = forward_.find(own_name(*key, kTokensName));
    SNUG_CHECK(tokens != kNone, "{} names its batch tensors after no program", forward_.name);
    Tensor rows = forward_.tensor(tokens);
    tokens_ = rows.shape[0];
    rows.name = own_name(*key, kAdapterRowsName);
    rows.shape = {tokens_ * slots_.slots};
    rows_ = result_.add(std::move(rows));
  }

  TensorId slot_tensor(std::string name, const Shape& shape, const Tensor& weight) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = shape;
    tensor.dtype = weight.dtype;
    tensor.role = Role::adapter;
    tensor.lifetime = Lifetime::run;
    tensor.layer = weight.layer;
    return result_.add(std::move(tensor));
  }

  TensorId activation(const Tensor& like, std::string_view suffix, const Shape& shape) {
    return result_.activation(fmt::format("{}.{}", like.name, suffix), shape, like.dtype);
  }

  TensorId seen_as(TensorId base, std::string_view suffix, const Shape& shape) {
    Tensor view = result_.tensor(base);
    view.name = fmt::format("{}.{}", view.name, suffix);
    view.shape = shape;
    view.view = {.base = base, .strides = dense_strides(shape)};
    return result_.add(std::move(view));
  }

  void adapt(const Operation& linear, const std::string& module) {
    const Tensor weight = forward_.tensor(id_of(linear, Matmul::kB));
    const Tensor output = forward_.tensor(id_of(linear, Matmul::kC));
    const TensorId x = id_of(linear, Matmul::kA);
    const bool is_transposed = !linear.attributes.get<Matmul>().transpose_b;
    const int64_t in = weight.shape[is_transposed ? 0 : 1];
    const int64_t out = weight.shape[is_transposed ? 1 : 0];
    const int64_t rows = forward_.tensor(x).shape[0];
    SNUG_CHECK_EQ(rows, tokens_);
    const int64_t all = slots_.slots + 1;
    const int64_t rank = slots_.rank;
    const TensorId a = slot_tensor(slots_a_name(module), {all * rank, in}, weight);
    const TensorId b = slot_tensor(slots_b_name(module), {slots_.slots * rank, out}, weight);
    result_.set_layer(linear.layer);
    result_.set_phase(linear.phase);
    const TensorId base = activation(output, "base", {rows, out});
    Operation product = linear;
    product.writes = {base};
    result_.emit(std::move(product));
    const TensorId hidden = activation(output, "all", {rows, all * rank});
    result_.emit(Matmul{.transpose_b = true}, {x, a}, {hidden});
    const TensorId chosen = activation(output, "chosen", {rows * slots_.slots, rank});
    result_.emit(Embedding{}, {seen_as(hidden, "slots", {rows * all, rank}), rows_}, {chosen});
    const TensorId delta = activation(output, "delta", {rows, out});
    result_.emit(Matmul{}, {seen_as(chosen, "rows", {rows, slots_.slots * rank}), b}, {delta});
    result_.emit(Add{}, {base, delta}, {id_of(linear, Matmul::kC)});
  }

  const Program& forward_;
  const LoraSlots& slots_;
  const LoraTargets targets_;
  const std::unordered_set<std::string> adapted_;
  Builder result_;
  int64_t tokens_ = 0;
  TensorId rows_ = kNone;
};

}  // namespace

Program with_lora_slots(const Program& forward, const LoraSlots& slots) {
  if (slots.empty()) return forward;
  SNUG_CHECK(slots.rank > 0 && !slots.modules.empty(), "{} slots of rank {} in {} modules",
             slots.slots, slots.rank, slots.modules.size());
  return SlotRewrite(forward, slots).run();
}

void chosen_rows(int64_t row, int64_t slot, std::span<int32_t> chosen) {
  const int64_t zeros = row * (std::ssize(chosen) + 1);
  for (int64_t each = 0; each < std::ssize(chosen); ++each)
    chosen[static_cast<size_t>(each)] =
        static_cast<int32_t>(each == slot ? zeros + 1 + slot : zeros);
}

std::string slots_a_name(std::string_view module) { return fmt::format("{}.slots_A", module); }
std::string slots_b_name(std::string_view module) { return fmt::format("{}.slots_B", module); }

std::vector<std::string> slot_modules(const Program& forward) {
  return lora_modules(forward, {std::string(formats::kAllLinear)});
}

}  // namespace snug::methods
