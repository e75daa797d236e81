// That what runs is what the program says, of every family's tiny model and every form of job. The
// cases cover each pair of a model, a method with its optimizer, what is made again, a batch and so
// on; "make test-long" has all of them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "every_trace.h"
#include "models/families/families.h"
#include "models/weights.h"
#include "tiny_run.h"
#include "train/pairwise.h"

namespace snug::runtime {
namespace {

using methods::OptimizerKind;
using passes::RecomputeMode;
using plan::TrainingSpec;
using program::DType;

struct Form {
  std::string name;
  std::function<void(TrainingSpec&)> set;
};

void adapt(TrainingSpec& spec) {
  spec.method = formats::Method::lora;
  spec.lora.r = 4;
  spec.lora.dropout = 0.1;
  spec.lora.target_modules = {"all-linear"};
}

void add_prompts(TrainingSpec& spec) {
  spec.method = formats::Method::adapter;
  spec.prompt = {.tokens = 3, .layers = 1};
}

// Linears of experts have no biases and scales, nor have heads with a bias of their own and what
// has an encoder.
void adjust_linears(TrainingSpec& spec) {
  add_prompts(spec);
  const models::ModelConfig& model = spec.model;
  if (model.num_experts > 0 || model.has_encoder() || models::stack_of(model).head_bias) return;
  spec.method = formats::Method::adapter_v2;
  spec.prompt.adjusts_linears = true;
}

void compare_pairs(TrainingSpec& spec) {
  adapt(spec);
  spec.objective = {.kind = methods::ObjectiveKind::dpo,
                    .reference = methods::ReferenceModel::adapter_off};
}

void prefer_by_odds(TrainingSpec& spec) {
  adapt(spec);
  spec.objective = {.kind = methods::ObjectiveKind::orpo};
}

void prefer_by_odds_whole(TrainingSpec& spec) {
  spec.method = formats::Method::full;
  spec.objective = {.kind = methods::ObjectiveKind::orpo};
}

void adapt_embedding(TrainingSpec& spec) {
  adapt(spec);
  const models::Stack stack = models::stack_of(spec.model);
  const std::string table = models::embedding_weight(stack);
  spec.lora.target_modules = {table.substr(0, table.rfind('.'))};
}

std::vector<Form> methods_of_jobs() {
  std::vector<Form> forms{{"full", [](TrainingSpec& spec) { spec.method = formats::Method::full; }},
                          {"lora", adapt},
                          {"adapter", add_prompts},
                          {"adapter_v2", adjust_linears},
                          {"dpo", compare_pairs},
                          {"orpo", prefer_by_odds},
                          {"orpo, full", prefer_by_odds_whole},
                          {"lora, embedding", adapt_embedding}};
  for (const bool nested : {false, true})
    forms.push_back({nested ? "qlora, nested" : "qlora", [nested](TrainingSpec& spec) {
                       adapt(spec);
                       spec.quantization = passes::QuantizeOptions{.nested = nested, .kept = {}};
                     }});
  return forms;
}

std::vector<Form> optimizers() {
  std::vector<Form> forms;
  for (const auto& word : words_of(OptimizerKind{}))
    forms.push_back({std::string(word.text), [kind = word.value](TrainingSpec& spec) {
                       spec.update.optimizer = kind;
                       if (methods::optimizer_of(kind).needs_bf16)
                         spec.update.gradient = DType::bf16;
                     }});
  return forms;
}

std::vector<Form> recomputed() {
  std::vector<Form> forms;
  for (const RecomputeMode mode : passes::kRecomputeModes)
    forms.push_back(
        {std::string(base::word_of(mode)), [mode](TrainingSpec& spec) { spec.recompute = mode; }});
  return forms;
}

std::vector<Form> batches() {
  return {{"one row", [](TrainingSpec&) {}},
          {"two micro-batches", [](TrainingSpec& spec) { spec.accumulation = 2; }},
          {"packed, evaluated",
           [](TrainingSpec& spec) {
             testing::pack_rows(spec);
             spec.evaluate = true;
           }},
          {"packed micro-batches", [](TrainingSpec& spec) {
             testing::pack_rows(spec);
             spec.accumulation = 3;
           }}};
}

std::vector<Form> places() {
  return {{"on the device", [](TrainingSpec&) {}},
          {"activations wait", [](TrainingSpec& spec) { spec.activation_offloading = true; }},
          {"streamed",
           [](TrainingSpec& spec) {
             spec.streaming = {.params = true, .optimizer = true, .threshold_bytes = 0};
           }},
          {"updated in the backward pass", [](TrainingSpec& spec) {
             spec.update_in_backward = true;
             spec.update.max_grad_norm = 0;
           }}};
}

// Of each family the first folder of tests/goldens that has its config.json.
std::map<std::string, models::ModelConfig> tiny_models() {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator("tests/goldens"))
    folders.push_back(entry.path() / "model");
  std::ranges::sort(folders);
  std::map<std::string, models::ModelConfig> found;
  for (const std::filesystem::path& folder : folders) {
    if (!std::filesystem::exists(folder / "config.json")) continue;
    const models::ModelConfig model = models::find_model(folder.string()).config;
    found.try_emplace(model.model_type, model);
  }
  // It differs from this family in its type alone.
  models::ModelConfig unified = found.at("gemma4_text");
  unified.model_type = "gemma4_unified_text";
  found.try_emplace(unified.model_type, unified);
  return found;
}

// Jobs of one backend, by a value of each dimension.
class Jobs {
 public:
  enum Dimension : uint8_t {
    kModel,
    kType,
    kMethod,
    kOptimizer,
    kRecompute,
    kBatch,
    kPlace,
    kDimensions
  };

  explicit Jobs(const std::string& backend)
      : backend_(backends::open_backend(backend, {.threads = 2})) {
    for (const auto& [name, model] : tiny_models()) models_.push_back(model);
    types_ = {DType::f32};
    if (!testing::lacks_bf16(backend)) types_.insert(types_.begin(), DType::bf16);
    types_.push_back(DType::f16);
    forms_[kMethod] = methods_of_jobs();
    forms_[kOptimizer] = optimizers();
    forms_[kRecompute] = recomputed();
    forms_[kBatch] = batches();
    forms_[kPlace] = places();
  }

  std::vector<size_t> sizes() const {
    std::vector<size_t> sizes{models_.size(), types_.size()};
    for (size_t d = kMethod; d < kDimensions; ++d) sizes.push_back(forms_[d].size());
    return sizes;
  }

  // What no job is: an optimizer of bf16 weights in fp32, a wait for what is never made again,
  // steps in the backward pass of several micro-batches, preferences of an encoder-decoder, or an
  // adapter of the embedding that its two halves share.
  bool is_possible(const testing::Choice& choice) const {
    const TrainingSpec spec = spec_of(choice);
    const bool needs_bf16 = methods::optimizer_of(spec.update.optimizer).needs_bf16;
    if (needs_bf16 && spec.compute != DType::bf16) return false;
    if (spec.update_in_backward && spec.update.loss_scale) return false;
    if (spec.model.has_encoder() && spec.objective.kind != methods::ObjectiveKind::next_token)
      return false;
    if (spec.model.has_encoder() && spec.lora.target_modules.front() != "all-linear") return false;
    if (spec.activation_offloading && !passes::keeps_checkpoints(spec.recompute.of_layer(0)))
      return false;
    return !spec.update_in_backward || spec.accumulation == 1;
  }

  // Choices that cover each pair of values that a job may have.
  std::vector<testing::Choice> in_pairs(uint32_t seed) const {
    using Pair = testing::PairwiseCases::Pair;
    const std::vector<size_t> all = sizes();
    std::set<Pair> excluded;
    for (const auto& [a, b] : {std::pair{kModel, kMethod},
                               {kType, kOptimizer},
                               {kType, kPlace},
                               {kRecompute, kPlace},
                               {kBatch, kPlace}})
      for (size_t i = 0; i < all[a]; ++i)
        for (size_t j = 0; j < all[b]; ++j) {
          testing::Choice choice(all.size(), 0);
          choice[kRecompute] = all[kRecompute] - 1;  // which keeps least
          choice[a] = i;
          choice[b] = j;
          if (!is_possible(choice)) excluded.insert({a, i, b, j});
        }
    return testing::PairwiseCases(all, seed,
                                  [&](const Pair& pair) { return excluded.contains(pair); })
        .take();
  }

  void expect_traces_equal(const testing::Choice& choice) const {
    const TrainingSpec spec = spec_of(choice);
    std::string name = fmt::format("{}: {} {}", backend_->name(), spec.model.model_type,
                                   base::name_of(spec.compute));
    for (size_t d = kMethod; d < kDimensions; ++d) name += ", " + forms_[d][choice[d]].name;
    SCOPED_TRACE(name);
    testing::expect_traces_equal(plan::plan_training(spec, *backend_), *backend_);
  }

 private:
  TrainingSpec spec_of(const testing::Choice& choice) const {
    TrainingSpec spec = testing::spec_of({});
    spec.model = models_[choice[kModel]];
    spec.compute = types_[choice[kType]];
    for (size_t d = kMethod; d < kDimensions; ++d) forms_[d][choice[d]].set(spec);
    for (const models::Weight& weight : models::weights_of(spec.model))
      if (weight.is_constant) spec.frozen.push_back(weight.name);
    if (spec.compute == DType::f16) spec.update.loss_scale.emplace();
    if (spec.quantization)
      spec.quantization->kept = models::matrices_in_16_bits(models::stack_of(spec.model));
    // Of an encoder the rows have another length.
    if (spec.model.has_encoder())
      spec.row_tokens = {spec.row_tokens.decoder(), spec.row_tokens.decoder() + 12};
    // Documents of an objective that groups them come together.
    const int64_t group = methods::objective_of(spec.objective.kind).group;
    spec.row_segments = (spec.row_segments + group - 1) / group * group;
    return spec;
  }

  std::unique_ptr<backends::Backend> backend_;
  std::vector<models::ModelConfig> models_;
  std::vector<DType> types_;
  std::array<std::vector<Form>, kDimensions> forms_;
};

struct TracedBackend {
  std::string name;
  size_t step = 1;  // does one of so many of the pairwise cases
};

#ifdef SNUG_TEST_CPU_BACKEND
// The reference, which decides nothing, does a fourth of them.
const std::vector<TracedBackend> kBackends{{"reference", 4}, {"cpu", 1}};
#else
// The emulated card, which is slow.
const std::vector<TracedBackend> kBackends{{SNUG_TEST_BACKEND, 6}};
#endif

TEST(FamilyTraces, HaveAModelOfEachFamily) {
  const auto models = tiny_models();
  for (const models::Family* family : models::families())
    EXPECT_TRUE(models.contains(std::string(family->model_type))) << family->model_type;
}

TEST(FamilyTraces, AreWhatProgramsSayInEachPair) {
  for (const auto& [backend, step] : kBackends) {
    const Jobs jobs(backend);
    const std::vector<testing::Choice> choices = jobs.in_pairs(1);
    for (size_t i = 0; i < choices.size(); i += step) jobs.expect_traces_equal(choices[i]);
  }
}

// Every combination, of the one or the other type.
TEST(AllFamilyTraces, AreWhatProgramsSay) {
  for (const auto& [backend, step] : kBackends) {
    const Jobs jobs(backend);
    const std::vector<size_t> sizes = jobs.sizes();
    testing::Choice choice(sizes.size(), 0);
    size_t number = 0;
    const auto count = [&] {  // to the next one; false after the last
      for (size_t d = 0; d < sizes.size(); ++d) {
        if (d == Jobs::kType) continue;
        if (++choice[d] < sizes[d]) return true;
        choice[d] = 0;
      }
      return false;
    };
    do {
      choice[Jobs::kType] = ++number % sizes[Jobs::kType];
      if (!jobs.is_possible(choice)) choice[Jobs::kType] = 0;
      if (jobs.is_possible(choice)) jobs.expect_traces_equal(choice);
    } while (count());
  }
}

TEST(FamilyTraces, OfPrefillAndDecodeToo) {
  for (const auto& [backend_name, step] : kBackends) {
    const auto backend = backends::open_backend(backend_name, {.threads = 2});
    size_t number = 0;
    for (const auto& [name, model] : tiny_models()) {
      SCOPED_TRACE(backend_name + ": " + name);
      plan::InferenceSpec spec;
      spec.model = model;
      if (number % 2 == 1) spec.method = formats::Method::lora;
      spec.lora.target_modules = {"all-linear"};
      if (number % 3 > 0)
        spec.quantization =
            passes::QuantizeOptions{.nested = number % 3 == 1,
                                    .kept = models::matrices_in_16_bits(models::stack_of(model))};
      spec.shape.sequences = 1 + static_cast<int64_t>(number % 2);
      spec.shape.capacity = model.has_encoder() ? base::PerStream<int64_t>(40, 12) : 40;
      spec.shape.prefill_tokens = 8;
      if (model.has_encoder()) spec.shape.encoder_tokens = 12;
      if (testing::lacks_bf16(backend_name) || number % 4 == 3) spec.compute = DType::f32;
      ++number;
      testing::expect_traces_equal(plan::plan_inference(spec, *backend), *backend);
    }
  }
}

}  // namespace
}  // namespace snug::runtime
