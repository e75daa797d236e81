// A golden case (tests/goldens/README.md) loaded into an executor: what the oracle tests share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "formats/folder/safetensors_file.h"
#include "plan/job/job.h"
#include "runtime/execution/executor.h"

namespace snug::test {

// The backends that this binary's tests run on: golden_backends.cpp, or
// golden_backends_cuda.cpp.
std::vector<std::string> golden_backends();

// False for the CUDA backend where there is no card: its tests are skipped.
bool has_device(const std::string& backend);

inline std::string golden_folder(const std::string& name) { return "tests/goldens/" + name; }

// The values of a tensor of a golden file.
std::vector<float> floats(const formats::SafetensorsFile& file, const std::string& name);
std::vector<int32_t> integers(const formats::SafetensorsFile& file, const std::string& name);

// An f32 tensor as the device holds it.
std::vector<float> values_of(runtime::Executor& executor, const std::string& tensor);

// ||a - b|| / ||b||.
double relative_error(const std::vector<float>& a, const std::vector<float>& b);

// A model folder, planned and loaded.
class LoadedCase {
 public:
  // `adapter` empty: none. The spec's model is filled in here, except for the loss that balances
  // experts.
  LoadedCase(const std::string& backend, const std::string& model_folder,
             const std::string& adapter, plan::TrainingSpec spec);

  runtime::Executor& executor() { return *executor_; }
  const plan::TrainingSpec& spec() const { return spec_; }

  // One micro-batch into the batch tensors of a program; rows of row_tokens, one document each
  // unless `bounds` (pairs of begin, end) and `positions` say otherwise.
  void put_batch(program::ProgramName program, const std::vector<int32_t>& ids,
                 std::vector<int32_t> targets, std::vector<int32_t> bounds = {},
                 std::vector<int32_t> positions = {});
  // What an encoder reads of the same micro-batch, with one document in each row unless `bounds`
  // say otherwise.
  void put_encoder_batch(program::ProgramName program, const std::vector<int32_t>& ids,
                         std::vector<int32_t> bounds = {});

 private:
  std::vector<int32_t> whole_rows(int64_t row_tokens) const;

  plan::TrainingSpec spec_;
  std::unique_ptr<backends::Backend> backend_;
  plan::Job job_;
  std::unique_ptr<runtime::Executor> executor_;
};

// Targets for a golden with logits: of its trained tokens half have the one that is likeliest by
// those, and half another one. Where two are nearly as likely there is none.
struct HalfHit {
  std::vector<int32_t> targets;
  int64_t hits = 0;
};
HalfHit half_hit(const formats::SafetensorsFile& golden);

int64_t count_trained(const std::vector<int32_t>& targets);

}  // namespace snug::test
