#include "random_program.h"

#include <fmt/format.h>

#include <bit>
#include <random>

#include "program/ir/builder.h"
#include "program/kinds/dispatch.h"

namespace snug::program {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  int64_t below(int64_t bound) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(bound));
  }
  bool one_in(int64_t chances) { return below(chances) == 0; }
  void fill(bool& value) { value = one_in(2); }
  void fill(int32_t& value) { value = static_cast<int32_t>(engine_()); }
  void fill(int64_t& value) { value = one_in(2) ? below(10) : static_cast<int64_t>(engine_()); }
  void fill(FillForm& value) { value = static_cast<FillForm>(below(3)); }
  void fill(RankGroup& value) { value = static_cast<RankGroup>(below(3)); }
  void fill(ProductAlgorithm& value) { value = static_cast<ProductAlgorithm>(below(8)); }
  void fill(AttentionBy& value) { value = static_cast<AttentionBy>(below(3)); }
  void fill(LossAlgorithm& value) { value = static_cast<LossAlgorithm>(below(4)); }
  void fill(base::PreferenceLoss& value) {
    value = base::kWordsOf<base::PreferenceLoss>[static_cast<size_t>(below(11))].value;
  }
  // Any bits that are no NaN.
  void fill(float& value) {
    do {
      value = std::bit_cast<float>(static_cast<uint32_t>(engine_()));
    } while (value != value);
    if (one_in(4)) value = one_in(2) ? -0.0F : 0.1F;
  }

 private:
  std::mt19937_64 engine_;
};

std::string random_name(Dice& dice, size_t index) {
  constexpr std::array<std::string_view, 12> kParts{"layers.", "q_proj",     "tensor", "layer",
                                                    "a b",     "\"quoted\"", "\\",     "\n",
                                                    "*",       "<*+1>",      "#",      "007.1e5"};
  std::string name;
  for (int64_t parts = dice.below(4); parts > 0; --parts)
    name += kParts[static_cast<size_t>(dice.below(kParts.size()))];
  return name + std::to_string(index);
}

Tensor random_tensor(Dice& dice, size_t index, int64_t tensors) {
  Tensor tensor;
  tensor.name = random_name(dice, index);
  for (int64_t rank = dice.below(Shape::kMaxRank + 1); rank > 0; --rank)
    tensor.shape.append(dice.one_in(9) ? 0 : dice.below(1 << 14));
  tensor.dtype = static_cast<DType>(dice.below(7));
  tensor.role = static_cast<Role>(dice.below(kRoleCount));
  tensor.space = static_cast<Space>(dice.below(kSpaceCount));
  tensor.lifetime = static_cast<Lifetime>(dice.below(3));
  tensor.stream = static_cast<base::TokenStream>(dice.below(2));
  tensor.constant = dice.one_in(4);
  tensor.layer = static_cast<int32_t>(dice.below(4)) - 1;
  if (dice.one_in(4)) {
    tensor.role = Role::workspace;
    tensor.space = Space::device;
    tensor.lifetime = Lifetime::program;
  }
  if (dice.one_in(4)) {
    tensor.whole = Shape{dice.below(50), dice.below(50)};
    tensor.rank_step = dice.below(1000);
  }
  if (!dice.one_in(3)) return tensor;
  if (dice.one_in(4)) tensor.view.rank_step = dice.below(1000);
  tensor.view.base = static_cast<TensorId>(dice.below(tensors));
  tensor.view.strides = dense_strides(tensor.shape);
  if (dice.one_in(2)) dice.fill(tensor.view.offset);
  if (tensor.shape.rank() > 0 && dice.one_in(2)) tensor.view.strides[0] = dice.below(100);
  return tensor;
}

std::vector<TensorId> random_ids(Dice& dice, int64_t tensors) {
  std::vector<TensorId> ids;
  for (int64_t count = dice.below(4); count > 0; --count)
    ids.push_back(static_cast<TensorId>(dice.below(tensors)));
  return ids;
}

Operation random_operation(Dice& dice, int64_t tensors) {
  Operation operation;
  operation.attributes = default_attributes(static_cast<Kind>(dice.below(kKindCount)));
  dispatch<void>(operation.attributes, [&](auto& values) {
    using Struct = std::decay_t<decltype(values)>;
    const auto maybe_fill = [&]<typename Listed>(const Listed& listed) {
      if constexpr (!Listed::kIsDecision)
        if (dice.one_in(2)) dice.fill(values.*listed.member);
    };
    std::apply([&](const auto&... listed) { (maybe_fill(listed), ...); }, Struct::kFields);
    for_each_part<Struct>([&](const auto& part) {
      if (dice.one_in(2)) dice.fill(part.of(values));
    });
  });
  operation.reads = random_ids(dice, tensors);
  operation.writes = random_ids(dice, tensors);
  operation.updates = random_ids(dice, tensors);
  if (dice.one_in(3)) operation.workspace = static_cast<TensorId>(dice.below(tensors));
  operation.channel = static_cast<Channel>(dice.below(5));
  operation.phase = static_cast<Phase>(dice.below(4));
  operation.layer = static_cast<int32_t>(dice.below(4)) - 1;
  if (dice.one_in(3)) operation.launches = static_cast<int32_t>(dice.below(9));
  return operation;
}

Tensor named(std::string name, const Shape& shape, int32_t layer) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = shape;
  tensor.dtype = DType::bf16;
  tensor.layer = layer;
  return tensor;
}

}  // namespace

Program random_program(uint64_t seed) {
  Dice dice(seed);
  Program program;
  program.name = random_name(dice, 0);
  const int64_t tensors = 1 + dice.below(12);
  for (int64_t i = 0; i < tensors; ++i)
    program.tensors.push_back(random_tensor(dice, static_cast<size_t>(i), tensors));
  for (int64_t count = dice.below(12); count > 0; --count)
    program.operations.push_back(random_operation(dice, tensors));
  return program;
}

Program layered_program(int32_t layers) {
  constexpr int64_t kTokens = 8;
  constexpr int64_t kWidth = 4;
  Builder builder("layered");
  Tensor random = named("random", {2}, -1);
  random.dtype = DType::i32;
  random.role = Role::scalar;
  random.lifetime = Lifetime::step;
  const TensorId key = builder.add(random);
  Tensor all = named("all_weights", {layers * kWidth, kWidth}, -1);
  all.role = Role::weight;
  all.lifetime = Lifetime::run;
  const TensorId base = builder.add(all);
  Tensor input = named("x", {kTokens, kWidth}, -1);
  input.role = Role::batch;
  input.lifetime = Lifetime::step;
  std::vector<TensorId> stream{builder.add(input)};
  std::vector<TensorId> weights;
  std::vector<Dropout> dropouts;
  for (int32_t i = 0; i < layers; ++i) {
    builder.set_layer(i);
    Tensor weight = named(fmt::format("model.layers.{}.weight", i), {kWidth, kWidth}, i);
    weight.role = Role::weight;
    weight.lifetime = Lifetime::run;
    weight.view = {base, i * kWidth * kWidth, dense_strides(weight.shape)};
    weights.push_back(builder.add(weight));
    Dropout dropout;
    dropout.probability = 0.1F;
    dropout.row_length = kTokens;
    dropout.site = 7 * i + 3;
    dropouts.push_back(dropout);
    const TensorId kept =
        builder.activation(fmt::format("layers.{}.dropped", i), {kTokens, kWidth}, DType::bf16);
    builder.emit(dropout, {stream.back(), key}, {kept});
    Matmul linear;
    linear.transpose_b = true;
    stream.push_back(
        builder.activation(fmt::format("layers.{}.output", i), {kTokens, kWidth}, DType::bf16));
    builder.emit(linear, {kept, weights.back()}, {stream.back()});
  }
  builder.set_phase(Phase::backward);
  builder.set_layer(-1);
  TensorId gradient = builder.activation("output.grad", {kTokens, kWidth}, DType::bf16);
  builder.emit(Cast{}, {stream.back()}, {gradient});
  for (int32_t i = layers - 1; i >= 0; --i) {
    const auto layer = static_cast<size_t>(i);
    builder.set_layer(i);
    const TensorId through =
        builder.activation(fmt::format("layers.{}.output.grad", i), {kTokens, kWidth}, DType::bf16);
    builder.emit(Matmul{}, {gradient, weights[layer]}, {through});
    gradient =
        builder.activation(fmt::format("layers.{}.input.grad", i), {kTokens, kWidth}, DType::bf16);
    builder.emit(dropouts[layer], {through, key}, {gradient});
  }
  return builder.take();
}

}  // namespace snug::program
