// Which parameters train, and how. Every method is a row of one table, and everything that plans,
// loads, saves or runs a job reads that table. A method trains weights of the model, or adds
// tensors of role adapter to the network or to its forward program and trains those. To add a
// method, add a file with its row to this folder, a word to formats/recipe/choices.h, its keys to
// formats/recipe/method_keys.cpp, and its files to formats/adapter/adapter_config.h.
//
// In files, a tensor of role adapter has its name in the program, after PEFT's prefix
// (formats/adapter/peft_adapter.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "formats/adapter/adapter_config.h"
#include "formats/recipe/choices.h"
#include "methods/lora.h"
#include "methods/prompt.h"
#include "program/ir/program.h"

namespace snug::formats {
struct Recipe;
}
namespace snug::models {
struct Stack;
}

namespace snug::methods {

using MethodKind = formats::Method;

// The options of all methods; each method reads only its own.
struct MethodOptions {
  LoraOptions lora{};
  PromptOptions prompt{};
};

// The information that is written into the folder of a trained adapter.
struct SavedAdapter {
  const formats::Recipe& recipe;
  std::span<const program::Tensor> tensors;  // all of role adapter
  bool transposed_linears = false;           // the base model stores some linears as (in, out)
  bool has_experts = false;                  // the experts, which are not counted as linears
  bool has_encoder = false;                  // the base model is an encoder-decoder
  bool peft_has_prompts = false;             // PEFT computes the same with prompts of the model
};

// How a new adapter begins.
struct AdapterStart {
  int64_t seed = 0;  // of its random values
  formats::LoraInit lora = formats::LoraInit::standard;
};

// The properties of the base model that a method may check.
struct BaseModel {
  std::string embedding;  // name of its weight
  std::string head;       // name of its weight
  bool tied_head = false;
  bool head_in_4_bits = false;
  bool has_encoder = false;
  int64_t layers = 0;
  bool has_experts = false;
  bool head_bias = false;  // the head has a bias
};

struct Method {
  MethodKind kind;
  // Whether the method trains weights of the model. If so, the function pointers below are null.
  bool trains_weights = false;
  // Whether a parameter of the head trains, whatever the recipe says. Objectives that weigh rows
  // (methods/objective.h) do not support that.
  bool trains_head = false;
  // Methods whose jobs take less memory, suggested when a job does not fit, the smallest change
  // first.
  std::span<const MethodKind> leaner = {};
  // Adds the trainable parameters to the network; null: adds none. Layers of one network may then
  // differ.
  void (*extend)(models::Stack& stack, const MethodOptions& options) = nullptr;
  // Adds the trainable parameters to a forward program; null: adds none. `is_training`: also adds
  // what only training has (dropout).
  program::Program (*rewrite)(const program::Program& forward, const MethodOptions& options,
                              bool is_training) = nullptr;
  // Throws UserError where the method cannot be used with the model.
  void (*refuse)(const MethodOptions& options, const BaseModel& base) = nullptr;
  // The initial value of a tensor of role adapter. Nothing where the tensor is a weight of the
  // model, which begins with the model's value, or where `initialise` computes it.
  std::optional<program::Fill> (*initial_values)(const program::Tensor& tensor,
                                                 const AdapterStart& start) = nullptr;
  // The program `initialise` of a new adapter: computes initial values that depend on the model's
  // weights. `forward` includes the trainable parameters. The program has no operations where no
  // value depends on the weights. Null: no value of this method ever does.
  program::Program (*initialise)(const program::Program& forward) = nullptr;
  // Whether an adapter with this config belongs to the method.
  bool (*reads)(const formats::AdapterConfig& config) = nullptr;
  // Fills in the keys that the recipe leaves open from the config of the adapter that training
  // continues from.
  void (*settle)(formats::Recipe& recipe, const formats::AdapterConfig& config) = nullptr;
  // The options for applying the adapter of a folder.
  MethodOptions (*options)(const formats::AdapterConfig& config) = nullptr;
  formats::AdapterConfig (*config)(const SavedAdapter& saved) = nullptr;
  // Throws UserError for a folder whose tensors do not match the job's, or whose adapter computes
  // something else than a job with these options. Does not read values.
  void (*check)(const std::filesystem::path& folder, const MethodOptions& options,
                std::span<const program::Tensor> tensors) = nullptr;
  // What determines the adapter's shapes, for error messages: "as lora_r = 8 and the base model
  // say".
  std::string (*basis)(const MethodOptions& options) = nullptr;
};

const Method& method_of(MethodKind kind);
// The first method whose `reads` accepts the config.
const Method& method_of(const formats::AdapterConfig& config);

// Rows, each family of methods in a file of its own.
extern const Method kFull;
extern const Method kLora;
extern const Method kQlora;
extern const Method kAdapter;
extern const Method kAdapterV2;

}  // namespace snug::methods
