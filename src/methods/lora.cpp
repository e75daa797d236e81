#include "methods/lora.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "methods/lora_experts.h"
#include "methods/lora_targets.h"
#include "program/ir/builder.h"
#include "program/ir/inputs.h"
#include "program/ir/operands.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/elementwise/elementwise.h"
#include "program/kinds/norm/row_norms.h"
#include "program/kinds/product/column_scale.h"
#include "program/kinds/product/embedding.h"
#include "program/kinds/product/matmul.h"

namespace snug::methods {
namespace {

using namespace program;  // NOLINT: rewrites speak the program's words throughout

constexpr std::string_view kSuffixA = ".lora_A.weight";
constexpr std::string_view kSuffixB = ".lora_B.weight";
constexpr std::string_view kSuffixMagnitude = ".lora_magnitude_vector";
constexpr std::string_view kSuffixEmbeddingA = ".lora_embedding_A";
constexpr std::string_view kSuffixEmbeddingB = ".lora_embedding_B";

// The role of an adapter's tensor, given by the end of its name.
struct NamedPart {
  std::string_view suffix;
  LoraPart part;
  bool of_embedding = false;
};
constexpr std::array kParts{NamedPart{kSuffixA, LoraPart::a}, NamedPart{kSuffixB, LoraPart::b},
                            NamedPart{kSuffixMagnitude, LoraPart::magnitude},
                            NamedPart{kSuffixEmbeddingA, LoraPart::a, true},
                            NamedPart{kSuffixEmbeddingB, LoraPart::b, true}};

class LoraRewrite {
 public:
  LoraRewrite(Program forward, const LoraOptions& options)
      : forward_(std::move(forward)),
        options_(options),
        targets_(forward_, options.target_modules, options.head),
        result_(forward_) {
    result_.operations.clear();
  }

  Program run() {
    for (const Operation& operation : forward_.operations) {
      const std::string linear =
          in_layers(targets_.adapted_linear(operation), operation, Matmul::kB.name);
      const std::string embedding =
          in_layers(targets_.adapted_embedding(operation), operation, Embedding::kTable.name);
      if (!linear.empty())
        adapt(operation, linear);
      else if (!embedding.empty())
        adapt_embedding(operation, embedding);
      else
        result_.operations.push_back(operation);
    }
    check_layers();
    for (const AdaptedExperts& experts : adapted_experts(forward_, options_.target_parameters))
      modules_.push_back(experts.parameter);
    check_patterns("rank_pattern", options_.ranks);
    check_patterns("alpha_pattern", options_.alphas);
    return std::move(result_);
  }

 private:
  // The module, or none where the layer of its weight gets no adapter.
  std::string in_layers(std::string module, const Operation& operation,
                        program::OperandName weight) {
    if (module.empty()) return module;
    const int32_t layer = forward_.tensor(find_operand(operation, weight)).layer;
    if (!options_.layers.empty() && std::ranges::count(options_.layers, layer) == 0) return {};
    layers_.insert(layer);
    modules_.push_back(module);
    return module;
  }

  void check_layers() const {
    for (const int64_t layer : options_.layers)
      if (!layers_.contains(layer))
        base::throw_user_error(
            "layers_to_transform: layer {} has no module that gets an adapter; layers count from 0",
            layer);
  }

  void check_patterns(std::string_view key, const std::vector<LoraPattern>& patterns) const {
    for (const LoraPattern& each : patterns)
      if (std::ranges::none_of(
              modules_, [&](const std::string& module) { return each.pattern.matches(module); }))
        base::throw_user_error(
            "{}: '{}' matches no module that gets an adapter; names end as in '{}'", key,
            each.written, modules_.empty() ? std::string() : modules_.front());
  }

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
    operation.attributes = attributes;
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
    int64_t r = 0;
    float scale = 0;
    Tensor weight;
    Tensor output;
    int64_t out = 0;
    bool is_transposed = false;
    TensorId x = kNone;
    TensorId a = kNone;
    TensorId b = kNone;
  };

  // Tokens per row of the linear's input x: every stream has the same number of rows.
  int64_t row_length(TensorId x) const {
    const TensorId tokens = forward_.find(program::kTokensName);
    if (tokens == kNone) return options_.row_tokens;
    const int64_t rows = forward_.tensor(tokens).shape[0] / options_.row_tokens;
    return std::max<int64_t>(1, result_.tensor(x).shape[0] / std::max<int64_t>(rows, 1));
  }

  // The input of A: x, or x with dropout. Each module draws its own mask, as PEFT does.
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
                    .r = lora_size(options_, module).r,
                    .scale = scale_of(module),
                    .weight = forward_.tensor(id_of(linear, Matmul::kB)),
                    .output = forward_.tensor(id_of(linear, Matmul::kC)),
                    .is_transposed = !linear.attributes.get<Matmul>().transpose_b,
                    .x = id_of(linear, Matmul::kA)};
    const Tensor& weight = adapted.weight;
    adapted.out = weight.shape[adapted.is_transposed ? 1 : 0];
    const int64_t in = weight.shape[adapted.is_transposed ? 0 : 1];
    const int64_t r = adapted.r;
    adapted.a = add(lora_a_name(module), {r, in}, weight, Role::adapter, Lifetime::run);
    adapted.b = add(lora_b_name(module), {adapted.out, r}, weight, Role::adapter, Lifetime::run);
    if (options_.dora) check_directions(module);
    if (options_.dora) return adapt_directions(adapted);
    const TensorId base = multiply(adapted, adapted.x, "base");
    add_low_rank(adapted, base, dropped(adapted, next_site_++), id_of(linear, Matmul::kC));
  }

  void check_directions(const std::string& module) const {
    if (module == options_.head)
      base::throw_user_error(
          "use_dora: is true, and the adapter is on the head, {}, too, whose magnitudes are not "
          "built; merge the adapter into its model with PEFT",
          module);
  }

  // A table whose values an adapter's file replaces is not counted, whether or not it trained
  // whole.
  bool trains_whole(const Tensor& table) const {
    return table.role == Role::adapter && std::ranges::count(options_.tables, table.name) == 0;
  }

  void check_embedding(const std::string& module, const Tensor& table) const {
    if (options_.dora)
      base::throw_user_error(
          "use_dora: is true, and target_modules names the embedding {}, whose magnitudes are not "
          "built; leave one of the two out",
          module);
    if (trains_whole(table))
      base::throw_user_error(
          "target_modules: names the embedding {}, which modules_to_save trains whole; leave it "
          "out of one of the two",
          module);
    if (result_.find(lora_embedding_a_name(module)) != kNone)
      base::throw_user_error(
          "target_modules: names the embedding {}, which two parts of this model read; adapt "
          "linears instead",
          module);
  }

  void adapt_embedding(const Operation& lookup, const std::string& module) {
    const Tensor table = forward_.tensor(id_of(lookup, Embedding::kTable));
    check_embedding(module, table);
    const TensorId y = id_of(lookup, Embedding::kY);
    const TensorId ids = id_of(lookup, Embedding::kIds);
    // The output of the lookup belongs to no layer, as it may be the first layer's input. Tensors
    // made on the way belong to the layer of the lookup.
    Tensor output = forward_.tensor(y);
    output.layer = lookup.layer;
    const int64_t r = lora_size(options_, module).r;
    const int64_t width = table.shape[1];
    const TensorId a = add(lora_embedding_a_name(module), {r, table.shape[0]}, table, Role::adapter,
                           Lifetime::run);
    const TensorId b =
        add(lora_embedding_b_name(module), {width, r}, table, Role::adapter, Lifetime::run);
    const TensorId base = activation(output, "base", width);
    const TensorId hidden = activation(output, "hidden", r);
    const TensorId delta = activation(output, "delta", width);
    emit(lookup, lookup.attributes, lookup.reads, base);
    emit(lookup, Embedding{.transposed = true}, {a, ids}, hidden);
    emit(lookup, Matmul{.transpose_b = true, .alpha = scale_of(module)}, {hidden, b}, delta);
    emit(lookup, Add{}, {base, delta}, y);
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
    // Logits have a wider type than the activations that they are computed from.
    Tensor like = adapted.output;
    like.dtype = result_.tensor(x).dtype;
    const TensorId hidden = activation(like, "hidden", adapted.r);
    const TensorId delta = activation(adapted.output, "delta", adapted.out);
    emit(adapted.linear, Matmul{.transpose_b = true}, {x, adapted.a}, hidden);
    emit(adapted.linear, Matmul{.transpose_b = true, .alpha = adapted.scale}, {hidden, adapted.b},
         delta);
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
         RowNorms{.transposed = adapted.is_transposed, .low_rank = true, .alpha = adapted.scale},
         {id_of(adapted.linear, Matmul::kB), adapted.a, adapted.b}, norms);
    const TensorId x = dropped(adapted, next_site_++);
    const TensorId sum = activation(adapted.output, "sum", adapted.out);
    add_low_rank(adapted, multiply(adapted, x, "base"), x, sum);
    const TensorId y = id_of(adapted.linear, Matmul::kC);
    const bool drops = x != adapted.x;
    const TensorId scaled = drops ? activation(adapted.output, "scaled", adapted.out) : y;
    emit(adapted.linear, ScaleColumns{.divided = true}, {sum, magnitude, norms}, scaled);
    // Recomputation runs producers in the order of the reads: with this order, the last product
    // adds to the sum that is already there.
    if (drops)
      emit(adapted.linear, Add{}, {scaled, multiply(adapted, left_out(adapted, x), "kept")}, y);
  }

  // x - d, where d is x after dropout.
  TensorId left_out(const Adapted& adapted, TensorId dropped) {
    const int64_t columns = result_.tensor(dropped).shape.columns();
    const TensorId negative = activation(adapted.output, "negative", columns);
    const TensorId rest = activation(adapted.output, "left_out", columns);
    emit(adapted.linear, Scale{-1.0F}, {dropped}, negative);
    emit(adapted.linear, Add{}, {adapted.x, negative}, rest);
    return rest;
  }

  float scale_of(const std::string& module) const {
    return static_cast<float>(formats::lora_scale(lora_size(options_, module), options_.rslora));
  }

  const Program forward_;
  const LoraOptions& options_;
  const LoraTargets targets_;
  Program result_;
  int32_t next_site_ = 0;
  std::vector<std::string> modules_;  // that get an adapter
  std::set<int64_t> layers_;          // of these
};

}  // namespace

std::string lora_a_name(std::string_view module) { return fmt::format("{}{}", module, kSuffixA); }
std::string lora_b_name(std::string_view module) { return fmt::format("{}{}", module, kSuffixB); }

std::string lora_embedding_a_name(std::string_view module) {
  return fmt::format("{}{}", module, kSuffixEmbeddingA);
}
std::string lora_embedding_b_name(std::string_view module) {
  return fmt::format("{}{}", module, kSuffixEmbeddingB);
}

std::string lora_magnitude_name(std::string_view module) {
  return fmt::format("{}{}", module, kSuffixMagnitude);
}

LoraTensor lora_tensor(std::string_view name) {
  for (const auto& [suffix, part, of_embedding] : kParts)
    if (name.ends_with(suffix))
      return {name.substr(0, name.size() - suffix.size()), part, of_embedding};
  SNUG_CHECK(false, "{} is no tensor of LoRA", name);
  return {};
}

bool is_lora_tensor(std::string_view name) {
  return std::ranges::any_of(kParts, [&](const auto& part) { return name.ends_with(part.suffix); });
}

double loraplus_rate(const Tensor& trainable, const UpdateOptions& options) {
  if (is_lora_tensor(trainable.name)) {
    const LoraTensor tensor = lora_tensor(trainable.name);
    if (tensor.of_embedding) return options.lora_embedding_rate;
    if (tensor.part == LoraPart::b) return options.lora_b_rate;
  }
  return program::whole_shape(trainable).rank() == 1 ? options.lora_b_rate : 1.0;
}

double lora_scale(const LoraOptions& options) {
  return formats::lora_scale({options.r, options.alpha}, options.rslora);
}

formats::LoraSize lora_size(const LoraOptions& options, std::string_view module) {
  const auto other = options.sizes.find(module);
  if (other != options.sizes.end()) return other->second;
  const auto value = [&](const std::vector<LoraPattern>& patterns, double otherwise) {
    const auto found = std::ranges::find_if(
        patterns, [&](const LoraPattern& each) { return each.pattern.matches(module); });
    return found == patterns.end() ? otherwise : found->value;
  };
  return {static_cast<int64_t>(value(options.ranks, static_cast<double>(options.r))),
          value(options.alphas, options.alpha)};
}

Program lora(const Program& forward, const LoraOptions& options) {
  const Program adapted =
      LoraRewrite(with_tables(with_saved_modules(forward, options.modules_to_save), options.tables),
                  options)
          .run();
  return with_adapted_experts(adapted, options);
}

Program initial_magnitudes(const Program& forward) {
  Builder builder(ProgramName::initialise);
  TensorId weight = kNone;
  std::optional<RowNorms> norms;
  for (const Operation& operation : forward.operations) {
    if (const auto* of_rows = operation.attributes.get_if<RowNorms>()) {
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
