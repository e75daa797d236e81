// A whole step of a job that trains an adapter: the batch and the adapter of a folder of
// tests/goldens, on the cpu backend.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "golden_case.h"

namespace snug::test {

class AdapterStep {
 public:
  static constexpr int64_t kRowTokens = 33;

  // `golden`: the folder of the batch and the adapter; `model`: that of the model.
  AdapterStep(const std::string& golden, const std::string& model, plan::TrainingSpec spec)
      : golden_(golden_folder(golden) + "/golden.safetensors"),
        loaded_("cpu", golden_folder(model + "/model"), golden_folder(golden + "/adapter"),
                std::move(spec)) {}

  // Of all micro-batches, each of its rows.
  float loss() {
    const auto ids = integers(golden_, "ids");
    const auto targets = integers(golden_, "targets");
    const plan::TrainingSpec& spec = loaded_.spec();
    executor().set_input("inverse_tokens", 1.0F / static_cast<float>(count_trained(targets)));
    for (int64_t micro = 0; micro < spec.accumulation; ++micro) {
      const auto program =
          micro == 0 ? program::ProgramName::micro_first : program::ProgramName::micro_next;
      const auto begin = micro * spec.rows * kRowTokens;
      const auto end = begin + spec.rows * kRowTokens;
      loaded_.put_batch(program, {ids.begin() + begin, ids.begin() + end},
                        {targets.begin() + begin, targets.begin() + end});
      if (executor().has("random"))
        executor().set_input("random",
                             std::array<int32_t, 2>{3, static_cast<int32_t>(micro * spec.rows)});
      executor().run(program);
    }
    return values_of(executor(), "loss")[0];
  }

  std::vector<std::vector<float>> gradients() {
    loss();
    std::vector<std::vector<float>> found;
    for (const auto& trainable : executor().job().trainables)
      found.push_back(values_of(executor(), "gradient." + trainable.name));
    return found;
  }

  runtime::Executor& executor() { return loaded_.executor(); }
  float* values(const std::string& tensor) { return executor().tensor(tensor).as<float>(); }
  const formats::SafetensorsFile& golden() const { return golden_; }

 private:
  formats::SafetensorsFile golden_;
  LoadedCase loaded_;
};

}  // namespace snug::test
