#include "bench/operation_timer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "base/median.h"
#include "plan/job/job.h"
#include "program/ir/tensor_names.h"
#include "runtime/execution/executor.h"
#include "runtime/execution/stopwatch.h"
#include "runtime/loading/random_weights.h"
#include "runtime/storage/host_window.h"

namespace snug::bench {
namespace {

using backends::Buffer;
using program::host_name;
using program::Program;
using program::ProgramName;
using program::Role;
using program::Tensor;
using runtime::Stopwatch;

// Values like those of training, since hardware can multiply zeros faster and denormals slower:
// about normal(0, 0.02) in matrices, ones in norm weights, random codes. The scales of codes stay
// 0.
void fill_with_noise(const Buffer& buffer, runtime::Executor& executor) {
  const bool is_matrix = buffer.shape.rank() > 1;
  if (buffer.dtype != base::DType::u8)
    return is_matrix ? runtime::fill_uniform({buffer, "noise"}, 0, 0.035F, executor)
                     : runtime::fill_constant(buffer, 1.0F, executor);
  uint32_t state = 0x9E3779B9U;
  runtime::write_pieces(buffer, executor, program::ProgramName::save,
                        [&](const Buffer& piece, int64_t) {
                          for (int64_t i = 0; i < piece.elements(); ++i) {
                            state = state * 1664525U + 1013904223U;
                            piece.as<uint8_t>()[i] = static_cast<uint8_t>(state >> 24);
                          }
                        });
}

void fill_weights(const Program& program, runtime::Executor& executor,
                  std::unordered_set<std::string>& filled) {
  for (const Tensor& tensor : program.tensors) {
    const bool holds_values =
        tensor.role == Role::weight || tensor.role == Role::adapter || tensor.role == Role::master;
    const bool lasts = tensor.lifetime == program::Lifetime::run;
    if (holds_values && lasts && filled.insert(tensor.name).second)
      fill_with_noise(executor.tensor(tensor.name), executor);
  }
}

void fill_integers(const Buffer& buffer, int64_t modulus) {
  uint32_t state = 12345;
  for (int64_t i = 0; i < buffer.elements(); ++i) {
    state = state * 1664525U + 1013904223U;
    buffer.as<int32_t>()[i] = static_cast<int32_t>((state >> 4) % static_cast<uint32_t>(modulus));
  }
}

// Fills a batch with random tokens in segments of equal length; all tokens have a loss.
void fill_batch(const CalibrationStep& step, ProgramName program, runtime::Executor& executor) {
  executor.await_inputs(program);
  fill_integers(executor.tensor(program, host_name(program::kTokensName)),
                step.spec.model.vocab_size);
  fill_integers(executor.tensor(program, host_name(program::kTargetsName)),
                step.spec.model.vocab_size);
  if (const std::string name = host_name(program::kPositionsName); executor.has(program, name)) {
    const Buffer& positions = executor.tensor(program, name);
    for (int64_t i = 0; i < positions.elements(); ++i)
      positions.as<int32_t>()[i] = static_cast<int32_t>(i % step.segment_tokens);
  }
  const Buffer& bounds = executor.tensor(program, host_name(program::kQueryBoundsName));
  for (int64_t s = 0; s < bounds.elements() / 2; ++s) {
    bounds.as<int32_t>()[2 * s] = static_cast<int32_t>(s * step.segment_tokens);
    bounds.as<int32_t>()[2 * s + 1] = static_cast<int32_t>((s + 1) * step.segment_tokens);
  }
}

void set_inputs(const CalibrationStep& step, float learning_rate, runtime::Executor& executor) {
  const auto tokens = static_cast<float>(step.spec.rows * step.spec.row_tokens.decoder());
  executor.set_input(program::kInverseTokensName, 1.0F / tokens);
  if (executor.has(program::kInverseDocumentTokensName))
    executor.set_input(program::kInverseDocumentTokensName, 1.0F / tokens);
  executor.set_input(program::kLearningRateName, learning_rate);
  if (executor.has(program::kStepName)) executor.set_input(program::kStepName, int32_t{1});
  if (executor.has(program::kRandomName))
    executor.set_input(program::kRandomName, std::array<int32_t, 2>{1, 0});
}

// One program of a step: its operations with their keys, and a stopwatch.
struct TimedProgram {
  ProgramName name;
  std::vector<plan::RateKey> keys;
  Stopwatch stopwatch;
};

std::vector<TimedProgram> programs_of(const std::vector<plan::StepProgram>& steps,
                                      runtime::Executor& executor) {
  std::vector<TimedProgram> programs;
  for (const plan::StepProgram& step : steps) {
    const Program& program = *step.program;
    const program::BatchBounds& bounds = executor.bounds(step.name);
    TimedProgram timed{step.name, {}, Stopwatch(program.operations.size(), executor.backend())};
    for (const program::Operation& operation : program.operations)
      timed.keys.push_back(plan::rate_key({program, operation}, bounds));
    programs.push_back(std::move(timed));
  }
  return programs;
}

void run_step(std::vector<TimedProgram>& programs, runtime::Executor& executor) {
  for (TimedProgram& timed : programs) {
    executor.set_observer(&timed.stopwatch);
    executor.run(timed.name);
  }
  executor.set_observer(nullptr);
  executor.backend().synchronise();
}

// The seconds of each operation in the last run, program after program.
std::vector<double> seconds_of(std::vector<TimedProgram>& programs) {
  std::vector<double> seconds;
  for (TimedProgram& timed : programs)
    for (size_t i = 0; i < timed.keys.size(); ++i) seconds.push_back(timed.stopwatch.seconds(i));
  return seconds;
}

void add_times(const std::vector<TimedProgram>& programs, const std::vector<double>& seconds,
               OperationTimes& times) {
  size_t next = 0;
  for (const TimedProgram& timed : programs)
    for (const plan::RateKey& key : timed.keys) times.add(key, seconds[next++]);
}

}  // namespace

void OperationTimes::add(const plan::RateKey& key, double seconds) {
  Measured& measured =
      measured_.try_emplace({key.form.name(), key.shape}, Measured{key, {}, 0, 0}).first->second;
  const double scale = key.work > 0 ? measured.key.work / key.work : 1.0;
  measured.seconds.push_back(seconds * scale);
  measured.all_seconds += seconds;
  measured.all_work += key.work;
}

std::vector<OperationTimes::Total> OperationTimes::totals() const {
  std::vector<Total> totals;
  for (const auto& [name_and_shape, measured] : measured_)
    totals.push_back({.key = measured.key,
                      .count = static_cast<int64_t>(measured.seconds.size()),
                      .seconds = measured.all_seconds,
                      .work = measured.all_work});
  return totals;
}

std::vector<plan::RateSample> OperationTimes::samples() const {
  std::vector<plan::RateSample> samples;
  for (const auto& [name_and_shape, measured] : measured_)
    samples.push_back({.name = measured.key.form.name(),
                       .shape = measured.key.shape,
                       .unit = measured.key.unit,
                       .work = std::max(1.0, measured.key.work),
                       .seconds = base::median(measured.seconds),
                       .multiplies = measured.key.multiplies});
  return samples;
}

void fill_step(const CalibrationStep& step, const plan::Job& job, runtime::Executor& executor,
               float learning_rate) {
  for (const plan::StepProgram& each : plan::step_programs(job, step.spec.accumulation))
    if (each.name != ProgramName::update) fill_batch(step, each.name, executor);
  set_inputs(step, learning_rate, executor);
}

FilledStep::FilledStep(const CalibrationStep& step, backends::Backend& backend)
    : job_(plan::plan_training(step.spec, backend)), executor_(job_, backend) {
  std::unordered_set<std::string> filled;
  for (const Program& program : job_.programs) fill_weights(program, executor_, filled);
  // The learning rate is so small that no gradient changes the weights.
  fill_step(step, job_, executor_, 1e-12F);
  executor_.run(ProgramName::prepare);
}

std::vector<double> launch_seconds(const plan::StepProgram& step, runtime::Executor& executor) {
  const Program& program = *step.program;
  Stopwatch stopwatch(program.operations.size(), executor.backend(), Stopwatch::Of::launches);
  executor.set_observer(&stopwatch);
  executor.run(step.name);
  executor.set_observer(nullptr);
  std::vector<double> seconds;
  for (size_t i = 0; i < program.operations.size(); ++i)
    seconds.push_back(program.operations[i].joined ? 0 : stopwatch.seconds(i));
  return seconds;
}

StepTiming time_operations(const CalibrationStep& step, backends::Backend& backend,
                           OperationTimes& times, const ReadTimes& read_times) {
  FilledStep filled(step, backend);
  runtime::Executor& executor = filled.executor();
  std::vector<TimedProgram> programs =
      programs_of(plan::step_programs(filled.job(), step.spec.accumulation), executor);
  run_step(programs, executor);
  std::vector<std::vector<double>> of_operations;
  const std::vector<Round> rounds = time_rounds(
      {.least_rounds = step.least_repeats, .least_seconds = step.least_seconds},
      [&] {
        run_step(programs, executor);
        of_operations.push_back(seconds_of(programs));
      },
      read_times);
  std::vector<double> seconds;
  for (const size_t round : rounds_that_count(rounds)) {
    add_times(programs, of_operations[round], times);
    seconds.push_back(rounds[round].seconds);
  }
  return {.repeats = static_cast<int>(seconds.size()),
          .median_seconds = base::median(seconds),
          .least_seconds = *std::ranges::min_element(seconds),
          .is_disturbed = std::ranges::all_of(rounds, &Round::is_disturbed)};
}

}  // namespace snug::bench
