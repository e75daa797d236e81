#include "methods/lora_experts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "formats/adapter/renamed_modules.h"
#include "program/ir/operands.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/expert/route.h"
#include "program/kinds/product/embedding.h"
#include "program/kinds/product/grouped_matmul.h"

namespace snug::methods {
namespace {

using namespace program;  // NOLINT: rewrites speak the program's words throughout

bool selects_parameter(const std::string& target, const std::string& parameter) {
  return parameter == target || parameter.ends_with("." + target);
}

std::string module_of_parameter(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// The parameter whose matrices the operation multiplies by; empty for other operations.
std::string parameter_of(const Program& forward, const Operation& operation) {
  if (!operation.attributes.is<GroupedMatmul>()) return {};
  const Tensor& weight = forward.tensor(id_of(operation, GroupedMatmul::kB));
  return weight.role == Role::weight ? formats::expert_parameter(weight.name) : std::string{};
}

class ExpertRewrite {
 public:
  ExpertRewrite(const Program& forward, const LoraOptions& options)
      : forward_(forward), options_(options), result_(forward) {
    result_.operations.clear();
  }

  Program run() {
    std::map<size_t, AdaptedExperts> adapted;
    for (AdaptedExperts& each : adapted_experts(forward_, options_.target_parameters)) {
      const size_t operation = each.operation;
      adapted.emplace(operation, std::move(each));
    }
    for (size_t i = 0; i < forward_.operations.size(); ++i) {
      if (const auto found = adapted.find(i); found != adapted.end())
        adapt(forward_.operations[i], found->second);
      else
        result_.operations.push_back(forward_.operations[i]);
    }
    return std::move(result_);
  }

 private:
  TensorId add(std::string name, const Shape& shape, DType type, const Operation& of) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = shape;
    tensor.dtype = type;
    tensor.layer = of.layer;
    result_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(result_.tensors.size() - 1);
  }

  TensorId add_adapter(std::string name, const Shape& shape, const Tensor& weight,
                       const Operation& of) {
    const TensorId id = add(std::move(name), shape, weight.dtype, of);
    result_.tensors[index(id)].role = Role::adapter;
    result_.tensors[index(id)].lifetime = Lifetime::run;
    return id;
  }

  void emit(const Operation& origin, Attributes attributes, std::vector<TensorId> reads,
            std::vector<TensorId> writes) {
    Operation operation;
    operation.attributes = attributes;
    operation.reads = std::move(reads);
    operation.writes = std::move(writes);
    operation.phase = origin.phase;
    operation.layer = origin.layer;
    result_.operations.push_back(std::move(operation));
  }

  TensorId product(const Operation& of, TensorId rows, TensorId matrices, TensorId result) {
    emit(of, GroupedMatmul{.transpose_b = true},
         {rows, matrices, id_of(of, GroupedMatmul::kBounds)}, {result});
    return result;
  }

  // The numbers from 0 to below `experts`, which a layer makes once.
  TensorId numbers(const Operation& of, int64_t experts) {
    const auto [found, is_new] = numbers_.emplace(std::pair{of.layer, experts}, kNone);
    if (!is_new) return found->second;
    const auto make = [&](const char* name, const Shape& shape, DType type) {
      return add(fmt::format("layers.{}.{}.{}", of.layer, name, experts), shape, type, of);
    };
    const Shape column{experts, 1};
    const TensorId zeros = make("expert_zeros", column, DType::f32);
    const TensorId places = make("expert_numbers", column, DType::i32);
    emit(of, Zeros{}, {}, {zeros});
    emit(of, Route{.k = 1, .normalize = false}, {zeros},
         {make("expert_zero_weights", column, DType::f32),
          make("expert_zero_ids", column, DType::i32), places,
          make("expert_zero_bounds", {1, 2}, DType::i32)});
    found->second = view(places, "list", {experts});
    return found->second;
  }

  // A dense tensor in another shape.
  TensorId view(TensorId of, const char* suffix, const Shape& shape) {
    Tensor tensor = result_.tensor(of);
    tensor.name = fmt::format("{}.{}", tensor.name, suffix);
    tensor.shape = shape;
    tensor.view = {.base = of, .strides = dense_strides(shape)};
    result_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(result_.tensors.size() - 1);
  }

  void adapt(const Operation& operation, const AdaptedExperts& adapted) {
    const Tensor weight = forward_.tensor(id_of(operation, GroupedMatmul::kB));
    const TensorId x = id_of(operation, GroupedMatmul::kA);
    const TensorId y = id_of(operation, GroupedMatmul::kC);
    const Tensor output = forward_.tensor(y);
    const int64_t rows = output.shape[0];
    const int64_t experts = weight.shape[0];
    const int64_t in = forward_.tensor(x).shape.columns();
    const int64_t out = output.shape.columns();
    const formats::LoraSize size = expert_size(options_, adapted);
    const auto make = [&](const char* suffix, int64_t columns) {
      return add(fmt::format("{}.{}", output.name, suffix), {rows, columns}, output.dtype,
                 operation);
    };
    const TensorId a =
        add_adapter(lora_a_name(adapted.module), {experts, size.r, in}, weight, operation);
    const TensorId b =
        add_adapter(lora_b_name(adapted.module), {out, size.r, experts}, weight, operation);
    const TensorId base = make("base", out);
    emit(operation, operation.attributes, operation.reads, {base});
    const TensorId hidden = product(operation, x, a, make("hidden", size.r));
    const TensorId scaled = make("scaled", size.r);
    emit(operation, Scale{.factor = static_cast<float>(formats::lora_scale(size, options_.rslora))},
         {hidden}, {scaled});
    const TensorId split = add(fmt::format("{}.split", lora_b_name(adapted.module)),
                               {experts, out * size.r}, weight.dtype, operation);
    emit(operation, Embedding{.transposed = true}, {b, numbers(operation, experts)}, {split});
    const TensorId delta = product(
        operation, scaled, view(split, "matrices", {experts, out, size.r}), make("delta", out));
    emit(operation, Add{}, {base, delta}, {y});
  }

  static formats::LoraSize expert_size(const LoraOptions& options, const AdaptedExperts& adapted) {
    const auto known = options.sizes.find(adapted.module);
    return known != options.sizes.end() ? known->second : lora_size(options, adapted.parameter);
  }

  const Program& forward_;
  const LoraOptions& options_;
  Program result_;
  std::map<std::pair<int32_t, int64_t>, TensorId> numbers_;
};

}  // namespace

std::vector<AdaptedExperts> adapted_experts(const Program& forward,
                                            const std::vector<std::string>& target_parameters) {
  std::vector<AdaptedExperts> adapted;
  std::vector<std::string> known;
  std::map<std::string, size_t> wrappers;  // by module: its adapted parameters
  std::vector<bool> is_used(target_parameters.size(), false);
  for (size_t i = 0; i < forward.operations.size(); ++i) {
    const std::string parameter = parameter_of(forward, forward.operations[i]);
    if (parameter.empty()) continue;
    if (known.size() < 2) known.push_back(parameter);
    bool is_selected = false;
    for (size_t target = 0; target < target_parameters.size(); ++target)
      if (selects_parameter(target_parameters[target], parameter))
        is_selected = is_used[target] = true;
    if (!is_selected) continue;
    const std::string module = module_of_parameter(parameter);
    ++wrappers[module];
    adapted.push_back({i, parameter, module});
  }
  for (size_t target = 0; target < target_parameters.size(); ++target)
    if (!is_used[target] && target_parameters[target].ends_with("gate.weight"))
      base::throw_user_error(
          "target_parameters: \"{}\" is a router, which is not adapted here; an adapter of PEFT "
          "that has one is merged with PEFT (merge_and_unload)",
          target_parameters[target]);
    else if (!is_used[target])
      base::throw_user_error(
          "target_parameters: \"{}\" is the end of no name of experts' matrices; this model {}",
          target_parameters[target],
          known.empty() ? std::string("has none: name linear layers in target_modules")
                        : fmt::format("has {}", fmt::join(known, ", ")));
  // The first of a module's two parameters is wrapped innermost.
  for (AdaptedExperts& each : adapted)
    if (const std::string module = each.module; wrappers[module]-- == 2)
      each.module += ".base_layer";
  return adapted;
}

Program with_adapted_experts(const Program& forward, const LoraOptions& options) {
  return options.target_parameters.empty() ? forward : ExpertRewrite(forward, options).run();
}

Shape stored_lora_shape(std::string_view name, const Shape& shape) {
  if (shape.rank() != 3 || !is_lora_tensor(name)) return shape;
  if (lora_tensor(name).part == LoraPart::a) return {shape[0] * shape[1], shape[2]};
  return {shape[0], shape[1] * shape[2]};
}

}  // namespace snug::methods
