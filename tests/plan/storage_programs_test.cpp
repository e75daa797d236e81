// The programs of a job that load and save: everything that lasts is read or made once, and a
// checkpoint holds what a run goes on from.
#include "plan/job/storage_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "formats/recipe/choices.h"
#include "formats/recipe/recipe.h"
#include "models/weights.h"
#include "null_target.h"
#include "plan/spec/spec.h"
#include "plan/time/clock.h"
#include "program/kinds/kind.h"
#include "program/kinds/transfer/storage.h"
#include "program/verify/verify.h"

namespace snug::plan {
namespace {

using program::Channel;
using program::Operation;
using program::Program;
using program::ProgramName;
using program::Role;
using program::Space;
using program::Tensor;

class Target : public NullTarget {
 public:
  explicit Target(bool is_remote) : is_remote_(is_remote) {}
  bool host_reaches_device() const override { return !is_remote_; }

 private:
  bool is_remote_;
};

struct Case {
  const char* name;
  TrainingSpec spec;
};

TrainingSpec spec_of(formats::Method method) {
  TrainingSpec spec;
  spec.model = *models::preset("smollm2-135m");
  spec.model.num_layers = 2;
  spec.method = method;
  spec.row_tokens = 64;
  return spec;
}

std::vector<Case> cases() {
  std::vector<Case> cases{{"full", spec_of(formats::Method::full)},
                          {"full without masters", spec_of(formats::Method::full)},
                          {"moments of 8 bits", spec_of(formats::Method::full)},
                          {"lora", spec_of(formats::Method::lora)},
                          {"an adapter that is there", spec_of(formats::Method::lora)},
                          {"qlora", spec_of(formats::Method::lora)},
                          {"qlora, nested", spec_of(formats::Method::lora)},
                          {"a folder in 4 bits", spec_of(formats::Method::lora)},
                          {"random weights", spec_of(formats::Method::full)},
                          {"random weights in 4 bits", spec_of(formats::Method::lora)},
                          {"half frozen", spec_of(formats::Method::full)},
                          {"half frozen without masters", spec_of(formats::Method::full)},
                          {"lion", spec_of(formats::Method::full)},
                          {"adafactor", spec_of(formats::Method::full)},
                          {"muon", spec_of(formats::Method::full)},
                          {"dora", spec_of(formats::Method::lora)},
                          {"dora in 4 bits", spec_of(formats::Method::lora)},
                          {"dora that is there", spec_of(formats::Method::lora)},
                          {"qlora of ranks", spec_of(formats::Method::lora)},
                          {"random weights in 4 bits of ranks", spec_of(formats::Method::lora)},
                          {"a folder in 4 bits, of ranks", spec_of(formats::Method::lora)},
                          {"prompts", spec_of(formats::Method::adapter)},
                          {"prompts of ranks", spec_of(formats::Method::adapter)}};
  cases[1].spec.update.optimizer = methods::OptimizerKind::adamw_bf16;
  cases[1].spec.update.gradient = program::DType::bf16;
  cases[2].spec.update.optimizer = methods::OptimizerKind::adamw_8bit;
  cases[4].spec.adapter_in_files = true;
  cases[5].spec.quantization = passes::QuantizeOptions{.nested = false, .kept = {}};
  for (const size_t nested : {6, 7, 9}) cases[nested].spec.quantization.emplace();
  cases[7].spec.model.stored = models::StoredNf4{.double_quant = true, .kept = {}};
  cases[8].spec.init_seed = cases[9].spec.init_seed = 42;
  for (const models::Weight& weight : models::weights_of(cases[10].spec.model))
    if (weight.layer != 1) cases[10].spec.frozen.push_back(weight.name);
  cases[11].spec = cases[10].spec;
  cases[11].spec.update.optimizer = methods::OptimizerKind::adamw_bf16;
  cases[12].spec.update.optimizer = methods::OptimizerKind::lion;
  cases[13].spec.update.optimizer = methods::OptimizerKind::adafactor;
  cases[14].spec.update.optimizer = methods::OptimizerKind::muon;
  for (const size_t dora : {15, 16, 17}) cases[dora].spec.lora.dora = true;
  cases[16].spec.quantization.emplace();
  cases[16].spec.update.optimizer = methods::OptimizerKind::adamw_bf16;
  cases[17].spec.adapter_in_files = true;
  for (const size_t of_ranks : {18, 19, 20}) {
    cases[of_ranks].spec.quantization.emplace();
    cases[of_ranks].spec.ranks = {.shards = 2,
                                  .weights = passes::WeightSharding::layer_by_layer,
                                  .gradients = passes::GradientSharding::scattered};
  }
  cases[19].spec.init_seed = 42;
  for (const size_t with_prompts : {21, 22}) {
    cases[with_prompts].spec.prompt = {.tokens = 3, .layers = 1};
    cases[with_prompts].spec.evaluate = true;
  }
  cases[22].spec.ranks = cases[18].spec.ranks;
  cases[20].spec.model.stored = models::StoredNf4{.double_quant = true, .kept = {}};
  return cases;
}

bool is_by_runtime(const Program& program) {
  return !program.operations.empty() &&
         traits_of(program.operations[0]).performer == program::Performer::runtime;
}

// How often each tensor of the run is touched by the programs of these names, `list` of each
// operation.
std::map<std::string, int> touched(const Job& job, std::initializer_list<ProgramName> names,
                                   std::vector<program::TensorId> Operation::*list) {
  std::map<std::string, int> counts;
  for (const ProgramName name : names)
    if (const Program* program = job.find(name); program != nullptr)
      for (const Operation& operation : program->operations)
        for (const program::TensorId id : operation.*list)
          if (program->tensor(id).lifetime == program::Lifetime::run)
            ++counts[program->tensor(id).name];
  return counts;
}

std::set<std::string> names_of(const Job& job, const std::set<Role>& roles) {
  std::set<std::string> names;
  for (const Program& program : job.programs)
    for (const Tensor& tensor : program.tensors)
      if (tensor.lifetime == program::Lifetime::run && roles.contains(tensor.role))
        names.insert(tensor.name);
  return names;
}

TEST(StoragePrograms, AreRightWhateverTheTarget) {
  for (const bool is_remote : {false, true})
    for (const Case& each : cases()) {
      SCOPED_TRACE(each.name);
      const Job job = plan_training(each.spec, Target(is_remote));
      for (const ProgramName name :
           {ProgramName::load, ProgramName::save, ProgramName::save_state, ProgramName::restore}) {
        ASSERT_NE(job.find(name), nullptr);
        EXPECT_TRUE(is_by_runtime(*job.find(name)));
        EXPECT_EQ(program::verify(*job.find(name)), std::vector<std::string>{});
      }
      EXPECT_EQ(job.find(ProgramName::load_adapter) != nullptr, each.spec.is_adapted());
    }
}

// With `prepare`, which makes what has a master.
TEST(StoragePrograms, LoadingWritesEveryWeightOnce) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    const Job job = plan_training(each.spec, Target(false));
    std::map<std::string, int> expected;
    for (const std::string& name : names_of(
             job, {Role::weight, Role::quant_state, Role::adapter, Role::master, Role::scalar}))
      expected[name] = 1;
    EXPECT_EQ(touched(job,
                      {ProgramName::load, ProgramName::load_adapter, ProgramName::initialise,
                       ProgramName::prepare},
                      &Operation::writes),
              expected);
  }
}

// As in PEFT: A normal with the standard deviation of its own rank where the recipe says gaussian,
// else uniform; B zero either way.
TEST(StoragePrograms, ANewAdapterBeginsAsTheRecipeSays) {
  const auto recipe_spec = [](const std::string& init) {
    const formats::Recipe recipe = formats::parse_recipe(
        "model: smollm2-135m\nmethod: lora\nrank_pattern: {q_proj: 4}\nmax_length: 64\n" + init,
        "recipe.yaml");
    TrainingSpec spec =
        training_spec(recipe, models::find_model(recipe.model).config, Target(false));
    spec.model.num_layers = 2;
    return spec;
  };
  for (const bool is_gaussian : {false, true}) {
    const Job job = plan_training(
        recipe_spec(is_gaussian ? "init_lora_weights: gaussian\n" : "init_lora_weights: true\n"),
        Target(false));
    const Program& load = *job.find(ProgramName::load_adapter);
    int64_t checked = 0;
    for (const Operation& operation : load.operations) {
      const auto& fill = *operation.attributes.get_if<program::Fill>();
      const Tensor& tensor = load.tensor(id_of(operation, program::Fill::kTensor));
      const bool is_a = tensor.name.find(".lora_A.") != std::string::npos;
      const auto form = is_gaussian ? program::FillForm::normal : program::FillForm::uniform;
      EXPECT_EQ(fill.form, is_a ? form : program::FillForm::constant) << tensor.name;
      if (!is_a || !is_gaussian) continue;
      const bool is_query = tensor.name.find("q_proj") != std::string::npos;
      EXPECT_EQ(fill.scale, is_query ? 0.25F : 0.0625F) << tensor.name;
      ++checked;
    }
    EXPECT_EQ(checked, is_gaussian ? 14 : 0);
  }
}

// No batch changes the bounds of a prompt, so that loading makes them, and nothing else does.
TEST(StoragePrograms, LoadingMakesTheBoundsOfPrompts) {
  TrainingSpec spec = spec_of(formats::Method::adapter);
  spec.prompt = {.tokens = 3, .layers = 2};
  spec.rows = 2;
  const Job job = plan_training(spec, Target(false));
  for (const ProgramName name : {ProgramName::load, ProgramName::restore}) {
    const Program& program = *job.find(name);
    std::map<std::string, int64_t> rows;
    for (const Operation& operation : program.operations)
      if (const auto* put = operation.attributes.get_if<program::PutBounds>())
        rows[program.tensor(id_of(operation, program::PutBounds::kTensor)).name] = put->rows;
    EXPECT_EQ(rows, (std::map<std::string, int64_t>{{"prompt_key_bounds", 3},
                                                    {"prompt_query_bounds", 128}}));
  }
  for (const Program& program : job.programs)
    EXPECT_EQ(program.find("host.prompt_key_bounds"), program::kNone) << program.name;
}

// What is saved is what is restored, and all that a run changes is among it: a weight with a master
// follows from that.
TEST(StoragePrograms, ACheckpointHoldsWhatARunGoesOnFrom) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    const Job job = plan_training(each.spec, Target(false));
    const auto saved =
        touched(job, {ProgramName::save, ProgramName::save_state}, &Operation::reads);
    auto restored = touched(job, {ProgramName::restore, ProgramName::prepare}, &Operation::writes);
    for (const std::string& name : names_of(job, {Role::moment, Role::master}))
      EXPECT_TRUE(saved.contains(name) && restored.contains(name)) << name;
    for (const Tensor& trainable : job.trainables) EXPECT_EQ(restored[trainable.name], 1);
    for (const std::string& name : names_of(job, {Role::weight})) {
      if (each.spec.is_adapted()) break;
      EXPECT_TRUE(saved.contains(name) && restored[name] == 1) << name;
    }
    const Program& restore = *job.find(ProgramName::restore);
    for (const Operation& operation : restore.operations) {
      if (operation.channel != Channel::storage) continue;
      for (const program::TensorId id : operation.writes)
        EXPECT_TRUE(saved.contains(restore.tensor(id).name)) << restore.tensor(id).name;
    }
  }
}

// Staging memory that nobody passes values through is not there.
TEST(StoragePrograms, StagingIsThereForWhatUsesIt) {
  for (const bool is_remote : {false, true})
    for (const Case& each : cases()) {
      const Job job = plan_training(each.spec, Target(is_remote));
      for (const Program& program : job.programs) {
        std::set<program::TensorId> used;
        for (const Operation& operation : program.operations)
          program::for_each_tensor(operation, [&](program::TensorId id) {
            used.insert(id);
            used.insert(program.owner(id));
          });
        for (size_t id = 0; id < program.tensors.size(); ++id) {
          if (program.tensors[id].role != Role::staging) continue;
          EXPECT_TRUE(used.contains(static_cast<program::TensorId>(id)))
              << each.name << ": " << program.tensors[id].name << " of " << program.name;
        }
      }
    }
}

// The scales of double quantised weights that are sharded and not in the files, as many at a time
// as there are slots.
TEST(StoragePrograms, RanksGatherScales) {
  const Rates rates = Rates::assumed(1);
  for (const bool is_remote : {false, true})
    for (const Case& each : cases()) {
      SCOPED_TRACE(each.name);
      const Job job = plan_training(each.spec, Target(is_remote));
      const Program& load = *job.find(ProgramName::load);
      const bool gathers =
          each.spec.quantization && each.spec.ranks.shards > 1 && !each.spec.model.stored;
      int64_t bytes = 0;
      int64_t gathered = 0;
      for (const Operation& operation : load.operations) {
        if (traits_of(operation).category != program::Category::collective) continue;
        EXPECT_EQ(operation.channel, Channel::interconnect);
        EXPECT_LE(operation.updates.size(), each.spec.init_seed ? 1U : 2U);
        gathered += std::ssize(operation.updates);
        bytes += static_cast<int64_t>(program::cost({load, operation}, {}).bytes);
      }
      // Seven linears of each of two layers; a scale in fp32 for 64 weights, to the other rank.
      EXPECT_EQ(gathered, gathers ? 14 : 0);
      int64_t scales = 0;
      for (const Tensor& tensor : load.tensors)
        if (tensor.role == Role::quant_state && tensor.dtype == program::DType::u8)
          scales += tensor.bytes();
      EXPECT_EQ(bytes, gathers ? 4 * scales : 0);
      double on_links = 0;
      const Timeline times = simulate(load, rates, {});
      for (const OperationTime& time : times.operations)
        if (load.operations[static_cast<size_t>(time.operation)].channel == Channel::interconnect)
          on_links += time.seconds;
      EXPECT_EQ(on_links > 0, gathers);
    }
}

TEST(StoragePrograms, TheClockPricesTheFilesBytes) {
  const Rates rates = Rates::assumed(1);
  TrainingSpec spec = spec_of(formats::Method::full);
  const auto weights = static_cast<double>(models::parameter_count(spec.model));
  const Job job = plan_training(spec, Target(false));
  // In 16 bits, as the preset's files are; the masters are wider.
  EXPECT_NEAR(load_seconds(job, rates), 2 * weights / kAssumedStorageBytesPerSecond, 1e-4);
  EXPECT_EQ(load_basis(job, rates), Basis::assumed);
  spec.model.file_width = 4;
  EXPECT_NEAR(load_seconds(plan_training(spec, Target(false)), rates),
              4 * weights / kAssumedStorageBytesPerSecond, 1e-4);
  // A first run's calibration says nothing of files, a full one does; what is made is not read.
  const RateSample cast{"cast f32 > bf16", {1e8}, Work::bytes, 1e8, 1e-5};
  const Rates measured({cast});
  EXPECT_EQ(load_basis(job, measured), Basis::assumed);
  spec.model.file_width = 2;
  const Rates of_storage({cast, {std::string(kStorage), {1e9}, Work::storage_bytes, 1e9, 0.25}});
  EXPECT_EQ(load_basis(job, of_storage), Basis::calibrated);
  EXPECT_NEAR(load_seconds(job, of_storage), 2 * weights / 4e9, 1e-4);
  spec.init_seed = 1;
  const Job random = plan_training(spec, Target(false));
  EXPECT_LT(load_seconds(random, rates), load_seconds(job, rates) / 2);
  EXPECT_EQ(load_basis(random, measured), Basis::calibrated);
}

}  // namespace
}  // namespace snug::plan
