#include "train/micro_batch.h"

#include <algorithm>
#include <string>

#include "methods/objective.h"
#include "program/ir/result_names.h"
#include "program/ir/tensor_names.h"
#include "program/kinds/loss/grpo.h"

namespace snug::train {

void set_inputs(runtime::Executor& executor, const methods::RowCounts& counts) {
  const methods::Objective& objective = methods::objective_of(executor.job().objective.kind);
  for (const methods::StepInput& input : objective.inputs)
    executor.set_input(input.name, input.value(counts));
  if (executor.has(program::kInverseDocumentTokensName))
    executor.set_input(program::kInverseDocumentTokensName, methods::inverse(counts.tokens));
}

void run_batch(runtime::Executor& executor, program::ProgramName program) {
  if (executor.job().objective.reference == methods::ReferenceModel::adapter_off)
    executor.run(program::ProgramName::reference);
  executor.run(program);
}

std::optional<double> read_dropout(runtime::Executor& executor) {
  const std::string name = program::host_name(program::kDropoutMeasuresName);
  if (!executor.has(name)) return std::nullopt;
  executor.await_results();
  const auto* const measures = executor.tensor(name).as<const float>();
  return measures[program::kRewardedMeasureCount - 1];
}

void read_measures(runtime::Executor& executor, std::span<float> measures) {
  if (measures.empty()) return;
  const backends::Buffer& values = executor.tensor(program::host_name(program::kMeasuresName));
  executor.await_results();
  std::copy_n(values.as<const float>(), measures.size(), measures.begin());
}

}  // namespace snug::train
