#include "golden_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/open_cuda.h"
#include "formats/adapter/adapter_config.h"
#include "methods/method.h"
#include "models/config/config.h"
#include "runtime/loading/load_weights.h"
#include "runtime/saving/adapter.h"

namespace snug::test {
namespace {

template <typename T>
std::vector<T> read(const formats::SafetensorsFile& file, const std::string& name) {
  const auto& tensor = file.at(name);
  std::vector<T> values(static_cast<size_t>(tensor.bytes()) / sizeof(T));
  file.read(tensor, values.data());
  return values;
}

void put(runtime::Executor& executor, program::ProgramName program, const std::string& name,
         std::vector<int32_t> values, int32_t filler) {
  const auto& buffer = executor.tensor(program, name);
  values.resize(static_cast<size_t>(buffer.elements()), filler);
  std::memcpy(buffer.data, values.data(), static_cast<size_t>(buffer.bytes()));
}

}  // namespace

bool has_device(const std::string& backend) {
  return backend != "cuda" || backends::has_cuda_device();
}

std::vector<float> floats(const formats::SafetensorsFile& file, const std::string& name) {
  return read<float>(file, name);
}

std::vector<int32_t> integers(const formats::SafetensorsFile& file, const std::string& name) {
  return read<int32_t>(file, name);
}

std::vector<float> values_of(runtime::Executor& executor, const std::string& tensor) {
  const backends::Buffer& buffer = executor.tensor(tensor);
  std::vector<float> values(static_cast<size_t>(buffer.elements()));
  executor.backend().copy(values.data(), buffer.data, buffer.bytes());
  executor.backend().synchronise();
  return values;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double delta = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += delta * delta;
    size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  if (size == 0) return std::sqrt(difference);
  return std::sqrt(difference / size);
}

LoadedCase::LoadedCase(const std::string& backend, const std::string& model_folder,
                       const std::string& adapter, plan::TrainingSpec spec)
    : spec_(std::move(spec)) {
  const auto source = models::find_model(model_folder);
  const models::ModelConfig given = std::exchange(spec_.model, source.config);
  if (given.router_loss) {
    spec_.model.router_loss = true;
    spec_.model.router_coefficient = given.router_coefficient;
  }
  spec_.verify = true;
  if (!adapter.empty()) {
    const auto config = formats::read_adapter_config(adapter);
    const methods::Method& method = methods::method_of(config);
    const methods::MethodOptions options = method.options(config);
    spec_.method = method.kind;
    const methods::LoraOptions given_lora = std::exchange(spec_.lora, options.lora);
    spec_.lora.dropout = given_lora.dropout;
    spec_.lora.row_tokens = given_lora.row_tokens;
    spec_.lora.seed = given_lora.seed;
    spec_.prompt = options.prompt;
    spec_.adapter_in_files = true;
  }
  // Two runs of a deterministic job take the same algorithms.
  backend_ =
      backends::open_backend(backend, {.threads = 1, .chooses_by_timing = !spec_.deterministic});
  job_ = plan::plan_training(spec_, *backend_);
  executor_ = std::make_unique<runtime::Executor>(job_, *backend_);
  runtime::load_weights(source.folder, source.config, *executor_);
  if (!adapter.empty()) runtime::load_adapter(adapter, spec_.method_options(), *executor_);
  executor_->run(program::ProgramName::prepare);
}

void LoadedCase::put_batch(program::ProgramName program, const std::vector<int32_t>& ids,
                           std::vector<int32_t> targets, std::vector<int32_t> bounds,
                           std::vector<int32_t> positions) {
  for (int32_t& target : targets) target = std::max(target, -1);
  const auto row = static_cast<int32_t>(spec_.row_tokens.decoder());
  if (bounds.empty()) bounds = whole_rows(row);
  if (positions.empty())
    for (size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<int32_t>(i) % row);
  executor_->await_inputs(program);
  put(*executor_, program, "host.tokens", ids, 0);
  put(*executor_, program, "host.targets", std::move(targets), -1);
  if (executor_->has(program, "host.positions"))  // with ALiBi nothing reads them
    put(*executor_, program, "host.positions", std::move(positions), 0);
  put(*executor_, program, "host.query_bounds", std::move(bounds), 0);
}

void LoadedCase::put_encoder_batch(program::ProgramName program, const std::vector<int32_t>& ids,
                                   std::vector<int32_t> bounds) {
  if (bounds.empty()) bounds = whole_rows(spec_.row_tokens[base::TokenStream::encoder]);
  put(*executor_, program, "host.encoder.tokens", ids, 0);
  if (executor_->has(program, "host.encoder.positions")) {
    const auto row = static_cast<int32_t>(spec_.row_tokens[base::TokenStream::encoder]);
    std::vector<int32_t> positions;
    for (size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<int32_t>(i) % row);
    put(*executor_, program, "host.encoder.positions", std::move(positions), 0);
  }
  put(*executor_, program, "host.encoder.query_bounds", std::move(bounds), 0);
}

std::vector<int32_t> LoadedCase::whole_rows(int64_t row_tokens) const {
  const auto row = static_cast<int32_t>(row_tokens);
  std::vector<int32_t> bounds;
  for (int32_t r = 0; r < static_cast<int32_t>(spec_.rows); ++r)
    bounds.insert(bounds.end(), {r * row, (r + 1) * row});
  return bounds;
}

HalfHit half_hit(const formats::SafetensorsFile& golden) {
  constexpr float kNear = 1e-4F;
  HalfHit half{.targets = integers(golden, "targets")};
  std::vector<float> logits = floats(golden, "logits");
  const size_t vocab = logits.size() / half.targets.size();
  bool is_hit = false;
  for (size_t token = 0; token < half.targets.size(); ++token) {
    if (half.targets[token] < 0) continue;
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(token * vocab);
    const auto end = row + static_cast<std::ptrdiff_t>(vocab);
    const auto largest = std::max_element(row, end);
    const float value = *largest;
    const auto likeliest = static_cast<size_t>(largest - row);
    *largest = -std::numeric_limits<float>::infinity();
    const bool is_near = value - *std::max_element(row, end) < kNear;
    is_hit = !is_hit;
    half.targets[token] =
        is_near ? -100 : static_cast<int32_t>(is_hit ? likeliest : (likeliest + 1) % vocab);
    half.hits += is_hit && !is_near ? 1 : 0;
  }
  return half;
}

int64_t count_trained(const std::vector<int32_t>& targets) {
  return std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; });
}

}  // namespace snug::test
