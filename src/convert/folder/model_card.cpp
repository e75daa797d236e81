// Stages: gather what is known of the base, the adapter and its run; the YAML; the sections, each
// of which is left out where nothing is known of it.
#include "convert/folder/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/build_id.h"
#include "base/file.h"
#include "base/shown_text.h"
#include "convert/folder/run_record.h"
#include "formats/adapter/prompt_config.h"
#include "formats/folder/base_card.h"
#include "formats/folder/file_list.h"

namespace snug::convert {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What is said of the adapter in its own folder.
struct AdapterFacts {
  std::string base;                  // the name of its model there
  std::string words = "an adapter";  // "a LoRA adapter"
  int64_t rank = 0;
  bool is_peft = true;
};

struct Known {
  CardInputs inputs;
  RunRecord run;
  AdapterFacts adapter;
  formats::BaseCard base;
  std::string base_name;     // for people
  bool base_is_hub = false;  // base_name is that of a repository of the hub
};

AdapterFacts adapter_facts(const fs::path& folder) {
  AdapterFacts facts;
  const json config = readable_json(folder / "adapter_config.json");
  if (!config.is_object()) return facts;
  const auto text = [&](const char* key) {
    return config.contains(key) && config[key].is_string() ? config[key].get<std::string>() : "";
  };
  facts.base = text("base_model_name_or_path");
  const std::string type = text("peft_type");
  if (type == "LORA")
    facts.words = config.value("use_dora", json()) == true     ? "a DoRA adapter"
                  : config.value("use_rslora", json()) == true ? "an rsLoRA adapter"
                                                               : "a LoRA adapter";
  else if (type == formats::kPromptV2Type)
    facts.words = "a LLaMA-Adapter V2";
  else if (type == formats::kPromptType || type == formats::kPeftPromptType)
    facts.words = "a LLaMA-Adapter";
  facts.is_peft = type != formats::kPromptType && type != formats::kPromptV2Type;
  if (config.contains("r") && config["r"].is_number_integer())
    facts.rank = config["r"].get<int64_t>();
  return facts;
}

// "org/name" of a folder in the hub's local cache; empty for any other.
std::string name_in_cache(const fs::path& folder) {
  constexpr std::string_view kPrefix = "models--";
  constexpr std::string_view kBetween = "--";
  for (const fs::path& part : folder) {
    const std::string name = part.string();
    if (!name.starts_with(kPrefix)) continue;
    const size_t between = name.find(kBetween, kPrefix.size());
    if (between == std::string::npos) continue;
    return name.substr(kPrefix.size(), between - kPrefix.size()) + "/" +
           name.substr(between + kBetween.size());
  }
  return "";
}

void name_base(Known& known) {
  const std::string cached = name_in_cache(known.inputs.model);
  std::vector<std::string> names{cached, known.inputs.model_name, known.adapter.base,
                                 known.run.model};
  const auto hub = std::ranges::find_if(names, is_hub_name);
  known.base_is_hub = hub != names.end();
  if (known.base_is_hub) {
    known.base_name = hub->substr(0, hub->find('@'));
    return;
  }
  names.front() = known.inputs.model.string();
  const auto any = std::ranges::find_if(names, [](const auto& name) { return !name.empty(); });
  if (any != names.end()) known.base_name = public_name(*any);
}

Known gather(const CardInputs& inputs) {
  Known known{.inputs = inputs, .run = {}, .adapter = {}, .base = {}, .base_name = {}};
  if (!inputs.adapter.empty()) {
    fs::path adapter = inputs.adapter.lexically_normal();
    if (!adapter.has_filename()) adapter = adapter.parent_path();
    known.adapter = adapter_facts(adapter);
    known.run = read_run(inputs.run.empty() ? adapter.parent_path() : inputs.run);
  } else if (!inputs.run.empty()) {
    known.run = read_run(inputs.run);
  }
  if (!inputs.model.empty()) known.base = formats::base_card(inputs.model);
  if (known.base.licences.empty() && !inputs.licence.empty())
    known.base.licences = {inputs.licence};
  if (known.base.languages.empty()) known.base.languages = inputs.languages;
  name_base(known);
  return known;
}

// Between backquotes, of which it has none.
std::string code_text(const std::string& text) {
  std::string line = base::shown_text(text);
  std::ranges::replace(line, '`', '\'');
  std::ranges::replace(line, '\n', ' ');
  return "`" + line + "`";
}

class Card {
 public:
  explicit Card(const Known& known) : known_(known) {}

  std::string text() {
    add_yaml();
    add_description();
    add_licence();
    add_loading();
    add_training();
    add_data();
    add_figures();
    add_drift();
    add_makers();
    return std::move(text_);
  }

 private:
  const CardInputs& inputs() const { return known_.inputs; }
  bool is_gguf() const { return inputs().kind == CardKind::exported; }
  bool is_adapter() const { return inputs().kind == CardKind::adapter; }
  // The hub's word for what it is to its base.
  const char* relation() const {
    if (is_adapter()) return "adapter";
    return is_gguf() && inputs().adapter.empty() ? "quantized" : "finetune";
  }

  template <typename... Parts>
  void add(fmt::format_string<Parts...> format, Parts&&... parts) {
    text_ += fmt::format(format, std::forward<Parts>(parts)...);
  }

  void add_list(const char* key, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    add("{}:\n", key);
    for (const std::string& each : texts) add("- {}\n", yaml_text(each));
  }
  void add_value(const char* key, const std::string& text) {
    if (!text.empty()) add("{}: {}\n", key, yaml_text(text));
  }

  void add_yaml() {
    const formats::BaseCard& base = known_.base;
    text_ += "---\n";
    if (!is_adapter() || known_.adapter.is_peft)
      add_value("library_name", is_gguf() ? "gguf" : is_adapter() ? "peft" : "transformers");
    if (known_.base_is_hub) {
      add_value("base_model", known_.base_name);
      add_value("base_model_relation", relation());
    }
    if (base.licences.size() == 1)
      add_value("license", base.licences.front());
    else
      add_list("license", base.licences);
    add_value("license_name", base.licence_name);
    add_value("license_link", base.licence_link);
    add_list("language", base.languages);
    if (!inputs().has_encoder) add_value("pipeline_tag", "text-generation");
    std::vector<std::string> tags{"snug"};
    if (is_gguf()) tags.emplace_back("gguf");
    for (const std::string& tag : known_.run.tags) tags.push_back(tag);
    add_list("tags", tags);
    add_list("datasets", known_.run.hub_data_sets);
    text_ += "---\n\n";
  }

  std::string base_text() const {
    if (known_.base_name.empty()) return "a base model";
    if (!known_.base_is_hub) return markdown_text(known_.base_name);
    return fmt::format("[{}](https://huggingface.co/{})", markdown_text(known_.base_name),
                       known_.base_name);
  }

  std::string adapter_text() const {
    const AdapterFacts& adapter = known_.adapter;
    return adapter.rank == 0 ? adapter.words
                             : fmt::format("{} of rank {}", adapter.words, adapter.rank);
  }

  std::string types_text() const {
    return inputs().types.empty() ? "" : fmt::format("{}", fmt::join(inputs().types, ", "));
  }

  void add_description() {
    add("# {}\n\n", markdown_text(inputs().title));
    const std::string types = types_text();
    switch (inputs().kind) {
      case CardKind::merged:
        add("{} with {} merged into its weights{}. It needs no adapter.\n\n", upper(base_text()),
            adapter_text(), types.empty() ? "" : " (" + types + ")");
        break;
      case CardKind::trained:
        add("{}, fine-tuned{}.\n\n", upper(base_text()), types.empty() ? "" : " (" + types + ")");
        break;
      case CardKind::adapter:
        add("{} for {}, as {} loads it. The weights of that model are not in this folder.\n\n",
            upper(adapter_text()), base_text(), known_.adapter.is_peft ? "PEFT" : "Snug");
        break;
      case CardKind::exported:
        add("{}{} as GGUF{}, for llama.cpp, Ollama and what else reads it.\n\n", upper(base_text()),
            inputs().adapter.empty() ? "" : " with " + adapter_text(),
            types.empty() ? "" : ": " + types);
        break;
      case CardKind::imported:
        add("Weights, tokenizer and chat template of the GGUF file {}, as a folder of "
            "transformers{}. The weights are the values that the file's blocks stand for.\n\n",
            code_text(inputs().model.filename().string()), types.empty() ? "" : " in " + types);
        break;
    }
  }

  // A sentence begins with it.
  static std::string upper(std::string text) {
    if (text.starts_with("a ") || text.starts_with("an ")) text.front() = 'A';
    return text;
  }

  // A built-in shape has no weights that a licence could be of.
  void add_licence() {
    const formats::BaseCard& base = known_.base;
    if (inputs().model.empty()) return;
    text_ += "## Licence\n\n";
    if (base.licences.empty()) {
      text_ +=
          "This model is derived from its base model, whose licence applies. Its folder says "
          "nothing "
          "of that licence: look it up, and write it into the first lines of this file, before you "
          "hand this model on.\n\n";
      return;
    }
    std::vector<std::string> licences;
    for (const std::string& each : base.licences) licences.push_back(markdown_text(each));
    add("This model is derived from its base model, whose licence applies: {}{}.{}\n\n",
        fmt::join(licences, ", "),
        base.licence_name.empty() ? "" : " (" + markdown_text(base.licence_name) + ")",
        formats::licence_files(inputs().model).empty()
            ? ""
            : " Its licence files lie next to this file.");
  }

  void add_loading() {
    text_ += "## How to load it\n\n";
    if (is_gguf()) {
      for (const std::string& file : inputs().files)
        if (file == "Modelfile")
          text_ += "    ollama create NAME -f Modelfile\n";
        else
          add("    llama-cli -m {}\n", base::shown_text(file));
      text_ += "\n";
      return;
    }
    text_ += "FOLDER is this folder, or the name of its repository on the hub.\n\n";
    const char* model = inputs().has_encoder ? "ModelForSeq2SeqLM" : "ModelForCausalLM";
    if (is_adapter() && known_.adapter.is_peft)
      add("    from peft import AutoPeft{0}\n"
          "    model = AutoPeft{0}.from_pretrained(\"FOLDER\", dtype=\"auto\")\n\n",
          model);
    else if (!is_adapter())
      add("    from transformers import Auto{0}, AutoTokenizer\n"
          "    model = Auto{0}.from_pretrained(\"FOLDER\", dtype=\"auto\")\n"
          "    tokenizer = AutoTokenizer.from_pretrained(\"FOLDER\")\n\n",
          model);
    add("With Snug:\n\n    snug generate model={} prompt=\"...\"\n\n",
        is_adapter() ? "BASE adapter=FOLDER" : "FOLDER");
  }

  void add_training() {
    if (known_.run.recipe.empty()) return;
    size_t longest = 0;
    size_t run = 0;
    for (const char c : known_.run.recipe)
      longest = std::max(longest, run = c == '`' ? run + 1 : 0);
    const std::string fence(std::max<size_t>(3, longest + 1), '`');
    add("## Recipe\n\nThe keys that differ from what Snug does by itself.\n\n{0}yaml\n{1}{0}\n\n",
        fence, base::shown_text(known_.run.recipe));
  }

  void add_data() {
    if (known_.run.sources.empty()) return;
    text_ +=
        "## Data\n\n"
        "| source | for | records | documents | tokens | tokens that carry loss |\n"
        "| --- | --- | --- | --- | --- | --- |\n";
    for (const RecordedSource& source : known_.run.sources)
      add("| {} | {} | {} | {} | {} | {} |\n", markdown_text(source.name),
          source.evaluates ? "evaluation" : "training", source.records, source.documents,
          source.tokens, source.trained_tokens);
    text_ += "\n";
  }

  void add_figures() {
    const RunRecord& run = known_.run;
    if (run.figures.empty() && !run.last_loss) return;
    text_ += "## The run\n\n";
    if (run.last_loss)
      add("{} steps, {:.2f} epochs. Loss {:.4f} in the first step, {:.4f} in the last{}.\n\n",
          run.steps, run.epochs, run.first_loss.value_or(*run.last_loss), *run.last_loss,
          run.evaluation_loss ? fmt::format("; {:.4f} on the evaluation data", *run.evaluation_loss)
                              : "");
    if (run.figures.empty()) return;
    text_ += "| | planned | measured |\n| --- | --- | --- |\n";
    for (const RecordedFigure& figure : run.figures)
      add("| {} | {} | {} |\n", figure.name, figure.planned, figure.measured);
    text_ += "\n";
  }

  void add_drift() {
    if (inputs().drifts.empty()) return;
    add("## Drift\n\n"
        "How far the predictions of the merged weights are from those of the base model with the "
        "adapter, on the same {} tokens.\n\n"
        "| merged | mean KL | largest KL | mean difference of the log-probability | largest | "
        "equal "
        "greedy tokens |\n"
        "| --- | --- | --- | --- | --- | --- |\n",
        inputs().drifts.front().tokens);
    for (const CardDrift& drift : inputs().drifts)
      add("| {}{} | {:.3g} | {:.3g} | {:.3g} | {:.3g} | {:.2f} % |\n", markdown_text(drift.variant),
          drift.is_kept && inputs().drifts.size() > 1 ? " (this folder)" : "", drift.mean_kl,
          drift.most_kl, drift.mean_difference, drift.most_difference, 100 * drift.equal_greedy);
    text_ += "\n";
  }

  void add_makers() {
    add("Made with Snug {} (build {}).\n", SNUG_VERSION, base::build_id().substr(0, 12));
  }

  const Known& known_;
  std::string text_;
};

// Words that YAML reads as something else than texts.
bool is_yaml_word(std::string_view text) {
  constexpr std::string_view kWords[] = {"null", "true", "false", "yes",  "no",  "on",
                                         "off",  "y",    "n",     ".nan", ".inf"};
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::ranges::find(kWords, lower) != std::end(kWords);
}

}  // namespace

std::string title_of_folder(const fs::path& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

std::string markdown_text(const std::string& text) {
  constexpr std::string_view kMeaning = "\\`*_{}[]<>()#|!~&$";
  std::string escaped;
  for (const char c : base::shown_text(text)) {
    if (c == '\n' || c == '\r' || c == '\t') {
      escaped += ' ';
      continue;
    }
    if (kMeaning.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string yaml_text(const std::string& text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool is_plain = !text.empty() && is_letter(text.front()) && !is_yaml_word(text) &&
                        std::ranges::all_of(text, [&](char c) {
                          return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                                 c == '.' || c == '/';
                        });
  return is_plain ? text : json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string model_card(const CardInputs& inputs) {
  const Known known = gather(inputs);
  return Card(known).text();
}

void write_model_card(const fs::path& folder, const CardInputs& inputs) {
  const bool is_own = !formats::foreign_entry(folder);
  for (const fs::path& file : formats::licence_files(inputs.model))
    base::copy_file_atomically(file, folder / file.filename());
  base::write_file_atomically(folder / "README.md", model_card(inputs));
  if (is_own) formats::write_file_list(folder);
}

}  // namespace snug::convert
