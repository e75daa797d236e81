#include "operation_case.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "program/ir/operands.h"
#include "program/kinds/kind.h"

namespace snug::backends::test {

using program::DType;
using program::TensorId;

bool OperationCase::is_f32() const {
  for (const program::Tensor& tensor : program.tensors)
    if (base::is_float(tensor.dtype) && tensor.dtype != DType::f32) return false;
  return true;
}

bool OperationCase::has_f16() const {
  return std::ranges::any_of(
      program.tensors, [](const program::Tensor& tensor) { return tensor.dtype == DType::f16; });
}

std::string OperationCase::types() const {
  std::string text;
  const auto append = [&](const std::vector<TensorId>& ids, std::string_view mark) {
    if (!ids.empty()) text += mark;
    for (const TensorId id : ids)
      text += fmt::format(" {}", base::name_of(program.tensor(id).dtype));
  };
  append(operation().reads, "");
  append(operation().writes, " ->");
  append(operation().updates, " +=");
  return text;
}

uint64_t test_seed() {
  static const uint64_t seed = [] {
    const char* text = std::getenv("SNUG_TEST_SEED");
    const uint64_t chosen =
        text != nullptr ? std::strtoull(text, nullptr, 10) : uint64_t{std::random_device{}()};
    std::cout << "inputs are of SNUG_TEST_SEED=" << chosen << "\n";
    return chosen;
  }();
  return seed;
}

namespace {

// A standard normal number, from 32 random bits: one of many that were drawn once, and what lies
// between two of them. Drawing each anew would be a quarter of the time of some tests.
double normal_of(uint32_t bits) {
  constexpr int kDrawnBits = 16;
  static const Values drawn = [] {
    Random random(test_seed());
    std::normal_distribution<double> distribution;
    Values values(size_t{1} << kDrawnBits);
    for (double& value : values) value = distribution(random);
    return values;
  }();
  const double between = (static_cast<double>(bits >> kDrawnBits) + 0.5) / (1 << kDrawnBits) - 0.5;
  return drawn[bits & (drawn.size() - 1)] + 1e-3 * between;
}

}  // namespace

Values normal(Random& random, int64_t count, double mean, double deviation) {
  Values values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); i += 2) {
    const uint64_t bits = random();
    values[i] = mean + deviation * normal_of(static_cast<uint32_t>(bits));
    if (i + 1 < values.size())
      values[i + 1] = mean + deviation * normal_of(static_cast<uint32_t>(bits >> 32));
  }
  return values;
}

Values integers(Random& random, int64_t count, int64_t low, int64_t high) {
  std::uniform_int_distribution<int64_t> distribution(low, high);
  Values values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(distribution(random)));
  return values;
}

TensorId CaseBuilder::add(const Shape& shape, DType type, bool may_be_view) {
  const auto count = builder_.program().tensors.size();
  if (!views_ || !may_be_view || shape.rank() != 2)
    return builder_.activation(fmt::format("tensor{}", count), shape, type);
  const int64_t width = left_ + shape[1] + right_;
  program::Tensor view;
  view.name = fmt::format("view{}", count);
  view.shape = shape;
  view.dtype = type;
  view.view.base =
      builder_.activation(fmt::format("tensor{}", count), Shape{shape[0], width}, type);
  view.view.offset = left_;
  view.view.strides = {width, 1, 0, 0};
  return builder_.add(std::move(view));
}

TensorId CaseBuilder::random_input(const Shape& shape, DType type, double mean, double deviation,
                                   bool may_be_view) {
  const TensorId id = add(shape, type, may_be_view);
  not_drawn_[id] = {mean, deviation};
  return id;
}

void CaseBuilder::draw(TensorId id, const Normal& of) {
  const program::Tensor& tensor = builder_.program().tensor(id);
  inputs_[id] =
      rounded(normal(random_, tensor.shape.elements(), of.mean, of.deviation), tensor.dtype);
}

const Values& CaseBuilder::values(TensorId id) {
  if (const auto found = not_drawn_.find(id); found != not_drawn_.end()) {
    draw(id, found->second);
    not_drawn_.erase(found);
  }
  return inputs_.at(id);
}

TensorId CaseBuilder::activation(const Shape& shape, double mean, double deviation) {
  return random_input(shape, types_.activation, mean, deviation, true);
}

TensorId CaseBuilder::activation(const Shape& shape, Values values) {
  const TensorId id = add(shape, types_.activation, true);
  inputs_[id] = rounded(std::move(values), types_.activation);
  return id;
}

TensorId CaseBuilder::weight(const Shape& shape, double mean, double deviation) {
  return random_input(shape, types_.weight, mean, deviation);
}

TensorId CaseBuilder::gradient(const Shape& shape, double mean, double deviation) {
  return random_input(shape, types_.gradient, mean, deviation);
}

TensorId CaseBuilder::input(const Shape& shape, DType type, Values values) {
  const TensorId id = add(shape, type);
  inputs_[id] = rounded(std::move(values), type);
  return id;
}

TensorId CaseBuilder::index(const Shape& shape, Values values) {
  return input(shape, DType::i32, std::move(values));
}

TensorId CaseBuilder::measure(const Shape& shape, Values values) {
  return input(shape, DType::f32, std::move(values));
}

TensorId CaseBuilder::output_activation(const Shape& shape) {
  return add(shape, types_.activation, true);
}

TensorId CaseBuilder::output_gradient(const Shape& shape) { return add(shape, types_.gradient); }
TensorId CaseBuilder::output_measure(const Shape& shape) { return add(shape, DType::f32); }

TensorId CaseBuilder::output(const Shape& shape, DType type) { return add(shape, type); }

OperationCase CaseBuilder::finish(std::string name, program::Attributes attributes,
                                  std::vector<TensorId> reads, std::vector<TensorId> writes,
                                  std::vector<TensorId> updates) {
  builder_.emit(std::move(attributes), std::move(reads), std::move(writes), std::move(updates));
  if (!wanted_ || builder_.program().operations[0].kind() == *wanted_)
    for (const auto& [id, of] : not_drawn_) draw(id, of);
  if (views_) name += " views";
  return {std::move(name), builder_.take(), std::move(inputs_)};
}

namespace {

// The table that has the cases of a kind.
CaseTable table_of(program::Kind kind) {
  for (const auto table_function :
       {adapter_cases, attention_cases, cache_cases, elementwise_cases, expert_cases, layer_cases,
        loss_cases, matmul_cases, nf4_cases, optimizer_cases, preference_cases, recurrence_cases,
        top_k_cases}) {
    CaseTable table = table_function();
    if (std::find(table.kinds.begin(), table.kinds.end(), kind) != table.kinds.end()) return table;
  }
  SNUG_CHECK(false, "no table has cases of {}", program::name_of(kind));
  return {};
}

}  // namespace

std::vector<OperationCase> cases_of(program::Kind kind, const Types& types) {
  Random random(test_seed());
  CaseList list{kind, types, random, {}};
  table_of(kind).add_cases(list);
  std::erase_if(list.cases, [&](const OperationCase& operation_case) {
    return operation_case.operation().kind() != kind;
  });
  return std::move(list.cases);
}

std::vector<OperationCase> in_place_variants(const OperationCase& operation_case) {
  std::vector<OperationCase> variants;
  for (const auto& [output_name, input_name] :
       program::in_place_pairs(operation_case.operation())) {
    OperationCase variant = operation_case;
    const TensorId source = program::find_operand(variant.operation(), input_name);
    const TensorId target = program::find_operand(variant.operation(), output_name);
    program::Tensor& output = variant.program.tensor(target);
    const program::Tensor& input = variant.program.tensor(source);
    if (output.shape != input.shape || output.dtype != input.dtype) continue;
    output.view = input.view;
    if (!input.is_view()) {
      output.view.base = source;
      output.view.strides = {input.shape.columns(), 1, 0, 0};
      if (input.shape.rank() != 2) continue;
    }
    variant.name += fmt::format(" in place of {}", input_name.text);
    variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace snug::backends::test
