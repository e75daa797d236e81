// A tiny job with its executor, on the backend that the test binary is built for: what tests of
// loading and saving share. The host may not reach the device, so all goes through copies.
#pragma once

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "formats/recipe/choices.h"
#include "methods/update.h"
#include "models/config/config.h"
#include "models/config/rope.h"
#include "models/weights.h"
#include "passes/lowering/quantize.h"
#include "plan/job/job.h"
#include "program/ir/tensor_names.h"
#include "runtime/conversion/convert.h"
#include "runtime/execution/executor.h"

namespace snug::testing {

inline models::ModelConfig tiny_model() {
  models::ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = 12;
  config.num_layers = 2;
  config.num_heads = 3;
  config.num_kv_heads = 1;
  config.head_dim = 4;
  config.intermediate_size = 20;
  config.vocab_size = 29;
  config.max_position = 64;
  config.file_width = 4;
  return config;
}

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path("tests/goldens") / name;
}

inline models::ModelConfig golden_config(const std::string& name) {
  return models::find_model((golden(name) / "model").string()).config;
}

struct TinyOptions {
  models::ModelConfig model = tiny_model();
  formats::Method method = formats::Method::full;
  program::DType compute = program::DType::f32;
  methods::OptimizerKind optimizer = methods::OptimizerKind::adamw;
  std::vector<std::string> frozen{};  // names of weights
  int64_t lora_r = 4;
  std::vector<std::string> target_modules{"all-linear"};
  std::vector<std::string> modules_to_save{};
  bool dora = false;
  methods::PromptOptions prompt{};
  std::optional<passes::QuantizeOptions> quantization{};  // of the frozen linears
  const char* backend = SNUG_TEST_BACKEND;
  int threads = 0;                     // of it
  std::optional<int64_t> init_seed{};  // weights are made; nothing: read
  bool adapter_in_files = false;
  plan::AdapterWidths adapter_widths{};  // of those files
  int64_t adapter_seed = 0;              // where it is made
  passes::ShardingOptions ranks{};
  const comm::Mesh* mesh = nullptr;  // of those ranks
};

inline plan::TrainingSpec spec_of(const TinyOptions& options) {
  plan::TrainingSpec spec;
  spec.model = options.model;
  spec.method = options.method;
  spec.lora.r = options.lora_r;
  spec.lora.alpha = 2.0 * static_cast<double>(options.lora_r);
  spec.lora.target_modules = options.target_modules;
  spec.lora.modules_to_save = options.modules_to_save;
  spec.lora.dora = options.dora;
  spec.prompt = options.prompt;
  spec.quantization = options.quantization;
  spec.update.optimizer = options.optimizer;
  spec.frozen = options.frozen;
  spec.compute = options.compute;
  spec.rows = 1;
  spec.row_tokens = 8;
  spec.row_segments = 1;
  spec.init_seed = options.init_seed;
  spec.adapter_in_files = options.adapter_in_files;
  spec.adapter_widths = options.adapter_widths;
  spec.lora.seed = options.adapter_seed;
  spec.ranks = options.ranks;
  return spec;
}

class TinyRun {
 public:
  explicit TinyRun(const TinyOptions& options = {})
      : spec_(spec_of(options)),
        backend_(backends::open_backend(
            options.backend,
            {.threads = options.threads, .chooses_by_timing = false, .mesh = options.mesh})),
        job_(plan::plan_training(spec_, *backend_)),
        executor_(job_, *backend_, options.mesh) {}

  runtime::Executor& executor() { return executor_; }
  const plan::TrainingSpec& spec() const { return spec_; }
  const plan::Job& job() const { return job_; }

  std::string bytes(const backends::Buffer& buffer) const {
    std::string bytes(static_cast<size_t>(buffer.bytes()), '\0');
    backend_->copy(bytes.data(), buffer.data, buffer.bytes());
    return bytes;
  }
  std::string bytes(const std::string& name) const { return bytes(executor_.tensor(name)); }
  std::vector<float> floats(const backends::Buffer& buffer) const {
    const std::string stored = bytes(buffer);
    std::vector<float> values(static_cast<size_t>(buffer.elements()));
    runtime::convert(buffer.dtype, stored.data(), program::DType::f32, values.data(),
                     buffer.elements());
    return values;
  }
  std::vector<float> floats(const std::string& name) const {
    return floats(executor_.tensor(name));
  }
  void set(const backends::Buffer& buffer, int64_t element, float value) {
    std::byte stored[sizeof(float)];
    runtime::convert(program::DType::f32, &value, buffer.dtype, stored, 1);
    const int64_t width = base::size_of(buffer.dtype);
    backend_->copy(buffer.data + element * width, stored, width);
  }
  // Names of what training changes: trainables, masters, moments.
  std::vector<std::string> state_names() const {
    std::vector<std::string> names;
    for (const program::Tensor& tensor : job_.trainables) names.push_back(tensor.name);
    for (const auto& states : job_.states)
      for (const program::OptimizerState& state : states) names.push_back(state.tensor.name);
    return names;
  }
  // Every byte of these tensors becomes a pattern of the name and the salt.
  void scribble(const std::vector<std::string>& names, unsigned salt) {
    for (const std::string& name : names) {
      const backends::Buffer& buffer = executor_.tensor(name);
      uint64_t state = std::hash<std::string>{}(name) + salt;
      std::string bytes(static_cast<size_t>(buffer.bytes()), '\0');
      for (char& byte : bytes) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        byte = static_cast<char>(state >> 56);
      }
      backend_->copy(buffer.data, bytes.data(), buffer.bytes());
    }
  }

 private:
  plan::TrainingSpec spec_;
  std::unique_ptr<backends::Backend> backend_;
  plan::Job job_;
  runtime::Executor executor_;
};

}  // namespace snug::testing
