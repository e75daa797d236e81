#include "passes/lowering/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "formats/quantization/quant_state.h"
#include "program/kinds/norm/row_norms.h"
#include "program/kinds/product/grouped_matmul.h"
#include "program/kinds/product/matmul.h"
#include "program/kinds/product/nf4.h"

namespace snug::passes {
namespace {

using namespace program;  // NOLINT: passes speak the program's words throughout

// A quantised weight: its shape and type when dequantised, and its operands as stored.
struct Stored {
  Shape shape;
  DType dtype = DType::bf16;
  std::vector<TensorId> operands;
  bool transposed = false;  // of the shape in which other operations see the weight
};

// The weights of shape (in, out).
std::unordered_set<TensorId> find_transposed(const Program& program) {
  std::unordered_set<TensorId> found;
  for (const Operation& operation : program.operations) {
    const auto* matmul = operation.attributes.get_if<Matmul>();
    if (matmul != nullptr && operation.phase == Phase::forward && !matmul->transpose_b)
      found.insert(id_of(operation, Matmul::kB));
    const auto* norms = operation.attributes.get_if<RowNorms>();
    if (norms != nullptr && norms->transposed) found.insert(id_of(operation, RowNorms::kW));
  }
  return found;
}

bool is_plain_linear(const Operation& operation) {
  Matmul linear;
  linear.transpose_b = true;
  return operation.attributes == Attributes(linear);
}

class Quantize {
 public:
  Quantize(const Program& program, const QuantizeOptions& options)
      : input_(program), options_(options) {
    result_.name = program.name;
    result_.tensors = program.tensors;
  }

  Program run() {
    transposed_ = find_transposed(input_);
    for (size_t id = 0; id < input_.tensors.size(); ++id)
      if (is_quantized(input_.tensors[id], options_)) store(static_cast<TensorId>(id));
    for (const Operation& operation : input_.operations) rewrite(operation);
    return std::move(result_);
  }

 private:
  TensorId sibling(TensorId weight, std::string name, const Shape& shape, DType dtype) {
    Tensor tensor = input_.tensor(weight);
    tensor.name = std::move(name);
    tensor.shape = shape;
    tensor.dtype = dtype;
    tensor.role = Role::quant_state;
    result_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(result_.tensors.size() - 1);
  }

  void store(TensorId id) {
    const Tensor& weight = input_.tensor(id);
    const int64_t elements = weight.shape.elements();
    Stored& stored = stored_[id];
    stored.shape = weight.shape;
    stored.transposed = transposed_.contains(id);
    if (stored.transposed) stored.shape = {weight.shape[1], weight.shape[0]};
    stored.dtype = weight.dtype;
    result_.tensor(id).shape = {nf4_code_bytes(elements), 1};
    result_.tensor(id).dtype = DType::u8;
    stored.operands = {id, sibling(id, absmax_name(weight.name), {nf4_blocks(elements)},
                                   options_.nested ? DType::u8 : DType::f32)};
    if (!options_.nested) return;
    for (const TensorId state :
         {sibling(id, nested_absmax_name(weight.name), {nf4_nested_blocks(elements)}, DType::f32),
          sibling(id, nested_map_name(weight.name), {kNf4MapSize}, DType::f32),
          sibling(id, nested_offset_name(weight.name), {1}, DType::f32)})
      stored.operands.push_back(state);
  }

  void rewrite(const Operation& operation) {
    if (operation.kind() == Kind::row_norms && stored_.contains(id_of(operation, RowNorms::kW)))
      return norm_values(operation);
    if (operation.kind() == Kind::grouped_matmul &&
        stored_.contains(id_of(operation, GroupedMatmul::kB)))
      return multiply_stored(operation);
    if (operation.kind() != Kind::matmul || !stored_.contains(id_of(operation, Matmul::kB)))
      return read_values(operation);
    const Stored& weight = stored_.at(id_of(operation, Matmul::kB));
    Operation product = operation;
    if (weight.transposed) {
      auto& matmul = product.attributes.get<Matmul>();
      matmul.transpose_b = !matmul.transpose_b;
    }
    if (is_plain_linear(product)) {
      product.attributes = MatmulNf4{options_.nested};
      product.reads = {id_of(operation, Matmul::kA)};
      product.reads.insert(product.reads.end(), weight.operands.begin(), weight.operands.end());
    } else {
      replace_operand(product, Matmul::kB.name, dequantize(operation, weight));
    }
    result_.operations.push_back(std::move(product));
  }

  void multiply_stored(Operation operation) {
    const TensorId bounds = id_of(operation, GroupedMatmul::kBounds);
    const Stored& weight = stored_.at(id_of(operation, GroupedMatmul::kB));
    operation.reads = {id_of(operation, GroupedMatmul::kA)};
    operation.reads.insert(operation.reads.end(), weight.operands.begin(), weight.operands.end());
    operation.reads.push_back(bounds);
    auto& grouped = operation.attributes.get<GroupedMatmul>();
    grouped.stored = true;
    grouped.nested = options_.nested;
    result_.operations.push_back(std::move(operation));
  }

  // Norms of rows are computed from the weight's dequantised values, which are never transposed
  // here.
  void norm_values(Operation operation) {
    const Stored& weight = stored_.at(id_of(operation, RowNorms::kW));
    operation.attributes.get<RowNorms>().transposed = false;
    replace_operand(operation, RowNorms::kW.name, dequantize(operation, weight));
    result_.operations.push_back(std::move(operation));
  }

  // Operations other than products by a stored weight and norms of its rows may read only one
  // stored weight, the head, by which the loss multiplies.
  void read_values(Operation operation) {
    for_each_tensor(operation, [&](TensorId id) {
      SNUG_CHECK(!stored_.contains(id) || input_.tensor(id).name == options_.head,
                 "{} is stored as NF4 and {} reads it", input_.tensor(id).name,
                 name_of(operation.kind()));
    });
    for (TensorId& id : operation.reads)
      if (const auto stored = stored_.find(id); stored != stored_.end())
        id = dequantize(operation, stored->second);
    result_.operations.push_back(std::move(operation));
  }

  // Emits the dequantisation of the weight for one operation.
  TensorId dequantize(const Operation& reader, const Stored& weight) {
    Tensor values = input_.tensor(weight.operands[0]);
    values.name = fmt::format("{}.values.{}", values.name, ++uses_[weight.operands[0]]);
    values.shape = weight.shape;
    values.role = Role::activation;
    values.lifetime = Lifetime::program;
    result_.tensors.push_back(std::move(values));
    const auto id = static_cast<TensorId>(result_.tensors.size() - 1);
    Operation operation;
    operation.attributes = DequantizeNf4{options_.nested};
    operation.reads = weight.operands;
    operation.writes = {id};
    operation.phase = reader.phase;
    operation.layer = reader.layer;
    result_.operations.push_back(std::move(operation));
    return id;
  }

  const Program& input_;
  const QuantizeOptions& options_;
  Program result_;
  std::unordered_set<TensorId> transposed_;
  std::unordered_map<TensorId, Stored> stored_;
  std::unordered_map<TensorId, int> uses_;
};

}  // namespace

bool is_quantized(const Tensor& tensor, const QuantizeOptions& options) {
  const auto names = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), tensor.name) != list.end();
  };
  if (tensor.role != Role::weight) return false;
  if (tensor.shape.rank() == 3) return names(options.experts);
  if (tensor.shape.rank() != 2) return false;
  if (tensor.layer < 0) return !options.head.empty() && tensor.name == options.head;
  return !names(options.kept);
}

Program quantize(const Program& program, const QuantizeOptions& options) {
  return Quantize(program, options).run();
}

std::string absmax_name(const std::string& weight) {
  return fmt::format("{}{}", weight, formats::kAbsmaxSuffix);
}
std::string nested_absmax_name(const std::string& weight) {
  return fmt::format("{}{}", weight, formats::kNestedAbsmaxSuffix);
}
std::string nested_map_name(const std::string& weight) {
  return fmt::format("{}{}", weight, formats::kNestedMapSuffix);
}
// In files, this offset is stored in the JSON of the weight's quantisation state.
std::string nested_offset_name(const std::string& weight) {
  return fmt::format("{}.nested_offset", weight);
}

}  // namespace snug::passes
