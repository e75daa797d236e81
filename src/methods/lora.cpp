#include "methods/lora.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/last_part.h"
#include "formats/module_pattern.h"
#include "program/builder.h"
#include "program/inputs.h"
#include "program/operands.h"
#include "program/tensor_names.h"

namespace snug::methods {
namespace {

using namespace program;  // NOLINT: rewrites speak the program's words throughout

constexpr std::string_view kWeightSuffix = ".weight";
constexpr std::string_view kSuffixA = ".lora_A.weight";
constexpr std::string_view kSuffixB = ".lora_B.weight";
constexpr std::string_view kSuffixMagnitude = ".lora_magnitude_vector";
constexpr std::array<std::pair<std::string_view, LoraPart>, 3> kParts{
    {{kSuffixA, LoraPart::a}, {kSuffixB, LoraPart::b}, {kSuffixMagnitude, LoraPart::magnitude}}};

// What routers give, before their bias too: it is not adapted, as PEFT sees no linear there either.
std::set<TensorId> routing_logits(const Program& program) {
  std::set<TensorId> logits;
  for (auto operation = program.operations.rbegin(); operation != program.operations.rend();
       ++operation) {
    if (std::holds_alternative<Route>(operation->attributes))
      logits.insert(id_of(*operation, Route::kLogits));
    else if (std::holds_alternative<AddBias>(operation->attributes) &&
             logits.contains(id_of(*operation, AddBias::kY)))
      logits.insert(id_of(*operation, AddBias::kX));
  }
  return logits;
}

// The module a linear operation applies ("model.layers.0.mlp.up_proj"); empty for other operations.
std::string module_of(const Program& program, const Operation& operation,
                      const std::set<TensorId>& routing) {
  const auto* matmul = std::get_if<Matmul>(&operation.attributes);
  if (matmul == nullptr || matmul->addend || routing.contains(id_of(operation, Matmul::kC)))
    return {};
  const Tensor& weight = program.tensor(id_of(operation, Matmul::kB));
  if (weight.role != Role::weight || weight.layer < 0) return {};
  return weight.name.substr(0, weight.name.size() - kWeightSuffix.size());
}

// An entry of target_modules: the last parts of names, or a regular expression over whole ones.
class Target {
 public:
  explicit Target(const std::string& written) : written_(written) {
    if (formats::is_module_pattern(written)) checked([&] { pattern_.emplace(written); });
  }

  const std::string& written() const { return written_; }

  bool selects(const std::string& module) const {
    if (!pattern_)
      return written_ == "all-linear" || module == written_ || module.ends_with("." + written_);
    bool is_match = false;
    checked([&] { is_match = pattern_->matches(module); });
    return is_match;
  }

 private:
  template <typename Call>
  static void checked(const Call& call) {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      base::throw_user_error("target_modules: {}", error.what());
    }
  }

  std::string written_;
  std::optional<formats::ModulePattern> pattern_;
};

using Targets = std::vector<Target>;

bool selects(const Targets& targets, const std::string& module) {
  return std::any_of(targets.begin(), targets.end(),
                     [&](const Target& target) { return target.selects(module); });
}

// Throws UserError for an entry that selects no linear.
Targets read_targets(const Program& forward, const std::vector<std::string>& written) {
  std::set<std::string> known;
  std::vector<std::string> modules;
  const std::set<TensorId> routing = routing_logits(forward);
  for (const Operation& operation : forward.operations)
    if (auto module = module_of(forward, operation, routing); !module.empty()) {
      known.insert(base::last_part(module));
      modules.push_back(std::move(module));
    }
  Targets targets;
  for (const std::string& one : written) {
    const Target& target = targets.emplace_back(one);
    const bool found = std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
      return target.selects(module);
    });
    if (!found)
      base::throw_user_error(
          "target_modules: \"{}\" matches no linear of this model{}; it has {}, or use "
          "all-linear{}",
          one, routing.empty() ? "" : " that is adapted (routers and experts are not)",
          fmt::join(known, ", "),
          formats::is_module_pattern(one)
              ? ". A regular expression matches whole names, such as " + modules.front()
              : "");
  }
  return targets;
}

// The names of modules that may train whole, in order, each by its last part. Linears of layers may
// not, whose biases are vectors.
std::vector<std::string> modules_that_save(const Program& forward) {
  std::vector<std::string> names;
  std::set<std::string> matrices;
  for (const Tensor& tensor : forward.tensors) {
    if (tensor.role != Role::weight) continue;
    std::string name = base::last_part(tensor.name.substr(0, tensor.name.rfind('.')));
    if (tensor.layer >= 0 && tensor.shape.rank() > 1) matrices.insert(name);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  std::erase_if(names, [&](const std::string& name) { return matrices.contains(name); });
  return names;
}

// Of a module that trains whole next to the adapter. Two names may select one tensor.
void train_whole(Program& forward, const std::string& module) {
  bool found = false;
  for (Tensor& tensor : forward.tensors) {
    const bool is_of_model = tensor.role == Role::weight || tensor.role == Role::adapter;
    if (!is_of_model || !formats::is_of_module(tensor.name, {module})) continue;
    if (tensor.layer >= 0 && tensor.shape.rank() > 1)
      base::throw_user_error(
          "modules_to_save: \"{}\" is a matrix of a layer ({}), which does not train whole next to "
          "an adapter; name it in target_modules, or use method=full with trainable_modules",
          module, tensor.name);
    tensor.role = Role::adapter;
    found = true;
  }
  if (!found)
    base::throw_user_error("modules_to_save: \"{}\" matches no module of this model; it has {}",
                           module, fmt::join(modules_that_save(forward), ", "));
}

Program with_saved_modules(Program forward, const std::vector<std::string>& modules) {
  for (const std::string& module : modules) train_whole(forward, module);
  return forward;
}

class LoraRewrite {
 public:
  LoraRewrite(Program forward, const LoraOptions& options)
      : forward_(std::move(forward)),
        options_(options),
        targets_(read_targets(forward_, options.target_modules)),
        result_(forward_) {
    result_.operations.clear();
  }

  Program run() {
    const std::set<TensorId> routing = routing_logits(forward_);
    for (const Operation& operation : forward_.operations) {
      const std::string module = module_of(forward_, operation, routing);
      if (!module.empty() && selects(targets_, module))
        adapt(operation, module);
      else
        result_.operations.push_back(operation);
    }
    return std::move(result_);
  }

 private:
  TensorId add(std::string name, const Shape& shape, const Tensor& like, Role role,
               Lifetime lifetime) {
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.shape = shape;
    tensor.dtype = like.dtype;
    tensor.role = role;
    tensor.lifetime = lifetime;
    tensor.layer = like.layer;
    result_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(result_.tensors.size() - 1);
  }

  TensorId activation(const Tensor& like, const char* suffix, int64_t columns) {
    return add(fmt::format("{}.{}", like.name, suffix), {like.shape[0], columns}, like,
               Role::activation, Lifetime::program);
  }

  void emit(const Operation& origin, Attributes attributes, std::vector<TensorId> reads,
            TensorId write) {
    Operation operation;
    operation.attributes = std::move(attributes);
    operation.reads = std::move(reads);
    operation.writes = {write};
    operation.phase = origin.phase;
    operation.layer = origin.layer;
    result_.operations.push_back(std::move(operation));
  }

  // A linear that gets an adapter.
  struct Adapted {
    const Operation& linear;
    const std::string& module;
    Tensor weight;
    Tensor output;
    int64_t out = 0;
    bool is_transposed = false;
    TensorId x = kNone;
    TensorId a = kNone;
    TensorId b = kNone;
  };

  // Tokens per row of what a linear reads: streams have as many rows.
  int64_t row_length(TensorId x) const {
    const TensorId tokens = forward_.find(program::kTokensName);
    if (tokens == kNone) return options_.row_tokens;
    const int64_t rows = forward_.tensor(tokens).shape[0] / options_.row_tokens;
    return std::max<int64_t>(1, result_.tensor(x).shape[0] / std::max<int64_t>(rows, 1));
  }

  // The operand of A: x, or x with dropout. Each module draws its own mask, as PEFT does.
  TensorId dropped(const Adapted& adapted, int32_t site) {
    if (options_.dropout == 0.0) return adapted.x;
    const TensorId random = random_input(result_);
    const TensorId y =
        activation(adapted.output, "dropped", result_.tensor(adapted.x).shape.columns());
    emit(adapted.linear,
         Dropout{.probability = static_cast<float>(options_.dropout),
                 .row_length = row_length(adapted.x),
                 .seed = options_.seed,
                 .site = site},
         {adapted.x, random}, y);
    return y;
  }

  void adapt(const Operation& linear, const std::string& module) {
    Adapted adapted{.linear = linear,
                    .module = module,
                    .weight = forward_.tensor(id_of(linear, Matmul::kB)),
                    .output = forward_.tensor(id_of(linear, Matmul::kC)),
                    .is_transposed = !std::get<Matmul>(linear.attributes).transpose_b,
                    .x = id_of(linear, Matmul::kA)};
    const Tensor& weight = adapted.weight;
    adapted.out = weight.shape[adapted.is_transposed ? 1 : 0];
    const int64_t in = weight.shape[adapted.is_transposed ? 0 : 1];
    const int64_t r = options_.r;
    adapted.a = add(lora_a_name(module), {r, in}, weight, Role::adapter, Lifetime::run);
    adapted.b = add(lora_b_name(module), {adapted.out, r}, weight, Role::adapter, Lifetime::run);
    if (options_.dora) return adapt_directions(adapted);
    const TensorId base = multiply(adapted, adapted.x, "base");
    add_low_rank(adapted, base, dropped(adapted, next_site_++), id_of(linear, Matmul::kC));
  }

  // W x.
  TensorId multiply(const Adapted& adapted, TensorId x, const char* suffix) {
    const TensorId y = activation(adapted.output, suffix, adapted.out);
    Operation product = adapted.linear;
    replace_operand(product, Matmul::kA.name, x);
    emit(adapted.linear, product.attributes, product.reads, y);
    return y;
  }

  // y = base + scale B A x.
  void add_low_rank(const Adapted& adapted, TensorId base, TensorId x, TensorId y) {
    const TensorId hidden = activation(adapted.output, "hidden", options_.r);
    const TensorId delta = activation(adapted.output, "delta", adapted.out);
    emit(adapted.linear, Matmul{.transpose_b = true}, {x, adapted.a}, hidden);
    emit(adapted.linear, Matmul{.transpose_b = true, .alpha = scale()}, {hidden, adapted.b}, delta);
    emit(adapted.linear, Add{}, {base, delta}, y);
  }

  void adapt_directions(const Adapted& adapted) {
    Tensor wide = adapted.weight;
    wide.dtype = wide.dtype == DType::f64 ? DType::f64 : DType::f32;
    const TensorId magnitude =
        add(lora_magnitude_name(adapted.module), {adapted.out}, wide, Role::adapter, Lifetime::run);
    const TensorId norms = add(fmt::format("{}.norms", adapted.module), {adapted.out}, wide,
                               Role::scalar, Lifetime::program);
    emit(adapted.linear,
         RowNorms{.transposed = adapted.is_transposed, .low_rank = true, .alpha = scale()},
         {id_of(adapted.linear, Matmul::kB), adapted.a, adapted.b}, norms);
    const TensorId x = dropped(adapted, next_site_++);
    const TensorId sum = activation(adapted.output, "sum", adapted.out);
    add_low_rank(adapted, multiply(adapted, x, "base"), x, sum);
    const TensorId y = id_of(adapted.linear, Matmul::kC);
    const bool drops = x != adapted.x;
    const TensorId scaled = drops ? activation(adapted.output, "scaled", adapted.out) : y;
    emit(adapted.linear, ScaleColumns{.divided = true}, {sum, magnitude, norms}, scaled);
    // What is made again is made in the order of its reads: the last product adds what is there.
    if (drops)
      emit(adapted.linear, Add{}, {scaled, multiply(adapted, left_out(adapted, x), "kept")}, y);
  }

  // x - d, of what dropout made of x.
  TensorId left_out(const Adapted& adapted, TensorId dropped) {
    const int64_t columns = result_.tensor(dropped).shape.columns();
    const TensorId negative = activation(adapted.output, "negative", columns);
    const TensorId rest = activation(adapted.output, "left_out", columns);
    emit(adapted.linear, Scale{-1.0F}, {dropped}, negative);
    emit(adapted.linear, Add{}, {adapted.x, negative}, rest);
    return rest;
  }

  float scale() const { return static_cast<float>(lora_scale(options_)); }

  const Program forward_;
  const LoraOptions& options_;
  const Targets targets_;
  Program result_;
  int32_t next_site_ = 0;
};

}  // namespace

std::string lora_a_name(std::string_view module) { return fmt::format("{}{}", module, kSuffixA); }
std::string lora_b_name(std::string_view module) { return fmt::format("{}{}", module, kSuffixB); }

std::string lora_magnitude_name(std::string_view module) {
  return fmt::format("{}{}", module, kSuffixMagnitude);
}

LoraTensor lora_tensor(std::string_view name) {
  for (const auto& [suffix, part] : kParts)
    if (name.ends_with(suffix)) return {name.substr(0, name.size() - suffix.size()), part};
  SNUG_CHECK(false, "{} is no tensor of LoRA", name);
  return {};
}

bool is_lora_tensor(std::string_view name) {
  return std::ranges::any_of(kParts, [&](const auto& part) { return name.ends_with(part.first); });
}

double lora_scale(const LoraOptions& options) {
  const auto r = static_cast<double>(options.r);
  return options.alpha / (options.rslora ? std::sqrt(r) : r);
}

std::vector<std::string> lora_modules(const Program& forward,
                                      const std::vector<std::string>& target_modules) {
  const Targets targets = read_targets(forward, target_modules);
  std::vector<std::string> modules;
  const std::set<TensorId> routing = routing_logits(forward);
  for (const Operation& operation : forward.operations)
    if (auto module = module_of(forward, operation, routing);
        !module.empty() && selects(targets, module))
      modules.push_back(std::move(module));
  return modules;
}

Program lora(const Program& forward, const LoraOptions& options) {
  return LoraRewrite(with_saved_modules(forward, options.modules_to_save), options).run();
}

Program initial_magnitudes(const Program& forward) {
  Builder builder(ProgramName::initialise);
  TensorId weight = kNone;
  std::optional<RowNorms> norms;
  for (const Operation& operation : forward.operations) {
    if (const auto* of_rows = std::get_if<RowNorms>(&operation.attributes)) {
      norms = RowNorms{.transposed = of_rows->transposed};
      weight = id_of(operation, RowNorms::kW);
    }
    if (!norms || operation.kind() != Kind::scale_columns) continue;
    builder.set_layer(operation.layer);
    const TensorId rows = builder.add(forward.tensor(weight));
    const TensorId magnitude = builder.add(forward.tensor(id_of(operation, ScaleColumns::kGain)));
    builder.emit(*std::exchange(norms, std::nullopt), {rows}, {magnitude});
  }
  return builder.take();
}

}  // namespace snug::methods
