// Reads other tools' files that a recipe names, and adds their settings to what the user wrote.
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "formats/foreign/accelerate_config.h"
#include "formats/foreign/deepspeed_config.h"

namespace snug::formats {
namespace {

bool has_value(const WrittenByKey& given, std::string_view key) {
  const auto found = given.find(key);
  return found != given.end() && !found->second.items.empty();
}

// The command line has no line numbers, and takes precedence over all files.
bool is_on_command_line(const Written& written) { return written.where.file == kCommandLine; }

void add_one(WrittenByKey& given, const Written& setting) {
  const RecipeKey& key = *find_recipe_key(setting.name);
  const Value value = parse_value(key, setting);
  if (key.name == "max_steps" && has_value(given, "num_train_epochs") &&
      !has_value(given, "max_steps"))
    throw base::UserError(
        "gives the number of steps, and the recipe gives num_train_epochs; make this \"auto\", or "
        "set max_steps",
        setting.where);
  if (!has_value(given, key.name)) {
    given.insert_or_assign(key.name, setting);
    return;
  }
  const Written& own = given.at(key.name);
  if (setting.is_default) return;
  if (is_on_command_line(own) || is_same_value(parse_value(key, own), value)) return;
  throw base::UserError(
      fmt::format("'{}' is {} here, but {} means {}; take it out of one of them, or decide on the "
                  "command line",
                  own.name, value_text(key, parse_value(key, own)), setting.where.file,
                  value_text(key, value)),
      own.where);
}

// Looked up in the current folder, then next to the recipe. ms-swift has words for built-in files.
std::string path_of(const RecipeKey& key, const Written& written) {
  const auto path = std::get<std::string>(parse_value(key, written));
  std::error_code error;
  if (path.empty() || std::filesystem::exists(path, error)) return path;
  if (written.where.line > 0) {
    const std::filesystem::path folder = std::filesystem::path(written.where.file).parent_path();
    if (std::filesystem::exists(folder / path, error)) return (folder / path).string();
  }
  const bool is_word = path.starts_with("zero") && path.find('.') == std::string::npos;
  throw base::UserError(
      fmt::format("'{}' is {}, but there is no such file{}", written.name, path,
                  is_word ? "; say strategy: zero1, zero2 or full_shard (ZeRO 3), and "
                            "offload_optimizer: auto or offload_params: true to offload"
                          : "; give its path, or say strategy and take this out"),
      written.where);
}

}  // namespace

std::vector<std::string> add_config_files(WrittenByKey& given, base::Mistakes& mistakes) {
  struct Source {
    std::string_view key;
    ToolConfig (*read)(const std::string&);
  };
  std::vector<std::string> notes;
  for (const Source source : {Source{"deepspeed", read_deepspeed_config},
                              Source{"accelerate_config", read_accelerate_config}}) {
    if (!has_value(given, source.key)) continue;
    mistakes.gather([&] {
      const std::string path = path_of(*find_recipe_key(source.key), given.at(source.key));
      if (path.empty()) return;
      const ToolConfig config = source.read(path);
      for (const Written& setting : config.settings)
        mistakes.gather([&] { add_one(given, setting); });
      notes.insert(notes.end(), config.notes.begin(), config.notes.end());
      config.mistakes.throw_if_any();
    });
  }
  return notes;
}

}  // namespace snug::formats
