// Runs the step on `b` and keeps every tensor that an operation wrote, in the order of the writes;
// then runs it on `a` and compares each write with the write of the same name on `b`; then prints.
#include "bench/backend_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/console.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/words.h"
#include "bench/operation_timer.h"
#include "bench/recipe_step.h"
#include "bench/write_comparison.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/kind.h"
#include "runtime/loading/load_weights.h"
#include "runtime/loading/random_weights.h"
#include "runtime/saving/adapter.h"
#include "runtime/session.h"

namespace snug::bench {
namespace {

using backends::Buffer;
using base::DType;
using program::Program;
using program::Tensor;

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

// The elements in the order of the tensor, without the gaps that a view may have.
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

// Quantised codes are not compared: the values that they come from are, and a neighbouring code is
// no error.
bool is_compared(const Tensor& tensor) {
  return tensor.space == program::Space::device &&
         (base::is_float(tensor.dtype) || tensor.dtype == DType::i32);
}

// After each operation, calls seen(program, operation, tensor, values) for every tensor that it
// wrote.
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
    // What a copy brings is there when it has been awaited.
    if (program::traits_of(operation).copying == program::Copying::begins) return;
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

// The job on one backend: its weights, a full batch, and a learning rate so large that a step
// changes more than the last bits of the weights.
class ComparedJob {
 public:
  ComparedJob(const formats::Recipe& recipe, const models::ModelSource& model, RecipeStep step)
      : step_(std::move(step.step)),
        job_(plan::plan_training(step_.spec, *step.backend)),
        session_(std::move(step.backend)) {
    session_.open(job_);
    runtime::set_weights(model, recipe.init, executor());
    if (step_.spec.is_adapted()) make_adapter(recipe);
    executor().run(program::ProgramName::prepare);
    fill_step(step_, job_, executor(), 1e-2F);
  }

  const plan::Job& job() const { return job_; }
  runtime::Executor& executor() const { return session_.executor(); }

  void run(const WriteObserver::Seen& seen) const {
    WriteObserver observer(executor(), seen);
    executor().set_observer(&observer);
    for (const plan::StepProgram& each : plan::step_programs(job_, step_.spec.accumulation))
      executor().run(each.name);
    executor().set_observer(nullptr);
  }

 private:
  // A new adapter starts with matrices of zeros, so comparing their products would show nothing.
  void make_adapter(const formats::Recipe& recipe) const {
    if (!recipe.adapter.empty()) {
      runtime::load_adapter(recipe.adapter, step_.spec.method_options(), executor());
      return;
    }
    runtime::initialise_adapter(executor());
    constexpr float kBound = 0.05F;
    for (const program::Tensor& tensor : plan::adapter_tensors(job_))
      for (const std::string& name : {tensor.name, program::master_name(tensor.name)})
        if (executor().has(name))
          runtime::fill_uniform({executor().tensor(name), tensor.name}, 0, kBound, executor());
  }

  CalibrationStep step_;
  plan::Job job_;
  runtime::Session session_;
};

nlohmann::ordered_json json_of(const WriteDifference& difference) {
  return {{"program", difference.program},   {"operation", difference.operation},
          {"kind", difference.kind},         {"tensor", difference.tensor},
          {"relative", difference.relative}, {"element", difference.element},
          {"a", difference.value_a},         {"b", difference.value_b}};
}

std::string line_of(const WriteDifference& difference) {
  return fmt::format("{:.2e}  operation {} of {} writes {}: element {} is {:.6g} against {:.6g}",
                     difference.relative, difference.operation, difference.program,
                     difference.tensor, difference.element, difference.value_a, difference.value_b);
}

void print(const WriteComparison& comparison, const std::string& a, const std::string& b,
           bool json) {
  const std::optional<WriteDifference>& first = comparison.first();
  if (json) {
    nlohmann::ordered_json kinds = nlohmann::ordered_json::object();
    for (const auto& [kind, largest] : comparison.largest_by_kind()) kinds[kind] = json_of(largest);
    const nlohmann::ordered_json document{
        {"a", a},
        {"b", b},
        {"compared", comparison.compared()},
        {"only_a", comparison.only_a()},
        {"only_b", comparison.only_b()},
        {"zeros", comparison.zeros()},
        {"first_difference", first ? json_of(*first) : nlohmann::ordered_json()},
        {"largest", kinds}};
    base::print("{}\n", document.dump());
    return;
  }
  base::print(
      "{} against {}: {} writes compared ({} of zeros alone), {} that only {} has, {} that only "
      "{} has\nlargest relative difference of each kind of operation:\n",
      a, b, comparison.compared(), comparison.zeros(), comparison.only_a(), a, comparison.only_b(),
      b);
  for (const auto& [kind, largest] : comparison.largest_by_kind())
    base::print("  {:<28} {}\n", kind, line_of(largest));
  if (first)
    base::print("first that differs: {} ({})\n", line_of(*first), first->kind);
  else
    base::print("none differs\n");
}

void refuse_unfilled(const formats::Recipe& recipe, const models::ModelConfig& model) {
  if (model.has_encoder())
    base::throw_user_error("compare makes no batches for encoder-decoders; give another model");
  if (recipe.objective != formats::Objective::next_token)
    recipe.fail("objective", "is one that compare makes no batches for; leave it out");
  if (recipe.devices > 1) recipe.fail("devices", "is 1 here: compare runs one rank");
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

const Program* find_named(const plan::Job& job, const std::string& name) {
  const auto found = std::ranges::find(job.programs, name, &Program::name);
  return found == job.programs.end() ? nullptr : &*found;
}

}  // namespace

int compare_backends(const formats::Recipe& recipe, const std::string& a, const std::string& b,
                     bool json) {
  recipe.require("model");
  const models::ModelSource model = models::find_model(recipe.model);
  refuse_unfilled(recipe, model.config);
  // Both jobs use the plan of `a` for the rows of a step and for what layers recompute.
  RecipeStep step_a = step_on(recipe, a);
  const formats::Recipe settled = step_a.recipe;
  RecipeStep step_b = step_on(settled, b);
  step_b.step.spec = step_a.step.spec;
  WriteComparison comparison;
  std::optional<ComparedJob> job_b(std::in_place, settled, model, std::move(step_b));
  const ComparedJob job_a(settled, model, std::move(step_a));
  for (const Program& program : job_a.job().programs)
    if (const Program* other = find_named(job_b->job(), program.name))
      comparison.expect(program, *other);
  job_b->run([&](const Program& program, size_t, const Tensor& tensor, Written written) {
    comparison.keep(program.name, tensor.name, std::move(written));
  });
  job_b.reset();
  job_a.run(
      [&](const Program& program, size_t index, const Tensor& tensor, const Written& written) {
        comparison.compare(program, index, tensor.name, written);
      });
  print(comparison, a, b, json);
  if (comparison.compared() == 0)
    base::throw_user_error("the programs of {} and {} write no tensor of the same name", a, b);
  return comparison.first().has_value() ? 1 : 0;
}

}  // namespace snug::bench
