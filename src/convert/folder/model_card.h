// The README.md of a folder that was trained, merged, exported or imported, as the hub reads it:
// YAML between two lines of ---, then plain text: what it is, the recipe and the data, what the run
// planned and measured, how far a merge is from what was trained, the licence, and how to load it.
//
// All inputs but the title may be absent, and what is unknown is left out. Text that strangers
// wrote is escaped, and no path of this machine is told: folders and files are named by their last
// part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace snug::convert {

enum class CardKind : uint8_t {
  merged,    // a folder of transformers: a model with an adapter merged into it
  trained,   // a folder of transformers: a model whose weights a run trained
  adapter,   // a folder of PEFT: an adapter, of which the base is no part
  exported,  // GGUF files of a model
  imported,  // a folder of transformers whose weights come from a GGUF file
};

// What a merge's predictions differ by from those of the model with its adapter (generate/drift.h).
struct CardDrift {
  std::string variant{};  // "into the model in 16 bits"
  bool is_kept = true;    // whether it is the one in the folder
  int64_t tokens = 0;
  double mean_kl = 0;
  double most_kl = 0;
  double mean_difference = 0;
  double most_difference = 0;
  double equal_greedy = 0;  // a share
};

struct CardInputs {
  CardKind kind = CardKind::merged;
  std::string title{};            // the name of the folder
  std::filesystem::path model{};  // the base: a folder, or a GGUF file that was imported
  std::string model_name{};       // as the user named it: "org/name", or a path
  std::filesystem::path adapter{};
  std::filesystem::path run{};       // the folder of the run; empty: the folder above the adapter
  std::vector<std::string> types{};  // of the weights: "bf16"; "q8_0", "q4_k_m"
  std::vector<std::string> files{};  // GGUF files, and a Modelfile where there is one
  bool has_encoder = false;
  std::vector<CardDrift> drifts{};
  // What a GGUF file says of itself (general.license, general.languages).
  std::string licence{};
  std::vector<std::string> languages{};
};

std::string model_card(const CardInputs& inputs);

// Writes README.md, and copies the licence files of the base next to it. What is there under these
// names is replaced. A folder that is as Snug wrote it stays so (formats/folder/file_list.h).
void write_model_card(const std::filesystem::path& folder, const CardInputs& inputs);

// The last part of the path of a folder, even of "x/" and ".".
std::string title_of_folder(const std::filesystem::path& folder);

// The text with a backslash before each character that means something in Markdown, on one line.
std::string markdown_text(const std::string& text);
// The text as a value of YAML, quoted unless it can only be a text.
std::string yaml_text(const std::string& text);

}  // namespace snug::convert
