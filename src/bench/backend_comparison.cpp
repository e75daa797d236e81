// Steps: run the step on `b` and keep every tensor that an operation wrote, in the order of the
// writes; run it on `a` and compare each write with the one of the same name; print.
#include "bench/backend_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/words.h"
#include "bench/operation_timer.h"
#include "bench/recipe_step.h"
#include "program/ir/operation.h"
#include "runtime/execution/executor.h"

namespace snug::bench {
namespace {

using backends::Buffer;
using base::DType;
using program::Program;
using program::Tensor;

constexpr double kTolerance = 1e-3;
constexpr double kTolerance16 = 5e-2;

template <typename Stored>
double number(const std::byte* at) {
  Stored value;
  std::memcpy(&value, at, sizeof(value));
  if constexpr (std::is_arithmetic_v<Stored>)
    return static_cast<double>(value);
  else
    return static_cast<double>(base::to_float(value));
}

double number_at(const std::byte* at, DType type) {
  switch (type) {
    case DType::f32:
      return number<float>(at);
    case DType::bf16:
      return number<base::BFloat16>(at);
    case DType::f16:
      return number<base::Float16>(at);
    case DType::i32:
      return number<int32_t>(at);
    default:
      return number<uint8_t>(at);
  }
}

// The elements in the order of the tensor, without the gaps of a view.
std::vector<double> values_of(const Buffer& buffer, backends::Backend& backend) {
  std::vector<std::byte> bytes(static_cast<size_t>(buffer.spanned_bytes()));
  backend.copy(bytes.data(), buffer.data, std::ssize(bytes));
  backend.synchronise();
  std::vector<double> values;
  values.reserve(static_cast<size_t>(buffer.elements()));
  std::array<int64_t, program::Shape::kMaxRank> at{};
  for (int64_t i = 0; i < buffer.elements(); ++i) {
    int64_t offset = 0;
    for (int axis = 0; axis < buffer.shape.rank(); ++axis)
      offset += at[static_cast<size_t>(axis)] * buffer.strides[static_cast<size_t>(axis)];
    values.push_back(number_at(bytes.data() + offset * base::size_of(buffer.dtype), buffer.dtype));
    for (int axis = buffer.shape.rank() - 1; axis >= 0; --axis) {
      if (++at[static_cast<size_t>(axis)] < buffer.shape[axis]) break;
      at[static_cast<size_t>(axis)] = 0;
    }
  }
  return values;
}

// What an operation wrote.
struct Written {
  DType type{};
  program::Shape shape;
  std::vector<double> values;
};

// Codes follow from values that are compared, and the next code is no error.
bool is_compared(const Tensor& tensor) {
  return tensor.space == program::Space::device &&
         (base::is_float(tensor.dtype) || tensor.dtype == DType::i32);
}

// Calls seen(program, operation, tensor, what it holds) after each operation for what it wrote.
class WriteObserver final : public runtime::Executor::Observer {
 public:
  using Seen = std::function<void(const Program&, size_t, const Tensor&, Written)>;
  WriteObserver(runtime::Executor& executor, Seen seen)
      : executor_(executor), seen_(std::move(seen)) {}
  void before(const Program&, size_t) override {}
  void after(const Program& program, size_t index) override {
    const auto key = program::program_key(program.name);
    SNUG_CHECK(key.has_value(), "{} is no program of a job", program.name);
    const program::Operation& operation = program.operations[index];
    for (const auto* ids : {&operation.writes, &operation.updates})
      for (const program::TensorId id : *ids) {
        const Tensor& tensor = program.tensor(id);
        if (!is_compared(tensor)) continue;
        seen_(program, index, tensor,
              {tensor.dtype, tensor.shape,
               values_of(executor_.tensor(*key, id), executor_.backend())});
      }
  }

 private:
  runtime::Executor& executor_;
  Seen seen_;
};

void run_observed(FilledStep& filled, int64_t accumulation, WriteObserver::Seen seen) {
  WriteObserver observer(filled.executor(), std::move(seen));
  filled.executor().set_observer(&observer);
  for (const plan::StepProgram& each : plan::step_programs(filled.job(), accumulation))
    filled.executor().run(each.name);
  filled.executor().set_observer(nullptr);
}

struct Difference {
  std::string program;
  size_t operation = 0;
  std::string kind;
  std::string tensor;
  double relative = 0;
  int64_t element = 0;  // the one that is furthest off
  double value_a = 0;
  double value_b = 0;
};

Difference difference_of(const Written& a, const Written& b) {
  Difference result;
  double apart = 0;
  double norm = 0;
  double most = -1;
  for (size_t i = 0; i < b.values.size(); ++i) {
    const double delta = std::abs(a.values[i] - b.values[i]);
    apart += delta * delta;
    norm += b.values[i] * b.values[i];
    // A value that is no number is furthest off of all.
    if (delta <= most) continue;
    if (std::isnan(most)) continue;
    most = delta;
    result.element = static_cast<int64_t>(i);
    result.value_a = a.values[i];
    result.value_b = b.values[i];
  }
  result.relative = norm > 0 ? std::sqrt(apart / norm) : std::sqrt(apart);
  return result;
}

class Comparison {
 public:
  void keep(const Program& program, const Tensor& tensor, Written written) {
    kept_[{program.name, tensor.name}].push_back(std::move(written));
  }

  void compare(const Program& program, size_t index, const Tensor& tensor, const Written& a) {
    const auto kept = kept_.find({program.name, tensor.name});
    if (kept == kept_.end() || kept->second.empty() || kept->second.front().shape != a.shape) {
      ++alone_;
      return;
    }
    const Written b = std::move(kept->second.front());
    kept->second.pop_front();
    Difference found = difference_of(a, b);
    found.program = program.name;
    found.operation = index;
    found.kind = program::name_of(program.operations[index].kind());
    found.tensor = tensor.name;
    ++compared_;
    is_in_16_bits_ = is_in_16_bits_ || base::size_of(a.type) == 2 || base::size_of(b.type) == 2;
    const double tolerance = is_in_16_bits_ ? kTolerance16 : kTolerance;
    const bool differs = !(found.relative <= tolerance);
    if (differs && !first_) first_ = found;
    Difference& largest = by_kind_[found.kind];
    if (largest.kind.empty() || !(found.relative <= largest.relative)) largest = found;
  }

  bool differs() const { return first_.has_value(); }
  void print(const std::string& a, const std::string& b, bool json) const;

 private:
  std::map<std::pair<std::string, std::string>, std::deque<Written>> kept_;
  std::optional<Difference> first_;
  std::map<std::string, Difference> by_kind_;
  int64_t compared_ = 0;
  int64_t alone_ = 0;
  bool is_in_16_bits_ = false;  // of a value up to here
};

nlohmann::ordered_json json_of(const Difference& difference) {
  return {{"program", difference.program},   {"operation", difference.operation},
          {"kind", difference.kind},         {"tensor", difference.tensor},
          {"relative", difference.relative}, {"element", difference.element},
          {"a", difference.value_a},         {"b", difference.value_b}};
}

std::string line_of(const Difference& difference) {
  return fmt::format("{:.2e}  operation {} of {} writes {}: element {} is {:.6g} against {:.6g}",
                     difference.relative, difference.operation, difference.program,
                     difference.tensor, difference.element, difference.value_a, difference.value_b);
}

void Comparison::print(const std::string& a, const std::string& b, bool json) const {
  if (json) {
    nlohmann::ordered_json kinds = nlohmann::ordered_json::object();
    for (const auto& [kind, largest] : by_kind_) kinds[kind] = json_of(largest);
    const nlohmann::ordered_json document{
        {"a", a},
        {"b", b},
        {"compared", compared_},
        {"alone", alone_},
        {"first_difference", first_ ? json_of(*first_) : nlohmann::ordered_json()},
        {"largest", kinds}};
    base::print("{}\n", document.dump());
    return;
  }
  base::print("{} against {}: {} tensors compared, {} that {} alone has\n", a, b, compared_, alone_,
              a);
  base::print("largest relative difference of each kind:\n");
  for (const auto& [kind, largest] : by_kind_) base::print("  {:<28} {}\n", kind, line_of(largest));
  if (first_)
    base::print("first that differs: {} ({})\n", line_of(*first_), first_->kind);
  else
    base::print("none differs\n");
}

RecipeStep step_on(formats::Recipe recipe, const std::string& backend) {
  const auto name = base::from_word<formats::BackendName>(backend);
  if (!name)
    base::throw_user_error("'{}' is no backend; it is one of {}", backend,
                           fmt::join(base::all_words<formats::BackendName>(), ", "));
  recipe.backend = *name;
  if (recipe.compute_dtype == formats::ComputeDtype::automatic)
    recipe.compute_dtype = formats::ComputeDtype::fp32;
  return recipe_step(recipe);
}

}  // namespace

int compare_backends(const formats::Recipe& recipe, const std::string& a, const std::string& b,
                     bool json) {
  Comparison comparison;
  // Both run what `a` would: the rows of a step, and what layers compute again, are those of its
  // plan.
  RecipeStep first = step_on(recipe, a);
  {
    RecipeStep second = step_on(first.recipe, b);
    second.step.spec = first.step.spec;
    FilledStep filled(second.step, *second.backend);
    run_observed(filled, first.step.spec.accumulation,
                 [&](const Program& program, size_t, const Tensor& tensor, Written written) {
                   comparison.keep(program, tensor, std::move(written));
                 });
  }
  FilledStep filled(first.step, *first.backend);
  run_observed(filled, first.step.spec.accumulation,
               [&](const Program& program, size_t index, const Tensor& tensor, Written written) {
                 comparison.compare(program, index, tensor, written);
               });
  comparison.print(a, b, json);
  return comparison.differs() ? 1 : 0;
}

}  // namespace snug::bench
