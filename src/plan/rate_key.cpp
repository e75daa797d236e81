#include "plan/rate_key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>

namespace snug::plan {
namespace {

using namespace program;  // NOLINT: speaks the program's words throughout

double number(int64_t value) { return static_cast<double>(std::max<int64_t>(1, value)); }

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

// "rms_norm bf16 bf16 > bf16": the types of what it reads, writes and updates tell the forms of a
// kind apart. Integers are the same in all.
std::string typed_name(const OperationView& view) {
  std::string name(name_of(view.operation.kind()));
  append_types(view.program, view.operation.reads, " ", name);
  append_types(view.program, view.operation.writes, " > ", name);
  append_types(view.program, view.operation.updates, " += ", name);
  return name;
}

RateKey key_of(const Matmul& matmul, const OperationView& view, const Load&) {
  const Tensor& a = view.read(0);
  const Tensor& c = matmul.accumulate ? view.update(0) : view.write(0);
  RateKey key;
  key.name = typed_name(view);
  key.name.insert(std::string_view("matmul").size(), std::string(matmul.transpose_a ? " t" : " n") +
                                                         (matmul.transpose_b ? " t" : " n"));
  if (matmul.stochastic) key.name += " stochastic";
  key.shape = {number(c.shape[0]), number(c.shape[1]), number(a.shape[matmul.transpose_a ? 0 : 1])};
  key.unit = Work::flops;
  return key;
}

// As many queries as keys: a whole row of segments. Otherwise a cache is read.
template <typename Attributes>
RateKey attention_key(const Attributes& attention, const OperationView& view, const Load& load,
                      size_t first_read) {
  const auto queries = number(view.read(first_read).shape[0]);
  const auto keys = number(view.read(first_read + 1).shape[0]);
  double segment = load.segment_tokens > 0 ? load.segment_tokens : number(load.row_tokens);
  if (load.segment_tokens <= 0 && load.row_tokens <= 0) segment = keys;
  RateKey key;
  key.name = typed_name(view) + (queries == keys ? "" : " cached") +
             (attention.by_library ? std::string(kByLibrary) : "");
  key.shape = {std::clamp(segment, 1.0, keys), queries * number(attention.heads),
               number(attention.head_dim), number(attention.heads) / number(attention.kv_heads)};
  key.unit = Work::flops;
  return key;
}

RateKey key_of(const Attention& attention, const OperationView& view, const Load& load) {
  return attention_key(attention, view, load, 0);
}

RateKey key_of(const AttentionGrad& attention, const OperationView& view, const Load& load) {
  return attention_key(attention, view, load, 1);
}

RateKey loss_key(const OperationView& view, const Load& load) {
  RateKey key;
  key.name = typed_name(view);
  const double rows = number(view.read(0).shape[0]) * load.trained_fraction;
  key.shape = {std::max(1.0, rows), number(view.read(1).shape[0]), number(view.read(1).shape[1])};
  key.unit = Work::flops;
  return key;
}

RateKey key_of(const LinearCrossEntropy&, const OperationView& view, const Load& load) {
  return loss_key(view, load);
}

RateKey key_of(const LinearCrossEntropyTrain&, const OperationView& view, const Load& load) {
  return loss_key(view, load);
}

// Goes through its tensors one after the other, so the size of one decides, not how many there are.
RateKey key_of(const GlobalNorm&, const OperationView& view, const Load& load) {
  RateKey key;
  key.name = "global_norm " + std::string(base::name_of(view.read(0).dtype));
  const double bytes = cost(view, load).bytes;
  key.shape = {std::max(1.0, bytes / number(static_cast<int64_t>(view.operation.reads.size())))};
  return key;
}

// Bound by memory: the bytes it moves are its shape.
template <typename Attributes>
RateKey key_of(const Attributes&, const OperationView& view, const Load& load) {
  RateKey key;
  key.name = typed_name(view);
  key.shape = {std::max(1.0, cost(view, load).bytes)};
  return key;
}

}  // namespace

std::string line_of(const RateKey& key) {
  if (!key.name.starts_with("matmul")) return key.name;
  return fmt::format("{} ({:.0f})", key.name, fmt::join(key.shape, ", "));
}

RateKey rate_key(const OperationView& view, const Load& load) {
  RateKey key = std::visit([&](const auto& attributes) { return key_of(attributes, view, load); },
                           view.operation.attributes);
  const Cost work = cost(view, load);
  key.work = key.unit == Work::flops ? work.flops : work.bytes;
  return key;
}

}  // namespace snug::plan
