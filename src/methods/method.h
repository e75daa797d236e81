// What trains, and how: a method is a row of one table, which everything reads that plans, loads,
// saves or runs a job. A method trains weights of the model, or adds tensors of role adapter to the
// network or to its forward program and trains those. A new method is a file in this folder with
// its row, a word in formats/recipe/choices.h, its keys in formats/recipe/method_keys.cpp, and its
// files (formats/adapter/adapter_config.h).
//
// Files call a tensor of role adapter by its name in the program, after PEFT's prefix
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

// A method looks at what is its own.
struct MethodOptions {
  LoraOptions lora{};
  PromptOptions prompt{};
};

// What the folder of a trained adapter says of it.
struct SavedAdapter {
  const formats::Recipe& recipe;
  std::span<const program::Tensor> tensors;  // of role adapter
  bool transposed_linears = false;           // the base model stores some as (in, out)
  bool has_experts = false;                  // which are no linears here
  bool has_encoder = false;                  // the base model is an encoder-decoder
  bool peft_has_prompts = false;             // PEFT computes the same with prompts of the model
};

// What a method may ask of the model that it is used with.
struct BaseModel {
  std::string embedding;  // its weight
  std::string head;       // the head's weight
  bool tied_head = false;
  bool head_in_4_bits = false;
  bool has_encoder = false;
  int64_t layers = 0;
  bool has_experts = false;
  bool head_bias = false;  // the head has one of its own
};

struct Method {
  MethodKind kind;
  bool trains_weights = false;  // of the model; the functions below are null then
  // Something of the head trains, whatever the recipe says. Objectives that weigh rows
  // (methods/objective.h) are not built for that.
  bool trains_head = false;
  // Methods whose jobs take less memory, for a job that does not fit; the mildest first.
  std::span<const MethodKind> leaner = {};
  // Adds what trains to the network; null: nothing. Layers of one network may then differ.
  void (*extend)(models::Stack& stack, const MethodOptions& options) = nullptr;
  // Adds what trains to a forward program; null: nothing. `is_training`: with what is left out
  // otherwise (dropout).
  program::Program (*rewrite)(const program::Program& forward, const MethodOptions& options,
                              bool is_training) = nullptr;
  // Throws UserError for what the method cannot do to a model.
  void (*refuse)(const MethodOptions& options, const BaseModel& base) = nullptr;
  // The value of a tensor of role adapter before training; nothing: it is a weight of the model,
  // and has the values of the model, or `initialise` makes them.
  std::optional<program::Fill> (*initial_values)(const program::Tensor& tensor,
                                                 int64_t seed) = nullptr;
  // What of an adapter that is made begins as something that follows from the model's weights: the
  // program `initialise`, for a forward program with what trains; of no operations where nothing
  // does. Null: nothing ever does.
  program::Program (*initialise)(const program::Program& forward) = nullptr;
  // Whether an adapter with this config is of the method.
  bool (*reads)(const formats::AdapterConfig& config) = nullptr;
  // What an adapter says that training goes on with, where the recipe leaves it open.
  void (*settle)(formats::Recipe& recipe, const formats::AdapterConfig& config) = nullptr;
  // The options of a folder's adapter, to apply it.
  MethodOptions (*options)(const formats::AdapterConfig& config) = nullptr;
  formats::AdapterConfig (*config)(const SavedAdapter& saved) = nullptr;
  // Throws UserError for a folder whose tensors are not those of the job, or that computes another
  // thing than a job with these options. Reads no values.
  void (*check)(const std::filesystem::path& folder, const MethodOptions& options,
                std::span<const program::Tensor> tensors) = nullptr;
  // What the shapes of an adapter follow from, for errors: "as lora_r = 8 and the base model say".
  std::string (*basis)(const MethodOptions& options) = nullptr;
};

const Method& method_of(MethodKind kind);
// The first that reads it.
const Method& method_of(const formats::AdapterConfig& config);

// Rows, each family of methods in a file of its own.
extern const Method kFull;
extern const Method kLora;
extern const Method kQlora;
extern const Method kAdapter;
extern const Method kAdapterV2;

}  // namespace snug::methods
