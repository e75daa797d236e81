// Stages: YAML is scanned for structures that would expand enormously, and parsed into a document;
// its map is walked, and each value becomes a written key with its place.
#include "formats/recipe/recipe_text.h"

#include "formats/foreign/data_words.h"
#include "formats/foreign/foreign_keys.h"
#include "formats/foreign/tool_entries.h"
#include "formats/recipe/data_entries.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

namespace snug::formats {
namespace {

using base::Location;
using base::UserError;

Location location_of(const YAML::Mark& mark, const std::string& file) {
  return {file, mark.line + 1, mark.column + 1};
}

// yaml-cpp reads both `key: null` and `key:` as null; the second is reported, since it may be a
// slip.
bool is_written_null(std::string_view yaml, const YAML::Mark& mark) {
  if (mark.pos < 0 || static_cast<size_t>(mark.pos) >= yaml.size()) return false;
  const std::string_view rest = yaml.substr(static_cast<size_t>(mark.pos));
  for (const std::string_view word : {"~", "null", "Null", "NULL"})
    if (rest.starts_with(word)) return true;
  return false;
}

// Scans a recipe before it is parsed into a document: records where it starts, and refuses
// structures that make a small file expand enormously.
class RecipeScan : public YAML::EventHandler {
 public:
  explicit RecipeScan(const std::string& file) : file_(file) {}
  YAML::Mark start;

  void OnDocumentStart(const YAML::Mark& mark) override { start = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw UserError(
        "a recipe has no aliases (*name); write the value out, and a pattern of files in "
        "quotes: '*.jsonl'",
        location_of(mark, file_));
  }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    enter(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  // A list in a map is the deepest nesting that a recipe needs; slightly deeper nesting is reported
  // later, with its key.
  void enter(const YAML::Mark& mark) {
    constexpr int kMaxDepth = 16;
    if (++depth_ > kMaxDepth)
      throw UserError("values nest too deeply; a recipe is a flat list of keys",
                      location_of(mark, file_));
  }

  const std::string& file_;
  int depth_ = 0;
};

// YAML::Load silently stops after the first document, even if unreadable text follows, and
// YAML::LoadAll never returns for such a text (yaml-cpp 0.7).
void require_one_document(std::string_view yaml, const std::string& file) {
  std::istringstream stream{std::string(yaml)};
  YAML::Parser parser(stream);
  RecipeScan document(file);
  if (parser.HandleNextDocument(document) && parser.HandleNextDocument(document))
    throw UserError(
        "the recipe ends before here: it must be one YAML document of 'key: value' lines",
        location_of(document.start, file));
}

YAML::Node document_in(std::string_view yaml, const std::string& file) {
  try {
    require_one_document(yaml, file);
    return YAML::Load(std::string(yaml));
  } catch (const YAML::Exception& error) {
    throw UserError("not valid YAML: " + error.msg, location_of(error.mark, file));
  }
}

bool takes_entries(std::string_view name) {
  const RecipeKey* key = find_recipe_key(name);
  return key != nullptr && key->field.type == ValueType::entries;
}

// Whether a value is other tools' data sets, which are kept as they are written: those of the keys
// that hold them, and torchtune's, which name a builder.
bool keeps_maps(std::string_view name, const YAML::Node& node) {
  if (holds_data_sets(name)) return true;
  const bool is_built = node.IsMap() && node["_component_"];
  const bool has_built =
      node.IsSequence() && node.size() > 0 && node[0].IsMap() && node[0]["_component_"];
  return takes_entries(name) && (is_built || has_built);
}

class MapWalk {
 public:
  MapWalk(std::string_view yaml, const std::string& file, base::Mistakes& mistakes)
      : yaml_(yaml), file_(file), mistakes_(mistakes) {}

  // `place`: the location of all values if they do not come from a file.
  void add_map(const YAML::Node& map, const std::string& prefix, const Location* place) {
    for (const auto& entry : map) {
      const Location where = place != nullptr ? *place : location_of(entry.first.Mark(), file_);
      if (entry.first.IsScalar())
        add(prefix + entry.first.Scalar(), entry.second, where, place);
      else
        mistakes_.add("a key must be a word", where);
    }
  }

  std::vector<Written> take() { return std::move(all_); }

 private:
  void add(const std::string& name, const YAML::Node& node, const Location& where,
           const Location* place) {
    if (takes_entries(name) || keeps_maps(name, node))
      if (const std::string twice = key_twice(node); !twice.empty()) {
        mistakes_.add(fmt::format("'{}' has an entry with the key '{}' twice; in a list each entry "
                                  "has a dash of its own",
                                  name, twice),
                      where);
        return;
      }
    if (keeps_maps(name, node)) {
      all_.push_back({name, tool_items(node), node.IsSequence(), where});
      all_.back().is_blank = is_blank(node);
      return;
    }
    if (takes_entries(name)) {
      all_.push_back({name, entry_items(node), node.IsSequence(), where});
      all_.back().is_blank = is_blank(node);
      return;
    }
    if (node.IsMap()) return add_map(node, name + ".", place);
    if (node.IsSequence()) return add_list(name, node, where, place);
    Written written{name, {}, false, where};
    if (node.IsScalar()) written.items.push_back(node.Scalar());
    written.is_blank = is_blank(node);
    all_.push_back(std::move(written));
  }

  bool is_blank(const YAML::Node& node) const {
    return node.IsNull() && !is_written_null(yaml_, node.Mark());
  }

  void add_list(const std::string& name, const YAML::Node& list, const Location& where,
                const Location* place) {
    Written written{name, {}, true, where};
    bool has_maps = false;
    for (const YAML::Node& item : list) {
      if (item.IsScalar()) {
        written.items.push_back(item.Scalar());
      } else if (item.IsMap()) {
        has_maps = true;
        add_map(item, name + ".", place);
      } else {
        mistakes_.add(
            fmt::format("'{}' holds a nested value; a recipe is a flat list of keys", name), where);
        return;
      }
    }
    if (!has_maps || !written.items.empty()) all_.push_back(std::move(written));
  }

  const std::string_view yaml_;
  const std::string& file_;
  base::Mistakes& mistakes_;
  std::vector<Written> all_;
};

// Whether another tool's key has keys below it.
bool holds_keys(const std::string& name) {
  const std::string below = name + ".";
  return std::ranges::any_of(foreign_keys(), [&](const ToolKey& key) {
    std::string_view path = key.path;
    if (path.starts_with(below)) return true;
    if (!path.ends_with('*')) return false;
    path.remove_suffix(1);
    return below.starts_with(path);
  });
}

std::string without_blanks_before(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string::npos ? std::string() : text.substr(first);
}

// The keys of a map that is written as text, as transformers accepts it: '{"min_lr": 1e-5}'. Empty
// if the text is not a map.
std::vector<Written> keys_in_text(const Written& written, base::Mistakes& mistakes) {
  const RecipeKey* key = find_recipe_key(written.name);
  const bool takes_keys = key != nullptr ? key->pairs : holds_keys(written.name);
  if (written.is_list || written.items.size() != 1 || !takes_keys) return {};
  const std::string text = without_blanks_before(written.items.front());
  if (!text.starts_with('{')) return {};
  try {
    const YAML::Node node = document_in(text, written.where.file);
    MapWalk walk(text, written.where.file, mistakes);
    if (node.IsMap()) walk.add_map(node, written.name + ".", &written.where);
    return walk.take();
  } catch (const UserError&) {
    // The value is reported later, as one that does not fit its key.
    return {};
  }
}

// The entries that a value on the command line writes as a list or a map. Empty for another text,
// which is a path.
std::vector<std::string> entries_in_text(const Written& written) {
  const bool takes_them = takes_entries(written.name) || holds_data_sets(written.name);
  if (!takes_them || written.is_list || written.items.size() != 1) return {};
  const std::string& text = written.items.front();
  const bool is_list = text.starts_with('[') && text.ends_with(']');
  if (!is_list && !text.starts_with('{')) return {};
  try {
    const YAML::Node node = document_in(text, written.where.file);
    return keeps_maps(written.name, node) ? tool_items(node) : entry_items(node);
  } catch (const UserError&) {
    return {};
  }
}

// "data.split=test" as a change of the one entry that the key has; a name of three parts changes a
// pair of the entry, as "data.fields.prompt=question" does.
std::optional<Written> change_of_entry(const Written& written) {
  const size_t dot = written.name.find('.');
  if (dot == std::string::npos || !takes_entries(std::string_view(written.name).substr(0, dot)))
    return std::nullopt;
  std::string value;
  for (const std::string& item : written.items) value += (value.empty() ? "" : ", ") + item;
  if (written.is_list) value = "[" + value + "]";
  std::string name = written.name.substr(dot + 1);
  if (const size_t next = name.find('.'); next != std::string::npos) {
    value = fmt::format("{{{}: {}}}", name.substr(next + 1), value);
    name.resize(next);
  }
  return Written{
      written.name.substr(0, dot), {fmt::format("{{{}: {}}}", name, value)}, false, written.where};
}

// The changes of a key's entry in the entry, where it stands next to them, else as one change.
std::vector<Written> changes_joined(const std::vector<Written>& all) {
  std::vector<Written> joined;
  std::vector<Written> changes;
  for (const Written& written : all) {
    auto change = change_of_entry(written);
    if (change)
      changes.push_back(*std::move(change));
    else
      joined.push_back(written);
  }
  for (const Written& change : changes) {
    const auto entry = std::ranges::find_if(joined, [&](const Written& each) {
      return each.name == change.name && each.items.size() == 1;
    });
    const std::string whole =
        entry == joined.end() ? "" : with_keys_of(entry->items.front(), change.items.front());
    if (whole.empty())
      joined.push_back(change);
    else
      entry->items.front() = whole;
  }
  return joined;
}

// The key whose pairs a written "fields.prompt" is one of; null where it is of none.
const RecipeKey* key_of_pair(const Written& written) {
  const size_t dot = written.name.find('.');
  if (dot == std::string::npos || written.items.empty()) return nullptr;
  const RecipeKey* key = find_recipe_key(std::string_view(written.name).substr(0, dot));
  return key != nullptr && key->pairs ? key : nullptr;
}

// What stands for a name: one text, or a list of texts as JSON.
std::string pair_value(const Written& written) {
  return written.is_list ? nlohmann::json(written.items).dump() : written.items.front();
}

// Whole texts may hold any sign; what they end with is told by the last colon.
char pair_joint(const RecipeKey& key) { return key.whole_texts ? ':' : '='; }

// A map of pairs as the list of them that its key takes.
std::vector<Written> pairs_joined(const std::vector<Written>& all) {
  std::vector<Written> joined;
  std::map<const RecipeKey*, size_t> at;
  for (const Written& written : all) {
    const RecipeKey* key = key_of_pair(written);
    if (key == nullptr) {
      joined.push_back(written);
      continue;
    }
    const size_t dot = written.name.find('.');
    const auto [place, is_new] = at.try_emplace(key, joined.size());
    if (is_new) joined.push_back({written.name.substr(0, dot), {}, true, written.where});
    joined[place->second].items.push_back(written.name.substr(dot + 1) + pair_joint(*key) +
                                          pair_value(written));
  }
  return joined;
}

std::vector<Written> maps_spread(std::vector<Written> all, base::Mistakes& mistakes) {
  std::vector<Written> spread;
  for (Written& written : all) {
    std::vector<Written> keys = keys_in_text(written, mistakes);
    if (keys.empty()) keys.push_back(std::move(written));
    for (Written& each : keys) spread.push_back(std::move(each));
  }
  return changes_joined(pairs_joined(spread));
}

// Recipes are written into YAML and JSON files, which must be UTF-8.
bool is_utf8(const Written& written) {
  try {
    (void)nlohmann::json(written.items).dump();
    (void)nlohmann::json(written.name).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

std::vector<Written> in_utf8(std::vector<Written> all, base::Mistakes& mistakes) {
  for (const Written& written : all)
    if (!is_utf8(written))
      mistakes.add(fmt::format("'{}' is no UTF-8 text", written.name), written.where);
  std::erase_if(all, [](const Written& written) { return !is_utf8(written); });
  return all;
}

}  // namespace

std::vector<Written> written_in_yaml(std::string_view yaml, const std::string& file,
                                     base::Mistakes& mistakes) {
  // yaml-cpp skips a byte order mark and counts positions from behind it.
  if (yaml.starts_with("\xef\xbb\xbf")) yaml.remove_prefix(3);
  const YAML::Node root = document_in(yaml, file);
  if (root.IsNull()) return {};
  if (!root.IsMap())
    throw UserError("a recipe is a list of 'key: value' lines", location_of(root.Mark(), file));
  MapWalk walk(yaml, file, mistakes);
  walk.add_map(root, "", nullptr);
  return in_utf8(maps_spread(walk.take(), mistakes), mistakes);
}

std::vector<Written> written_in_overrides(const std::vector<std::string>& overrides,
                                          base::Mistakes& mistakes) {
  std::vector<Written> all;
  const Location where{std::string(kCommandLine), 0, 0};
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      mistakes.add(fmt::format("'{}' is not of the form key=value", text), where);
      continue;
    }
    Written written{text.substr(0, equals), {text.substr(equals + 1)}, false, where};
    const RecipeKey* key = find_recipe_key(written.name);
    const bool is_text = key != nullptr && (key->field.type == ValueType::text ||
                                            key->field.type == ValueType::entries);
    const std::string& value = written.items.front();
    if (is_text ? value.empty() : (value == "null" || value == "~")) written.items.clear();
    if (auto entries = entries_in_text(written); !entries.empty()) {
      written.is_list = entries.size() > 1;
      written.items = std::move(entries);
    }
    all.push_back(std::move(written));
  }
  return in_utf8(maps_spread(std::move(all), mistakes), mistakes);
}

}  // namespace snug::formats
