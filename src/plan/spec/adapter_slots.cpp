#include "plan/spec/adapter_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_set>
#include <variant>

#include "base/error.h"
#include "formats/adapter/adapter_config.h"
#include "formats/adapter/peft_adapter.h"
#include "formats/recipe/recipe.h"
#include "methods/method.h"
#include "models/families/families.h"
#include "plan/job/generating_programs.h"
#include "plan/spec/adapter_tables.h"

namespace snug::plan {
namespace {

using formats::LoraModule;

// The tensors that an adapter adds to a program.
std::vector<program::Tensor> added_tensors(const program::Program& adapted) {
  std::vector<program::Tensor> tensors;
  std::ranges::copy_if(
      adapted.tensors, std::back_inserter(tensors),
      [](const program::Tensor& tensor) { return tensor.role == program::Role::adapter; });
  return tensors;
}

class SlotSurvey {
 public:
  SlotSurvey(const formats::Recipe& recipe, const models::ModelConfig& model,
             program::DType compute)
      : recipe_(recipe),
        model_(model),
        stack_(models::stack_of(model)),
        forward_(a_forward(stack_, compute)) {
    if (stack_.encoder)
      recipe.fail("adapters",
                  "are chosen by requests to decoders, and this model has an encoder; load one "
                  "adapter alone with adapter=FOLDER");
  }

  methods::LoraSlots run(const std::vector<NamedAdapter>& adapters) {
    for (const NamedAdapter& adapter : adapters) add(adapter);
    methods::LoraSlots slots{.slots = slots_for(adapters), .rank = rank()};
    for (std::string& module : methods::slot_modules(forward_))
      if (adapters.empty() || modules_.contains(module)) slots.modules.push_back(std::move(module));
    return slots;
  }

 private:
  // Of the smallest size: its linears are those of all programs that generate.
  static program::Program a_forward(const models::Stack& stack, program::DType compute) {
    InferenceShape shape;
    shape.capacity = stack.encoder ? base::PerStream<int64_t>{1, 1} : base::PerStream<int64_t>(1);
    shape.prefill_tokens = 1;
    shape.encoder_tokens = stack.encoder ? 1 : 0;
    return std::move(generating_programs(stack, shape, compute).front().program);
  }

  [[noreturn]] void refuse(const NamedAdapter& adapter, std::string_view why) const {
    recipe_.fail("adapters", fmt::format("name '{}', {}, {}. Load it alone, with adapter={}",
                                         adapter.name, adapter.folder, why, adapter.folder));
  }

  void add(const NamedAdapter& adapter) {
    const formats::AdapterConfig config = formats::read_adapter_config(adapter.folder);
    if (!std::holds_alternative<formats::LoraConfig>(config))
      refuse(adapter,
             "which is a LLaMA-Adapter: its prompts are a part of attention, which all requests "
             "of a run share");
    refuse_form(adapter, std::get<formats::LoraConfig>(config));
    methods::MethodOptions options = methods::method_of(config).options(config);
    options.lora.dropout = 0;
    add_adapter_tables(model_, adapter.folder, options.lora);
    const std::vector<program::Tensor> tensors =
        added_tensors(methods::lora(forward_, options.lora));
    methods::method_of(config).check(adapter.folder, options, tensors);
    for (const LoraModule& module : methods::adapted_modules(tensors)) add_module(adapter, module);
    say_left_out(adapter.folder);
  }

  void refuse_form(const NamedAdapter& adapter, const formats::LoraConfig& config) const {
    if (config.use_dora)
      refuse(adapter,
             "which is DoRA: its magnitudes scale the outputs of the model's own weights, which "
             "all requests of a run share");
    if (!config.token_rows.empty())
      refuse(adapter,
             "which replaces rows of the model's tables (trainable_token_indices), and all "
             "requests of a run share these");
    if (!config.target_parameters.empty())
      refuse(adapter,
             "which changes the matrices of experts (target_parameters), and requests choose what "
             "changes the linear layers of a model's layers");
    const formats::PeftAdapter file(adapter.folder);
    for (const LoraModule& module : file.modules())
      if (module.is_embedding || module.module == stack_.head)
        refuse(adapter,
               fmt::format("which changes the {} '{}', and requests choose what changes the linear "
                           "layers of a model's layers",
                           module.is_embedding ? "embedding" : "head", module.module));
    const std::vector<std::string>& saved = file.saved();
    if (!saved.empty())
      refuse(adapter, fmt::format("which has the whole of '{}' ({}), and all requests of a run "
                                  "share the model's own",
                                  saved.front(),
                                  config.modules_to_save.empty() ? "saved next to it by PEFT"
                                                                 : "modules_to_save"));
    if (!config.modules_to_save.empty())
      refuse(adapter, fmt::format("which trains '{}' whole (modules_to_save), and all requests of "
                                  "a run share the model's own",
                                  config.modules_to_save.front()));
  }

  void add_module(const NamedAdapter& adapter, const LoraModule& module) {
    if (recipe_.max_adapter_rank > 0 && module.r > recipe_.max_adapter_rank)
      recipe_.fail("max_adapter_rank",
                   fmt::format("is {}, but the adapter '{}', {}, has rank {} in '{}'; give {} at "
                               "least",
                               recipe_.max_adapter_rank, adapter.name, adapter.folder, module.r,
                               module.module, module.r));
    rank_ = std::max(rank_, module.r);
    modules_.insert(module.module);
  }

  int64_t rank() const {
    if (recipe_.max_adapter_rank > 0) return recipe_.max_adapter_rank;
    if (rank_ > 0) return rank_;
    recipe_.fail("max_adapter_rank",
                 fmt::format("is missing: no adapter is named yet for which max_adapters={} keeps "
                             "room; give the largest rank that one will have",
                             recipe_.max_adapters));
  }

  int64_t slots_for(const std::vector<NamedAdapter>& adapters) const {
    const int64_t named = std::ssize(adapters);
    if (recipe_.max_adapters > 0 && recipe_.max_adapters < named)
      recipe_.fail("max_adapters",
                   fmt::format("is {}, and adapters names {}; give {} at least, or leave it out",
                               recipe_.max_adapters, named, named));
    return std::max(recipe_.max_adapters, named);
  }

  const formats::Recipe& recipe_;
  const models::ModelConfig& model_;
  const models::Stack stack_;
  const program::Program forward_;
  std::unordered_set<std::string> modules_;
  int64_t rank_ = 0;
};

}  // namespace

std::vector<NamedAdapter> named_adapters(const formats::Recipe& recipe) {
  std::vector<NamedAdapter> adapters;
  std::set<std::string, std::less<>> names;
  for (const std::string& entry : recipe.adapters) {
    const size_t end = entry.find(entry.find('=') == std::string::npos ? ':' : '=');
    if (end == 0 || end == std::string::npos || end + 1 == entry.size())
      recipe.fail("adapters", fmt::format("has '{}'; give NAME:FOLDER for each adapter, such as "
                                          "adapters=law:adapters/law,code:adapters/code",
                                          entry));
    NamedAdapter adapter{entry.substr(0, end), entry.substr(end + 1)};
    if (adapter.name == "none")
      recipe.fail("adapters", "has the name 'none', by which a request asks for no adapter");
    if (!names.insert(adapter.name).second)
      recipe.fail("adapters", fmt::format("names '{}' twice", adapter.name));
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

methods::LoraSlots adapter_slots(const formats::Recipe& recipe, const models::ModelConfig& model,
                                 program::DType compute) {
  const std::vector<NamedAdapter> adapters = named_adapters(recipe);
  if (adapters.empty() && recipe.max_adapters == 0) {
    if (recipe.max_adapter_rank > 0)
      recipe.fail("max_adapter_rank",
                  "is the rank of adapters that requests choose from, and there are none; give "
                  "adapters=NAME=FOLDER or max_adapters too");
    return {};
  }
  if (!recipe.adapter.empty())
    recipe.fail("adapters",
                "are chosen by each request, and adapter is the one of all requests; give one of "
                "the two");
  return SlotSurvey(recipe, model, compute).run(adapters);
}

}  // namespace snug::plan
