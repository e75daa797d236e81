#include "formats/data/dataset_card.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "formats/folder/front_matter.h"

namespace snug::formats {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostCardBytes = int64_t{16} << 20;

// Words for the reader of a format, with which the same file holds other records.
constexpr auto kReadingWords = std::to_array<std::string_view>(
    {"column_names", "delimiter", "encoding", "escapechar", "field", "header", "names", "quotechar",
     "quoting", "sample_by", "sep", "skiprows", "usecols"});

class CardReader {
 public:
  explicit CardReader(std::string file) : file_(std::move(file)) {}

  // The list `configs`; undefined where there is none.
  YAML::Node configs_in(const std::string& yaml) const {
    YAML::Node root;
    try {
      root = YAML::Load(yaml);
    } catch (const YAML::Exception& error) {
      throw base::UserError("the card of the data set is no valid YAML: " + error.msg +
                                "; mend it, or name the files themselves as data",
                            location_of(error.mark));
    }
    if (!root.IsMap()) return YAML::Node(YAML::NodeType::Undefined);
    const YAML::Node configs = root["configs"];
    if (configs && !configs.IsNull() && !configs.IsSequence())
      fail(configs, "'configs' is no list of configurations");
    return configs;
  }

  CardConfig config(const YAML::Node& node) const {
    if (!node.IsMap() || !node["config_name"] || !node["config_name"].IsScalar())
      fail(node, "a configuration has no 'config_name'");
    CardConfig config{.name = node["config_name"].Scalar()};
    if (const YAML::Node flag = node["default"]; flag && flag.IsScalar())
      config.is_default = flag.as<bool>(false);
    if (const YAML::Node folder = node["data_dir"]; folder && folder.IsScalar())
      config.folder = folder.Scalar();
    if (const YAML::Node files = node["data_files"]; files && !files.IsNull())
      config.splits = splits(files);
    for (const std::string_view word : kReadingWords)
      if (node[std::string(word)]) config.reading.emplace_back(word);
    return config;
  }

 private:
  std::vector<CardSplit> splits(const YAML::Node& files) const {
    std::vector<CardSplit> all;
    if (files.IsMap()) {
      for (const auto& entry : files) add(all, text(entry.first), entry.second);
      return all;
    }
    const bool has_splits = files.IsSequence() && files.size() > 0 && files[0].IsMap();
    if (!has_splits) {
      add(all, "train", files);
      return all;
    }
    for (const YAML::Node& each : files) {
      if (!each.IsMap() || !each["split"] || !each["path"])
        fail(each, "each of 'data_files' is either a path, or has a 'split' and a 'path'");
      add(all, text(each["split"]), each["path"]);
    }
    return all;
  }

  void add(std::vector<CardSplit>& all, std::string name, const YAML::Node& paths) const {
    if (std::ranges::find(all, name, &CardSplit::name) != all.end())
      fail(paths, "the split " + name + " is there twice");
    CardSplit split{std::move(name), {}};
    if (!paths.IsSequence()) split.patterns.push_back(text(paths));
    if (paths.IsSequence())
      for (const YAML::Node& path : paths) split.patterns.push_back(text(path));
    all.push_back(std::move(split));
  }

  std::string text(const YAML::Node& node) const {
    if (!node.IsScalar()) fail(node, "expected a text");
    return node.Scalar();
  }

  base::Location location_of(const YAML::Mark& mark) const {
    return {file_, mark.line + 1, mark.column + 1};
  }

  [[noreturn]] void fail(const YAML::Node& node, const std::string& problem) const {
    throw base::UserError("in the card of the data set " + problem +
                              "; mend it, or name the files themselves as data",
                          location_of(node.Mark()));
  }

  std::string file_;
};

}  // namespace

std::vector<CardConfig> card_configs(const fs::path& folder) {
  // The second one stands above the first, as in the `datasets` library.
  for (const char* name : {".huggingface.yaml", "README.md"}) {
    const fs::path path = folder / name;
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;
    const std::string text = base::read_text_file(path, kMostCardBytes);
    const CardReader reader(path.string());
    const YAML::Node configs =
        reader.configs_in(path.extension() == ".md" ? front_matter(text) : text);
    std::vector<CardConfig> all;
    if (configs && configs.IsSequence())
      for (const YAML::Node& config : configs) all.push_back(reader.config(config));
    if (!all.empty()) return all;
  }
  return {};
}

}  // namespace snug::formats
